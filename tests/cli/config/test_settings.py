"""Flags over environment over file over defaults; every mistake named with its place."""

import io
import logging
import os
from pathlib import Path

import pytest

from weald.cli.commands.config import setting_rows
from weald.cli.config.settings import SECTIONS, default_settings, find_file, load, parse_overrides
from weald.cli.errors import NotFoundError, UsageError
from weald.cli.terminal.opened import open_settings
from weald.cli.terminal.output import note


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder and none of the machine's own variables."""
    for name in list(os.environ):
        if name.upper().startswith("WEALD"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, path: str = "weald.toml") -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_defaults_are_valid_and_need_no_file() -> None:
    loaded = load()
    assert loaded.file is None
    assert loaded.settings == default_settings().settings
    assert loaded.settings.storage.url == "sqlite:///weald.db"


def test_flags_win_over_environment_over_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write('[model]\nseed = 1\n[stream]\nname = "file"\n[monitoring]\nport = 1\n')
    monkeypatch.setenv("WEALD__MODEL__SEED", "2")
    monkeypatch.setenv("WEALD__STREAM__NAME", "environment")
    loaded = load(flags={"model.seed": "3"})
    assert loaded.settings.model.seed == 3
    assert loaded.settings.stream.name == "environment"
    assert loaded.settings.monitoring.port == 1
    assert loaded.origins == {
        "model.seed": "command line",
        "stream.name": "environment WEALD__STREAM__NAME",
        "monitoring.port": "weald.toml",
    }


def test_a_flag_that_was_not_given_changes_nothing() -> None:
    write("[model]\nseed = 1\n")
    assert load(flags={"model.seed": None}).settings.model.seed == 1


def test_text_from_the_environment_becomes_what_the_setting_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEALD__REDIS__ENABLED", "false")
    monkeypatch.setenv("WEALD__STREAM__POLL_SECONDS", "0.25")
    monkeypatch.setenv("WEALD__MODEL__PARAMS", '{"kappa": 0.1}')
    monkeypatch.setenv("WEALD__SCHEMA__FIELDS", '[{"name": "x", "path": "a.b"}]')
    settings = load().settings
    assert settings.redis.enabled is False
    assert settings.stream.poll_seconds == 0.25
    assert settings.model.params == {"kappa": 0.1}
    assert settings.schema.fields[0].path == "a.b"


def test_every_mistake_is_told_at_once_with_place_key_and_expectation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write('[model]\nseed = "one"\n[redis]\nurll = "x"\n[schema]\nfields = [{nam = "x"}]\n')
    monkeypatch.setenv("WEALD__MONITORING__PORT", "70000")
    with pytest.raises(UsageError) as caught:
        load()
    message = caught.value.message
    assert message.startswith("4 settings are wrong:")
    assert "weald.toml: model.seed: expected `int`, got `str`" in message
    assert "weald.toml: redis.urll: no such setting; did you mean redis.url?" in message
    assert "weald.toml: schema.fields[0]: object contains unknown field `nam`" in message
    assert (
        "environment WEALD__MONITORING__PORT: monitoring.port: expected `int` <= 65535" in message
    )
    assert caught.value.next_step is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 3\n", "model: expected a section"),
        ("[model\n", "cannot be read as TOML"),
        ("[models]\nseed = 1\n", r"models.seed: no such setting; did you mean model.seed"),
        (
            "[refinement]\nevery_records = 7\npublish_every_records = 10\n",
            "refinement: publish_every_records must be a multiple of every_records",
        ),
    ],
)
def test_mistakes_in_the_file(text: str, message: str) -> None:
    write(text)
    with pytest.raises(UsageError, match=message):
        load()


def test_overrides_need_a_section_a_key_and_a_value() -> None:
    assert parse_overrides(["model.seed=7", "kafka.topic=a=b"]) == {
        "model.seed": "7",
        "kafka.topic": "a=b",
    }
    for wrong in ("model.seed", "seed=7", "a.b.c=1"):
        with pytest.raises(UsageError, match=r"expected section\.key=value"):
            parse_overrides([wrong])


def test_the_order_in_which_the_file_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_file(None) is None
    demo = write("", "weald-demo/weald.toml")
    assert find_file(None) == demo
    here = write("")
    assert find_file(None) == here
    named = write("", "other/weald.toml")
    monkeypatch.setenv("WEALD_CONFIG", "other")
    assert find_file(None) == named
    last = write("", "last.toml")
    assert find_file(last) == last


def test_a_named_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match=r"--config names nowhere"):
        find_file(Path("nowhere"))
    monkeypatch.setenv("WEALD_CONFIG", "nowhere.toml")
    with pytest.raises(NotFoundError, match=r"WEALD_CONFIG names nowhere\.toml"):
        find_file(None)


