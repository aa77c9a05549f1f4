"""Questions about a stream that a real engine has filled."""

import csv
import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import N_BAD, N_GOOD, Command
from weald.cli.errors import ExitCode, NotFoundError
from weald.cli.terminal.error_messages import translated
from weald.cli.terminal.opened import open_settings
from weald.storage.errors import MomentForgotten
from weald.storage.queries.base import AsOf

FORMS = ("table", "json", "jsonl", "csv")


pytestmark = pytest.mark.usefixtures("clean", "at_home")


@pytest.fixture
def at_home(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer from the filled stream, found by its variable."""
    monkeypatch.setenv("WEALD_CONFIG", str(filled))


def test_clusters_in_every_form(weald: Command) -> None:
    table = weald("clusters")
    assert table.code == 0
    assert table.out.splitlines()[0].split() == [
        "cluster", "group", "size", "share", "growth", "stability", "anomaly", "x", "y",
    ]  # fmt: skip
    rows = json.loads(weald("clusters", "--output", "json").out)
    assert [row["size"] for row in rows] == [150, 150]
    assert sorted(round(row["features"]["x"]["centre"]) for row in rows) == [-10, 10]
    assert all(0.8 < row["features"]["y"]["spread"] < 1.2 for row in rows)
    lines = weald("clusters", "--output", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == rows
    flat = list(csv.DictReader(io.StringIO(weald("clusters", "--output", "csv").out)))
    assert [float(row["x_centre"]) for row in flat] == [
        row["features"]["x"]["centre"] for row in rows
    ]


def test_groups_are_listed_with_their_clusters(weald: Command) -> None:
    rows = json.loads(weald("clusters", "--level", "groups", "--output", "json").out)
    clusters = json.loads(weald("clusters", "--output", "json").out)
    assert [row["size"] for row in rows] == [150, 150]
    for row in rows:
        inside = [each for each in clusters if each["group"] == row["group"]]
        assert row["clusters"] == [each["cluster"] for each in inside]
        assert row["features"] == inside[0]["features"]
        assert row["probability"] == inside[0]["probability"]
        assert row["born_publication"] == 1
        assert row["born"] > "2026"
        assert not row["is_new"]
        side = "least" if row["features"]["x"]["centre"] > 0 else "most"
        assert row["description"].startswith(f"x at {side} ")
    table = weald("clusters", "--level", "groups").out.splitlines()
    assert re.split(" {2,}", table[0].strip()) == [
        "group", "size", "share", "how sure", "since (UTC)", "clusters", "what sets it apart",
    ]  # fmt: skip
    assert "1 of 2 groups" in weald("clusters", "--level", "groups", "--limit", "1").err
    assert weald("clusters", "--level", "groups", "--retired").code == ExitCode.USAGE
    assert weald("clusters", "--level", "groups", "--sort", "growth").code == ExitCode.USAGE
    newest = weald("clusters", "--level", "groups", "--sort", "born", "--output", "json")
    assert [row["group"] for row in json.loads(newest.out)] == [2, 1]


def test_groups_say_since_when_they_are_there(filled: Path, tmp_path: Path, weald: Command) -> None:
    home = tmp_path / "again"
    shutil.copytree(filled, home)

    def since(change: str) -> list[str]:
        """What the table says of groups 1 and 2 after a change of the database."""
        with sqlite3.connect(home / "weald.db") as database:
            database.execute(change)
        told = weald("clusters", "--config", str(home), "--level", "groups", "--sort", "id").out
        return [re.split(" {2,}", line.strip())[4] for line in told.splitlines()[1:]]

    born = "UPDATE clusters SET group_born_publication = {} WHERE cluster_group = {}"
    newest = "(SELECT max(number) FROM publications)"
    clusters = "UPDATE clusters SET born_publication = {} WHERE cluster_group = 2"
    # A new name of clusters that were there is nothing new.
    assert since(born.format(newest, 2))[1] not in ("", "new")
    events = "UPDATE lineage_events SET happened_at = (SELECT max(published_at) FROM publications)"
    since(events)
    assert since(clusters.format(newest))[1] == "new"
    # Which is no longer kept.
    assert since("DELETE FROM publications WHERE number = 1")[0] == "publication 1"
    # Which nobody knows: the clusters follow.
    assert since(born.format("NULL", 1))[0].split(", ")[0].isdigit()


def test_a_short_list_says_that_there_are_more(weald: Command) -> None:
    result = weald("clusters", "--limit", "1", "--output", "json")
    assert len(json.loads(result.out)) == 1
    assert "1 of 2 clusters; --limit 2 shows all" in result.err


def test_retired_clusters_are_shown_when_asked_for(weald: Command) -> None:
    rows = json.loads(weald("clusters", "--retired", "--output", "json").out)
    live = [row for row in rows if row["retired_publication"] is None]
    assert len(live) == 2
    assert sum(row["size"] for row in live) == N_GOOD


@pytest.mark.parametrize("form", FORMS)
def test_one_cluster(form: str, weald: Command) -> None:
    largest = json.loads(weald("clusters", "--output", "json").out)[0]["cluster"]
    result = weald("cluster", str(largest), "--members", "3", "--output", form)
    assert result.code == 0
    if form != "json":
        assert result.out
        return
    answer = json.loads(result.out)
    assert answer["cluster"] == largest
    assert answer["lineage"][0]["kind"] == "birth"
    assert len(answer["members"]) == 3
    assert set(answer["members"][0]) == {"key", "time", "x", "y"}


def test_a_cluster_in_a_table_has_no_empty_parts(weald: Command) -> None:
    told = weald("cluster", "1", "--members", "0", "--typical", "0").out.splitlines()
    assert "lineage" in told
    born = json.loads(weald("cluster", "1", "--output", "json").out)["born"]
    assert any(re.fullmatch(f"since +{born}", line) for line in told)
    assert not {"members", "typical members", "borderline members"} & set(told)


def test_clusters_are_filtered_sorted_and_paged(weald: Command) -> None:
    every = json.loads(weald("clusters", "--output", "json").out)
    ids = [row["cluster"] for row in every]
    assert [row["size"] for row in every] == sorted((row["size"] for row in every), reverse=True)
    assert {row["cluster"] for row in every if row["size"] >= 100} == {
        row["cluster"]
        for row in json.loads(weald("clusters", "--min-size", "100", "-o", "json").out)
    }
    first = weald("clusters", "--limit", "1", "--output", "json")
    assert [row["cluster"] for row in json.loads(first.out)] == ids[:1]
    assert f"--cursor {ids[0]} goes on" in first.err
    rest = json.loads(weald("clusters", "--cursor", str(ids[0]), "--output", "json").out)
    assert [row["cluster"] for row in rest] == ids[1:]
    assert weald("clusters", "--cursor", "999").code == ExitCode.NOT_FOUND
    assert json.loads(weald("clusters", "--since", "2100-01-01", "-o", "json").out) == []
    left = json.loads(weald("clusters", "--containing", "x at most", "--output", "json").out)
    assert {row["features"]["x"]["centre"] < 0 for row in left} == {True}
    for sort in ("growth", "stability", "anomaly", "born", "id"):
        rows = json.loads(weald("clusters", "--sort", sort, "--output", "json").out)
        assert sorted(row["cluster"] for row in rows) == sorted(ids)


def test_a_cluster_is_told_by_what_makes_it_different(weald: Command) -> None:
    largest = json.loads(weald("clusters", "--limit", "1", "--output", "json").out)[0]
    assert 0.0 <= largest["anomaly"] <= 1.0
    assert 0.5 < largest["growth"] < 2.0
    assert largest["born"].startswith("20")
    answer = json.loads(weald("cluster", str(largest["cluster"]), "--output", "json").out)
    x = next(row for row in answer["contrast"] if row["feature"] == "x")
    assert x["typical"] * x["rest"] < 0
    assert x["information"] == pytest.approx(1.0)
    assert x["sentence"].endswith(": 100 %, elsewhere 0 %")
    side = "at most" if x["typical"] < 0 else "at least"
    assert x["sentence"].startswith(f"x {side} ")
    assert answer["description"] in {row["sentence"] for row in answer["contrast"]}
    fits = [row["log_density"] for row in answer["typical_members"]]
    assert fits == sorted(fits, reverse=True)
    assert answer["borderline_members"][0]["log_density"] < fits[-1]
    assert sum(part["size"] for part in answer["parts"]) == largest["size"]


def test_a_tree_is_cut_into_parts(weald: Command) -> None:
    largest = json.loads(weald("clusters", "--limit", "1", "--output", "json").out)[0]
    rows = json.loads(weald("tree", str(largest["cluster"]), "--parts", "5", "-o", "json").out)
    leaves = [row for row in rows if row["leaf"]]
    assert len(leaves) == 5
    assert sum(row["size"] for row in leaves) == largest["size"]
    assert len(json.loads(weald("tree", str(largest["cluster"]), "--parts", "1", "-o", "json").out))
    assert weald("tree", "999").code == ExitCode.NOT_FOUND
    assert weald("tree", str(largest["cluster"])).out.splitlines()[0].split()[0] == "size"


def test_a_cluster_of_which_a_sample_holds_nothing_has_no_tree(
    filled: Path, tmp_path: Path, weald: Command
) -> None:
    home = tmp_path / "sampled"
    shutil.copytree(filled, home)
    left, other = (row["cluster"] for row in json.loads(weald("clusters", "-o", "json").out))
    with sqlite3.connect(home / "weald.db") as database:
        database.execute("UPDATE observations SET left_seq = 999 WHERE cluster = ?", (left,))
    answer = weald("tree", str(left), "--config", str(home))
    assert answer.code == ExitCode.NOT_FOUND
    assert f"holds none of the 150 observations of cluster {left}" in answer.err
    assert weald("tree", str(other), "--config", str(home)).code == 0


def test_assign_weighs_and_shows_the_tree(weald: Command) -> None:
    (row,) = json.loads(weald("assign", "k0", "--top", "2", "--output", "json").out)
    assert row["top"][0]["cluster"] == row["cluster"]
    assert len(row["top"]) == 2
    assert row["top"][0]["probability"] > 0.9 > row["top"][1]["probability"]
    assert row["path"][-1] == 1
    assert row["path"] == sorted(row["path"], reverse=True)
    assert row["log_predictive"] < 0
    assert "weighed" in weald("assign", "k0", "--top", "1").out


def test_a_cluster_that_never_was_is_not_found(weald: Command) -> None:
    result = weald("cluster", "999")
    assert result.code == ExitCode.NOT_FOUND
    assert "never had a cluster 999" in result.err
    assert "Next: weald clusters" in result.err


@pytest.mark.parametrize("form", FORMS)
def test_assign_answers_for_each_key(form: str, weald: Command) -> None:
    result = weald("assign", "k0", "k1", "k2", "--output", form)
    assert result.code == 0
    if form == "json":
        rows = {row["key"]: row for row in json.loads(result.out)}
        assert rows["k0"]["cluster"] == rows["k2"]["cluster"] != rows["k1"]["cluster"]
        assert rows["k1"]["event_time"] == "2023-11-14T22:13:21Z"
        assert set(rows["k1"]["values"]) == {"x", "y"}
        assert rows["k1"]["probability"] > 0.9
        assert rows["k1"]["stability"] > 0.9


def test_assign_prints_what_is_known_and_says_what_is_not(weald: Command) -> None:
    result = weald("assign", "k0", "nobody", "--output", "json")
    assert result.code == ExitCode.NOT_FOUND
    assert [row["key"] for row in json.loads(result.out)] == ["k0"]
    assert "no observation with key nobody" in result.err


def test_records_without_keys_are_called_by_number(tmp_path: Path, weald: Command) -> None:
    rows = "".join(f'{{"x": {9.0 * (i % 2)}{i}}}\n' for i in range(60))
    (tmp_path / "r.jsonl").write_text(rows)
    (tmp_path / "weald.toml").write_text(
        "[stream]\nname = 'plain'\nsource = 'file'\npath = 'r.jsonl'\n"
        "[schema]\nfields = [{ name = 'x' }]\n[monitoring]\nenabled = false\n"
    )
    home = ("--config", str(tmp_path))
    assert weald("run", *home).code == 0
    (cluster, *_) = json.loads(weald("clusters", *home, "-o", "json").out)
    (leaf, *_) = json.loads(weald("tree", str(cluster["cluster"]), *home, "-o", "json").out)
    told = json.loads(weald("assign", *leaf["keys"], *home, "-o", "json").out)
    assert [row["key"] for row in told] == leaf["keys"]
    assert {row["cluster"] for row in told} == {cluster["cluster"]}
    for name in ("#61", "k1", f"#{10**30}"):
        unknown = weald("assign", name, *home)
        assert unknown.code == ExitCode.NOT_FOUND
        assert f"no observation is {name}" in unknown.err
        assert "weald tree ID" in unknown.err
    assert weald("assign", "#1", "--as-of", "1h", *home).code == ExitCode.USAGE
    assert json.loads(weald("assign", "#2", *home, "-o", "json").out)[0]["seq"] == 2


def test_assign_as_of_a_publication_and_of_a_time(weald: Command) -> None:
    first = weald("assign", "k0", "--as-of", "publication:1", "--output", "json")
    assert json.loads(first.out)[0]["key"] == "k0"
    later = weald("assign", "k299", "--as-of", "publication:1")
    assert later.code == ExitCode.NOT_FOUND
    never = weald("assign", "k0", "--as-of", "publication:99")
    assert never.code == ExitCode.NOT_FOUND
    assert "has no publication 99, but 1 to " in never.err
    assert "k0" not in never.err
    before = weald("assign", "k0", "--as-of", "2001-01-01T00:00:00Z")
    assert before.code == ExitCode.NOT_FOUND
    wrong = weald("assign", "k0", "--as-of", "yesterday")
    assert wrong.code == ExitCode.USAGE
    assert "expected ISO 8601" in wrong.err


def test_a_moment_that_is_forgotten_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="oldest"), translated():
        raise MomentForgotten("the oldest is another")


def test_moments_are_read_as_people_write_them() -> None:
    from weald.cli.terminal.moments import parse_moment

    assert parse_moment("publication:12") == AsOf(publication=12)
    assert parse_moment("1700000000.5") == AsOf(time=1_700_000_000.5)
    assert parse_moment("2023-11-14T22:13:20Z") == AsOf(time=1_700_000_000.0)
    assert parse_moment("2023-11-14T23:13:20+01:00") == AsOf(time=1_700_000_000.0)
    assert parse_moment("2023-11-14 22:13:20") == AsOf(time=1_700_000_000.0)


@pytest.mark.parametrize("form", FORMS)
def test_status_accounts_for_every_record(form: str, weald: Command) -> None:
    result = weald("status", "--output", form)
    assert result.code == 0
    if form == "json":
        answer = json.loads(result.out)
        assert (answer["n_received"], answer["n_inserted"]) == (N_GOOD + N_BAD, N_GOOD)
        assert (answer["n_dead"], answer["n_duplicate"]) == (N_BAD, 0)
        assert sum(answer["dead_letter_reasons"].values()) == N_BAD
        assert answer["partitions"][0]["next_offset"] == N_GOOD + N_BAD
    if form == "table":
        name, verdict, settled, *_ = result.out.splitlines()
        assert (name.split(), verdict.split()) == (["name", "pairs"], ["verdict", "believe", "it"])
        answer = json.loads(weald("status", "--output", "json").out)
        moved = answer["n_moved"]
        stayed = 100 * (N_GOOD - moved) // N_GOOD
        word, told = settled.split(maxsplit=1)
        assert word == "settled"
        assert told.startswith(f"yes: {stayed} % of the observations stayed in their cluster")
        assert (answer["verdict"], answer["settled"]) == ("believe it", told)


@pytest.mark.usefixtures("weald")
def test_the_shortcut_of_status_tells_what_the_long_way_tells() -> None:
    from weald.cli.commands.status import _at_once, _in_full

    at_once = _at_once(open_settings(None, None).settings)
    assert at_once is not None
    assert at_once == _in_full(None, None, None)
    assert _at_once(open_settings(None, None, {"stream.name": "other"}).settings) is None


def test_status_loads_nothing_heavy(filled: Path) -> None:
    heavy = ("numpy", "scipy", "numba", "sqlalchemy", "kafka", "redis", "rich")
    code = (
        "import sys; from weald.cli.main import main\n"
        f"try: main(['status', '--config', {str(filled)!r}])\n"
        "except SystemExit as left: assert not left.code\n"
        f"sys.exit(' '.join(name for name in {heavy!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert done.stdout.startswith("name")


def test_status_says_that_a_stream_is_warming_up(
    weald: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weald.cli.config.settings import load
    from weald.monitoring.exporter import Exporter
    from weald.monitoring.health import Health
    from weald.monitoring.metrics import Metrics
    from weald.monitoring.settings import MonitoringSettings

    metrics = Metrics("slow", reasons=[], version="0")
    metrics.held(37)
    with Exporter(MonitoringSettings(port=0), metrics.registry, Health()) as exporter:
        port = exporter.url.rpartition(":")[2]
        (tmp_path / "weald.toml").write_text(
            f"[stream]\nname = 'slow'\n[monitoring]\nport = {port}\n"
            "[storage]\nurl = 'sqlite:///none.db'\n"
        )
        monkeypatch.setenv("WEALD_CONFIG", str(tmp_path / "weald.toml"))
        assert load().settings.stream.name == "slow"
        result = weald("status")
    assert result.code == ExitCode.NOT_READY
    assert "warming up: 37 of 200 observations" in result.err
    assert "model.warmup_records=50" in result.err


def test_predict_answers_and_changes_nothing(weald: Command, tmp_path: Path) -> None:
    before = weald("status", "--output", "json").out
    path = tmp_path / "new.jsonl"
    path.write_text('{"x": -10, "y": 5, "id": "q"}\n{"x": 10, "y": -5}\n{"x": 90, "y": 90}\n')
    rows = json.loads(weald("predict", str(path), "--output", "json").out)
    left = json.loads(weald("assign", "k0", "--output", "json").out)[0]["cluster"]
    assert rows[0]["key"] == "q"
    assert rows[0]["cluster"] == left
    assert rows[1]["cluster"] not in (left, None)
    assert rows[0]["probability"] > 0.99
    assert rows[2]["cluster"] is None
    assert rows[2]["log_density"] < rows[0]["log_density"] - 10
    assert weald("status", "--output", "json").out == before


@pytest.mark.usefixtures("weald")
def test_predict_weighs_clusters_by_the_prior_that_was_learned() -> None:
    from weald.answers.prediction import PublishedPredictive
    from weald.cli.terminal.opened import reading
    from weald.treecore.prior import build_prior

    with reading(None, None) as state:
        learned = state.reader.publications(state.stream)[-1].prior_params
        assert learned["alpha"] != state.spec.prior_params["alpha"]
        sizes = np.array([row.n_observations for row in state.reader.clusters(state.stream)])
        expected = build_prior("dp", learned).log_predictive(sizes)
        np.testing.assert_array_equal(PublishedPredictive.of(state).clusters.log_weights, expected)


def test_predict_reads_csv_and_says_what_it_refuses(weald: Command, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("x,y\n-10,5\nmany,5\n")
    result = weald("predict", str(path), "--output", "csv")
    assert result.code == ExitCode.FAILURE
    assert len(list(csv.DictReader(io.StringIO(result.out)))) == 1
    assert "row 1 refused: wrong_type" in result.err


def test_predict_reads_standard_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weald.cli.main", "predict", "-", "-o", "jsonl"],
        input='{"x": 10, "y": -5}\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["probability"] > 0.99


def test_another_stream_is_not_found_and_those_there_are_are_named(weald: Command) -> None:
    result = weald("clusters", "--stream", "other")
    assert result.code == ExitCode.NOT_FOUND
    assert "the database holds pairs" in result.err
    assert "Next: weald status --stream pairs" in result.err


def test_running_again_finds_nothing_new(weald: Command) -> None:
    before = json.loads(weald("status", "--output", "json").out)
    assert weald("run").code == 0
    after = json.loads(weald("status", "--output", "json").out)
    for name in ("n_received", "n_inserted", "n_clusters", "publication"):
        assert after[name] == before[name]
