"""One typed settings object, composed of each room's own part.

Precedence: flags > environment (``WEALD__SECTION__KEY``) > ``weald.toml`` > defaults. Every mistake
found is told in one message, each with where it was written, its key and what was expected there.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from weald.cli.errors import NotFoundError, UsageError
from weald.mcmc.settings import FeatureSettings, ModelSettings, RefinementSettings
from weald.monitoring.settings import MonitoringSettings
from weald.storage.settings import RedisSettings, RetentionSettings, StorageSettings
from weald.stream.settings import KafkaSettings, MemorySettings, SchemaSettings, StreamSettings
from weald.stream.worker.settings import WorkersSettings

from .http_settings import HttpSettings
from .secrets import FILE_SUFFIX, is_secret, read_secret, secret_keys

__all__ = [
    "FILE_NAME",
    "SECTIONS",
    "Loaded",
    "Settings",
    "default_settings",
    "find_file",
    "load",
    "parse_overrides",
]

FILE_NAME = "weald.toml"
DEMO_HOME = "weald-demo"
PREFIX = "WEALD__"
# Settings that name a file: of a secret, a certificate, a key.
PATHS = (FILE_SUFFIX, "ssl_cafile", "ssl_certfile", "ssl_keyfile")


class Settings(msgspec.Struct, frozen=True):
    """Everything that a command may need to know; one attribute for each section of the file."""

    stream: StreamSettings
    kafka: KafkaSettings
    schema: SchemaSettings
    features: FeatureSettings
    model: ModelSettings
    refinement: RefinementSettings
    workers: WorkersSettings
    memory: MemorySettings
    storage: StorageSettings
    retention: RetentionSettings
    redis: RedisSettings
    monitoring: MonitoringSettings
    http: HttpSettings


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "stream": StreamSettings,
    "kafka": KafkaSettings,
    "schema": SchemaSettings,
    "features": FeatureSettings,
    "model": ModelSettings,
    "refinement": RefinementSettings,
    "workers": WorkersSettings,
    "memory": MemorySettings,
    "storage": StorageSettings,
    "retention": RetentionSettings,
    "redis": RedisSettings,
    "monitoring": MonitoringSettings,
    "http": HttpSettings,
}


@dataclass(frozen=True)
class Given:
    """A value as somebody wrote it, with the place where it was written."""

    value: Any
    origin: str
    textual: bool


@dataclass(frozen=True)
class Loaded:
    """The settings in force, and where each of them comes from.

    Parameters
    ----------
    settings : Settings
        Validated values.
    file : Path or None
        The configuration file that was read.
    origins : mapping of str to str
        ``section.key`` to the file, variable or flag that set it; defaults are absent.
    """

    settings: Settings
    file: Path | None
    origins: Mapping[str, str]


def find_file(config: Path | None) -> Path | None:
    """Return the configuration file to read.

    The order is ``--config``, ``$WEALD_CONFIG``, ``./weald.toml``, ``./weald-demo/weald.toml``; the
    last makes what ``weald demo`` left behind answer from the folder where it was run.

    Raises
    ------
    NotFoundError
        When a file that was named does not exist. The last two may be missing.
    """
    named = config or (Path(os.environ["WEALD_CONFIG"]) if "WEALD_CONFIG" in os.environ else None)
    if named is not None:
        path = named / FILE_NAME if named.is_dir() else named
        if not path.is_file():
            by = "--config" if config else "WEALD_CONFIG"
            raise NotFoundError(f"{by} names {path}, which is no file", next_step="weald init")
        return path
    found = (path for path in (Path(FILE_NAME), Path(DEMO_HOME, FILE_NAME)) if path.is_file())
    return next(found, None)


def default_settings() -> Loaded:
    """Return the defaults, whatever the machine's environment and files say."""
    sections = {name: kind() for name, kind in SECTIONS.items()}
    return Loaded(msgspec.convert(sections, Settings, from_attributes=True), None, {})