def test_relative_paths_are_read_from_the_files_folder() -> None:
    write(
        '[storage]\nurl = "sqlite:///weald.db"\n[stream]\nsource = "file"\npath = "x.csv"\n',
        "home/weald.toml",
    )
    settings = load(Path("home")).settings
    assert settings.storage.url == "sqlite:///home/weald.db"
    assert settings.stream.path == str(Path("home/x.csv"))
    flags = {"storage.url": "sqlite:///here.db"}
    assert load(Path("home"), flags).settings.storage.url == "sqlite:///here.db"


def test_an_absolute_path_stays(clean: Path) -> None:
    write(f'[storage]\nurl = "sqlite:///{clean}/weald.db"\n', "home/weald.toml")
    assert load(Path("home")).settings.storage.url == f"sqlite:///{clean}/weald.db"


def test_secrets_are_hidden_wherever_settings_are_shown() -> None:
    flags = {
        "storage.url": "postgresql+psycopg://weald:hunter2@db/weald",
        "redis.url": "redis://:hunter2@cache/0",
        "kafka.security_protocol": "SASL_SSL",
        "kafka.sasl_mechanism": "PLAIN",
        "kafka.sasl_username": "weald",
        "kafka.sasl_password": "hunter2",  # looked for in what is shown
        "monitoring.token": "hunter2",
    }
    loaded = load(flags=flags)
    shown = {row["key"]: row["value"] for row in setting_rows(loaded)}
    assert "hunter2" not in str(shown)
    assert shown["kafka.sasl_password"] == "***"  # noqa: S105  # what hides one
    assert shown["storage.url"] == "postgresql+psycopg://weald:***@db/weald"
    assert "hunter2" not in repr(loaded.settings)


@pytest.mark.parametrize("text", ["s3cret!", "{not: json", "[1]", "null", "12345678", " a b "])
def test_a_secret_comes_from_a_file_as_it_is(clean: Path, text: str) -> None:
    (clean / "home").mkdir()
    (clean / "home" / "token").write_text(f"{text}\n")
    write("[monitoring]\ntoken_file = 'token'\n", "home/weald.toml")
    loaded = load(Path("home"))
    assert loaded.settings.monitoring.token == text
    assert loaded.origins == {"monitoring.token": "home/weald.toml"}


def test_a_secret_in_the_environment_wins_over_a_file_in_the_configuration(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / "token").write_text("from the file")
    write("[monitoring]\ntoken_file = 'token'\n")
    monkeypatch.setenv("WEALD__MONITORING__TOKEN", "[from the environment")
    assert load().settings.monitoring.token == "[from the environment"  # noqa: S105  # a test's


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "cannot be read"), (b"\n", "empty"), (b"\xff\xfe", "UTF-8")]
)
def test_a_file_that_holds_no_secret(clean: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (clean / "secret").write_bytes(content)
    write("[redis]\npassword_file = 'secret'\n")
    with pytest.raises(UsageError, match=f"weald.toml: redis.password_file: secret.*{problem}"):
        load()


def test_a_secret_and_its_file_are_one_too_many(clean: Path) -> None:
    (clean / "secret").write_text("hunter2")
    write("[redis]\npassword = 'x'\npassword_file = 'secret'\n")
    with pytest.raises(UsageError, match=r"redis\.password_file: give one of the two"):
        load()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[kafka]\nsecurity_protocol = 'SASL_SSL'\n", "needs sasl_mechanism"),
        ("[kafka]\nsasl_mechanism = 'PLAIN'\n", "needs security_protocol SASL_SSL"),
        ("[kafka]\nsasl_mechanism = 'GUESS'\n", "kafka.sasl_mechanism"),
        ("[kafka]\nssl_cafile = 'ca.pem'\n", "needs security_protocol SSL"),
        ("[kafka]\nsecurity_protocol='SSL'\nssl_keyfile='k'\n", "go together"),
        ("[redis]\nssl_cafile = 'ca.pem'\n", "not rediss://"),
        ("[redis]\nusername = 'weald'\n", "needs a password"),
        ("[storage]\nssl_certfile = 'c'\n", "go together"),
    ],
)
def test_half_of_a_protection_is_refused(section: str, message: str) -> None:
    """Better no start than one that its owner takes for protected."""
    write(section)
    with pytest.raises(UsageError, match=message):
        load()


def test_notes_and_logs_are_scrubbed(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("[redis]\nurl = 'redis://u:p%40ssword@h/0'\n[monitoring]\ntoken = 'hunter22'\n")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        open_settings(clean, None)
        refused = ValueError("p@ssword")
        logging.getLogger("driver").error("%s, %s", "p%40ssword", "hunter22", exc_info=refused)
        note("weald: token hunter22 was refused")
    finally:
        logging.getLogger().removeHandler(handler)
    shown = stream.getvalue() + capsys.readouterr().err
    assert "***, ***\nValueError: ***" in shown
    assert "token *** was refused" in shown
    assert "ssword" not in shown


def test_every_setting_is_shown_once() -> None:
    keys = [row["key"] for row in setting_rows(default_settings())]
    assert len(keys) == len(set(keys))
    assert {key.partition(".")[0] for key in keys} == set(SECTIONS)
