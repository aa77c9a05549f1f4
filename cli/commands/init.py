"""``weald init``: a ``weald.toml`` to start from."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.cli.errors import ConflictError, UsageError
from weald.cli.files.sample import propose
from weald.cli.terminal.columns_told import note_columns
from weald.cli.terminal.options import example
from weald.cli.terminal.output import note
from weald.stream.record.inference.proposal import SchemaProposal, declared

if TYPE_CHECKING:
    from weald.stream.record.schema import Schema

__all__ = ["Choices", "add_to", "configuration"]

TEMPLATE = """\
# Weald's configuration. `weald config show` lists every setting with its value and its origin.
# Any of them may come from the environment instead, as WEALD__SECTION__KEY; secrets always should.
# Relative paths are read from this file's folder.

[stream]
name = {name}
source = {source}    # kafka, file or stdin
{stream}
[kafka]
bootstrap_servers = {bootstrap_servers}
topic = {topic}

[schema]
# What makes an observation: numbers unless `kind` says count, flag, category, text or time.
# Two fields of kind vertex make a record an edge of a network (docs/networks.md).
# `path` reaches into nested records: path = "reading.celsius"
fields = [
{fields}
]
{key}
{time}

[features]
{features}
[model]
family = "auto"    # {family}
prior = "dp"
seed = 0
{model}
[refinement]
{refinement}
[memory]
# By default the model holds all that comes, or a uniform sample once half of the memory is full.
# window_records = 100000      # forget all but the newest observations, or
# leaf_budget = 50000          # hold at most so many: a uniform sample of all that came

[storage]
url = "sqlite:///weald.db"    # or postgresql+psycopg://weald@host/weald

[redis]
url = "redis://127.0.0.1:6379/0"
enabled = {redis}    # a copy of the clusters' statistics; SQL alone holds the truth

[monitoring]
port = 9464    # /metrics, /livez and /readyz on loopback
"""


FEATURES = """\
# log = ["amount"]        # numbers above 0 whose logarithm is clustered
# standardise = true      # divide numbers by their spreads, where these say nothing
"""
MANY = """\
components = "auto"       # {many} numbers are seen along principal components; "all": as they are
"""
CADENCE = """\
# every_records = 500            # observations between two refinements
# publish_every_records = 1000   # and between two publications; beyond 5,000 a tenth must be new
# pace = "counted"               # the same partition from the same topic, however many records wait
"""


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald init --from-sample readings.jsonl",
            "weald init --from-sample app.log    # lines of text: their kinds",
            "weald init --from-sample readings.csv --topic readings --bootstrap-servers kafka:9092",
            "weald init production --fields temperature,humidity --key sensor --time at",
        )
    )(init)


def init(
    home: Annotated[Path, typer.Argument(metavar="[DIR]", help="Folder to write it in.")] = Path(),
    *,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--from-sample",
            "--sample",
            metavar="FILE",
            help="Propose schema and family from this file, in any format that a stream may have.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the stream.")] = "weald",
    topic: Annotated[
        str | None, typer.Option("--topic", help="Read this topic; without it, the sample file.")
    ] = None,
    bootstrap_servers: Annotated[
        str, typer.Option("--bootstrap-servers", metavar="HOST:PORT", help="The Kafka brokers.")
    ] = "127.0.0.1:9092",
    fields: Annotated[
        str | None,
        typer.Option(
            "--fields",
            metavar="A,B",
            help="Paths of the numbers; with --from-sample, of the fields to cluster by.",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="Path of the record's key.")] = None,
    time: Annotated[str | None, typer.Option("--time", help="Path of the record's time.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a weald.toml to start from.

    With --from-sample the schema and the family are proposed from the first records of a file, with
    the reason for each field; look them over before the first run, because a stream keeps the
    schema it began with.
    """
    from weald.cli.config.settings import FILE_NAME

    target = home / FILE_NAME
    if target.exists() and not force:
        raise ConflictError(f"{target} exists already", next_step="weald init --force")
    proposal = _proposal(sample, fields)
    note_columns(proposal.reasons)
    note(f"  family: {family_of(proposal.fields)}, by the kinds of these fields")
    if (many := seen_along_components(proposal.fields)) is not None:
        note(
            f"  {many} numbers are seen along principal components, learned from the first records"
        )
    choices = Choices(
        SchemaProposal(proposal.fields, key or proposal.key, time or proposal.time),
        stream={"name": name, **_source(sample, topic, home)},
        kafka={"bootstrap_servers": bootstrap_servers, "topic": topic or "events"},
        # A file is looked at where there may be no server at all.
        redis=topic is not None or sample is None,
    )
    home.mkdir(parents=True, exist_ok=True)
    target.write_text(configuration(choices), encoding="utf-8")
    note(f"wrote {target}")
    where = "" if home == Path() else f" --config {target}"
    note(f"Next: weald doctor{where}; weald run{where}")


def _proposal(sample: Path | None, fields: str | None) -> SchemaProposal:
    if fields is None and sample is None:
        raise UsageError(
            "a schema needs the names of the numbers in a record",
            next_step="weald init --from-sample FILE, or weald init --fields A,B",
        )
    paths = [*map(str.strip, (fields or "").split(","))]
    if sample is None:
        return SchemaProposal([*paths], None, None)
    found = propose(sample)
    return found if fields is None else _only(found, paths, sample)