def parse_overrides(texts: Sequence[str]) -> dict[str, str]:
    """Return ``section.key=value`` texts, as ``--set`` takes them, by key."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key.count(".") != 1:
            raise UsageError(f"--set {text}: expected section.key=value, as in --set model.seed=7")
        pairs[key.strip()] = value
    return pairs


def load(config: Path | None = None, flags: Mapping[str, Any] | None = None) -> Loaded:
    """Read and validate the settings.

    Parameters
    ----------
    config : Path, optional
        The file named on the command line.
    flags : mapping of str to object, optional
        ``section.key`` to a value given on the command line; None means that it was not given.

    Raises
    ------
    UsageError
        With every mistake found, each naming its place, its key and what was expected.
    """
    file = find_file(config)
    given: dict[str, Given] = {}
    problems: list[str] = []
    for source in (_from_file(file, problems), _from_environment(), _from_flags(flags or {})):
        given.update(_with_secrets(source, problems))
    problems += _unknown(given)
    sections = {name: _section(name, given, problems) for name in SECTIONS}
    if problems:
        head = "one setting is" if len(problems) == 1 else f"{len(problems)} settings are"
        raise UsageError(
            "\n  ".join([f"{head} wrong:", *problems]),
            next_step="weald config show --defaults    lists every key with its default",
        )
    origins = {key: value.origin for key, value in given.items()}
    return Loaded(msgspec.convert(sections, Settings, from_attributes=True), file, origins)


def _from_file(file: Path | None, problems: list[str]) -> dict[str, Given]:
    if file is None:
        return {}
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{file} cannot be read as TOML: {error}") from error
    given = {}
    for section, body in document.items():
        if not isinstance(body, Mapping):
            problems.append(f"{file}: {section}: expected a section, as in [{section}]")
            continue
        for key, value in body.items():
            anchored = _anchor(f"{section}.{key}", value, file.parent)
            given[f"{section}.{key}"] = Given(anchored, str(file), textual=False)
    return given


def _anchor(key: str, value: object, folder: Path) -> object:
    """Read relative paths from the file's own folder, so that it means the same from anywhere."""
    if not isinstance(value, str):
        return value
    sqlite = "sqlite:///"
    if value and (key in {"stream.path", "stream.avro_schema"} or key.endswith(PATHS)):
        return str(folder / value)
    if key == "storage.url" and value.startswith(sqlite) and value != f"{sqlite}:memory:":
        return sqlite + str(folder / value.removeprefix(sqlite))
    return value


def _from_environment() -> dict[str, Given]:
    given = {}
    for variable, text in os.environ.items():
        if variable.upper().startswith(PREFIX):
            key = variable[len(PREFIX) :].lower().replace("__", ".")
            given[key] = Given(text, f"environment {variable}", textual=True)
    return given


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Given]:
    return {
        key: Given(value, "command line", textual=isinstance(value, str))
        for key, value in flags.items()
        if value is not None
    }


def _with_secrets(source: dict[str, Given], problems: list[str]) -> dict[str, Given]:
    """Put what the file holds in place of each ``section.secret_file``."""
    for key in secret_keys(SECTIONS):
        named = source.pop(f"{key}{FILE_SUFFIX}", None)
        if named is None:
            continue
        if key in source:
            problems.append(f"{named.origin}: {key} and {key}{FILE_SUFFIX}: give one of the two")
        try:
            source[key] = Given(read_secret(str(named.value)), named.origin, textual=True)
        except ValueError as error:
            problems.append(f"{named.origin}: {key}{FILE_SUFFIX}: {error}")
    return source


def _unknown(given: Mapping[str, Given]) -> list[str]:
    known = [f"{s}.{field.name}" for s, kind in SECTIONS.items() for field in _fields(kind)]
    known += [f"{key}{FILE_SUFFIX}" for key in secret_keys(SECTIONS)]
    problems = []
    for key, value in given.items():
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            problems.append(f"{value.origin}: {key}: no such setting{hint}")
    return problems


def _section(name: str, given: Mapping[str, Given], problems: list[str]) -> msgspec.Struct | None:
    values = {}
    kind = SECTIONS[name]
    for field in _fields(kind):
        key = f"{name}.{field.name}"
        if key not in given:
            continue
        try:
            values[field.encode_name] = _convert(given[key], field.type)
        except msgspec.ValidationError as error:
            problems.append(f"{given[key].origin}: {_explain(key, error)}")
            return None
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        places = {given[f"{name}.{key}"].origin for key in values} or {"defaults"}
        problems.append(f"{', '.join(sorted(places))}: {_explain(name, error)}")
        return None


def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _convert(given: Given, kind: Any) -> Any:
    value = given.value
    # A secret is the text that was given, whatever it looks like.
    textual = given.textual and not is_secret(kind)
    if textual and value[:1] in ("[", "{"):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise msgspec.ValidationError(f"expected JSON: {error}") from error
    return msgspec.to_builtins(msgspec.convert(value, kind, strict=not textual))


def _explain(key: str, error: msgspec.ValidationError) -> str:
    """Rewrite msgspec's message, whose path starts at the converted value, in the file's terms."""
    message, _, path = str(error).partition(" - at `$")
    return f"{key}{path.rstrip('`')}: {message[:1].lower()}{message[1:]}"