def _only(found: SchemaProposal, paths: Sequence[str], sample: Path) -> SchemaProposal:
    """The fields of these paths, as the sample has them."""
    by_path = {_path(each): each for each in found.fields}
    for path in paths:
        if path not in by_path:
            why = found.reasons.get(path, "no record has it")
            raise UsageError(
                f"{sample} has no field {path!r} to cluster by: {why}",
                next_step=f"choose among {', '.join(by_path)}",
            )
    told = {*paths, found.key, found.time}
    reasons = {path: why for path, why in found.reasons.items() if path in told}
    return replace(found, fields=[by_path[path] for path in paths], reasons=reasons)


def _path(field: str | Mapping[str, Any]) -> str:
    return field if isinstance(field, str) else str(field.get("path") or field["name"])


def _source(sample: Path | None, topic: str | None, home: Path) -> dict[str, str]:
    if topic is not None or sample is None:
        return {"source": "kafka"}
    # The file means the same from wherever the command is run.
    near = sample.resolve().is_relative_to(home.resolve())
    path = sample.resolve().relative_to(home.resolve()) if near else sample.resolve()
    return {"source": "file", "path": str(path)}


@dataclass(frozen=True)
class Choices:
    """What a new ``weald.toml`` says beyond the defaults.

    Parameters
    ----------
    schema : SchemaProposal
    stream : mapping of str to object
        ``name``, ``source``, and more settings of that section.
    kafka : mapping of str to str
        ``bootstrap_servers`` and ``topic``.
    model, refinement : mapping of str to object
        More settings of those sections; a key may be dotted.
    redis : bool
        Whether statistics are published.
    """

    schema: SchemaProposal
    stream: Mapping[str, Any]
    kafka: Mapping[str, str]
    model: Mapping[str, Any] = field(default_factory=dict)
    refinement: Mapping[str, Any] = field(default_factory=dict)
    redis: bool = True


def configuration(choices: Choices) -> str:
    """Return the text of a ``weald.toml``."""
    schema, stream, kafka = choices.schema, choices.stream, choices.kafka
    more = {key: value for key, value in stream.items() if key not in ("name", "source")}
    return TEMPLATE.format(
        name=_quoted(stream["name"]),
        source=_quoted(stream["source"]),
        stream=_assignments(more),
        bootstrap_servers=_quoted(kafka["bootstrap_servers"]),
        topic=_quoted(kafka["topic"]),
        family=f"{family_of(schema.fields)}, by the fields above",
        fields="\n".join(f"    {_field(each)}," for each in declared(schema.fields)),
        key=_line("key", schema.key, "path of the record's own key; `weald assign KEY` asks by it"),
        time=_line("time", schema.time, "path of the record's own time"),
        features=_features(schema.fields),
        model=_assignments(choices.model),
        refinement=_assignments(choices.refinement) or CADENCE,
        redis=json.dumps(choices.redis),
    )


def _assignments(values: Mapping[str, Any]) -> str:
    # Numbers, texts and lists of them read the same in JSON and in TOML.
    lines = (
        f"{key} = {_quoted(value) if isinstance(value, str) else json.dumps(value)}\n"
        for key, value in values.items()
    )
    return "".join(lines)


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which JSON leaves bare.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _field(field: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(_pair(key, value) for key, value in field.items()) + " }"


def _pair(key: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{key} = [{', '.join(map(_quoted, value))}]"
    return f"{key} = {_quoted(value)}"


def family_of(fields: Sequence[str | Mapping[str, Any]]) -> str:
    """Return the family that ``auto`` means for these fields."""
    from weald.stream.warm_up.family_choice import choose_family

    if seen_along_components(fields) is not None:
        return "gaussian or diagonal"
    name, params = choose_family(_schema(fields))
    parts = [part["family"] for part in params.get("parts", ())]
    return f"{name} of {', '.join(parts)}" if parts else name


def _features(fields: Sequence[str | Mapping[str, Any]]) -> str:
    many = seen_along_components(fields)
    return FEATURES + ("" if many is None else MANY.format(many=many))


def seen_along_components(fields: Sequence[str | Mapping[str, Any]]) -> int | None:
    """Number of columns, if they are so many that "auto" sees them along components."""
    from weald.mcmc.settings import FeatureSettings
    from weald.stream.warm_up.stored_transformation import sees_components

    schema = _schema(fields)
    return schema.dimension if sees_components(FeatureSettings(), "auto", schema) else None


def _schema(fields: Sequence[str | Mapping[str, Any]]) -> Schema:
    import msgspec

    from weald.stream.record.schema import Schema
    from weald.stream.settings import SchemaSettings

    settings = {"fields": declared(fields)}
    return Schema.of(msgspec.convert(settings, SchemaSettings))


def _line(setting: str, path: str | None, comment: str) -> str:
    return f"# {setting} = ...    # {comment}" if path is None else f"{setting} = {_quoted(path)}"
