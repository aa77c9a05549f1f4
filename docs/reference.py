"""The reference pages of the site, made from the code before each build."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from inspect import cleandoc, getdoc
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from weald.mcmc.contract import Entry

# What a Python program imports, in the order in which it is met.
CLASSES = (
    "weald.stream.estimators.bayesian_clusterer.BayesianClusterer",
    "weald.stream.estimators.online_clusterer.OnlineBayesianClusterer",
    "weald.mcmc.estimate.predictive.Predictive",
    "weald.mcmc.offline.fit.FitSettings",
    "weald.mcmc.offline.fit.FitResult",
    "weald.treecore.family.interface.base.FamilySpec",
)
FUNCTIONS = (
    "weald.stream.estimators.inference_data.inference_data",
    "weald.mcmc.offline.fit.fit",
    "weald.mcmc.estimate.consensus.consensus_partition",
    "weald.mcmc.estimate.consensus.membership",
)

# What kernels may need.
NEEDS = {
    "chains": "other chains to take its guides from",
    "past": "the past of a population of chains to take its guides from",
    "product": "a prior of product form (`dp`, `pitman-yor`, `nggp`)",
    "entities": "the prior of the entity/mention model (`emm`)",
}


def write_all(folder: Path) -> None:
    """Write a page for each part of the reference."""
    folder.mkdir(exist_ok=True)
    for write in (commands, configuration, metrics, kernels, http, python):
        text = write().rstrip("\n") + "\n"
        file = folder / f"{write.__name__}.md"
        # What has not changed keeps its time, so that it is not built again.
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def commands() -> str:
    """Every command with its help, as the program prints it."""
    from typer.main import get_command

    from weald.cli.main import app

    parts = ["# Commands", "As `weald COMMAND --help` prints them.", ""]
    for path in _paths(get_command(app), ()):
        parts += [f"## weald {' '.join(path)}".rstrip(), "", "```text", _help(path), "```", ""]
    return "\n".join(parts)


def _paths(command: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield above
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _paths(inner, (*above, name))


def _help(path: tuple[str, ...]) -> str:
    from weald.cli.main import main

    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        main([*path, "--help"])
    return out.getvalue().strip()


def configuration() -> str:
    """Every setting with its default and its meaning."""
    from weald.cli.config.secrets import is_secret
    from weald.cli.config.settings import SECTIONS

    parts = [
        "# Configuration",
        "",
        "Flags win over the environment (`WEALD__SECTION__KEY`), which wins over `weald.toml`,",
        "which wins over these defaults. A secret may also come from a file: `key_file`.",
        "",
    ]
    for section, kind in SECTIONS.items():
        meaning = described(getdoc(kind) or "")
        parts += [f"## [{section}]", "", "| key | default | meaning |", "|---|---|---|"]
        for field in msgspec.structs.fields(kind):
            default = "secret" if is_secret(field.type) else _default(field)
            said = " ".join((meaning.get(field.name, ""), _choices(field.type)))
            said = said.strip().replace("|", "\\|")
            parts.append(f"| `{field.name}` | {default} | {said} |")
        parts.append("")
    return "\n".join(parts)


def _choices(kind: Any) -> str:
    """The names that a setting may have, where it is one of a few."""
    if get_origin(kind) is not Literal:
        return ""
    return f"One of {', '.join(f'`{name}`' for name in get_args(kind))}."


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if value is msgspec.NODEFAULT:
        value = None if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return "" if value is None else f"`{msgspec.json.encode(value).decode()}`"


def described(text: str) -> dict[str, str]:
    """What a numpydoc text says of each parameter or attribute, on one line each."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        head = re.fullmatch(r"(\w+(?:, \w+)*)(?: ?:.*)?", line)
        if line.startswith((" ", "\t")) and names:
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
        elif head and not line.startswith("-"):
            names = head.group(1).split(", ")
        elif line.strip():
            names = []
    return found


def metrics() -> str:
    """Every metric with its labels and its meaning."""
    from weald.monitoring.names import METRICS

    parts = [
        "# Metrics",
        "",
        "At `/metrics` of `weald run`. Every metric also has the label `stream`; no label takes",
        "the id of a cluster, the key of a record or an offset.",
        "",
        "| metric | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    every = METRICS.values() if isinstance(METRICS, dict) else METRICS
    for metric in every:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        parts.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(parts)


def kernels() -> str:
    """Every kernel with its claim, in the words of its own module."""
    from weald.mcmc.schedule.kernels import KERNELS, NETWORK_KERNELS
    from weald.mcmc.schedule.registry import SCHEDULES, entries

    parts = [
        "# Kernels",
        "",
        "What `weald fit --kernel` takes, and what each may claim. A name given alone runs alone;",
        "`auto` stands for "
        + ", ".join(f"`{name}`" for name in SCHEDULES["mixture"]["auto"])
        + ".",
        "",
    ]
    told: dict[str, str] = {}
    for name, entry in entries("mixture").items():
        parts += [f"## {name}", "", _about(entry, KERNELS[name].parts), "", _told(entry, told), ""]
    parts += ["# Kernels of networks", "", "What `weald fit --family irm --kernel` takes.", ""]
    for name, entry in entries("network").items():
        about = _about(entry, NETWORK_KERNELS[name].parts)
        parts += [f"## {name} (networks)", "", about, "", _told(entry, told), ""]
    return _plain("\n".join(parts))


def _told(entry: Entry, told: dict[str, str]) -> str:
    """The words of the kernel's own module, or who has had them already."""
    if entry.module in told:
        return f"As `{told[entry.module]}` above."
    told[entry.module] = entry.name
    return cleandoc(import_module(entry.module).__doc__ or "")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _about(entry: Entry, parts: tuple[str, ...]) -> str:
    """The registry's line of a kernel, and the moves that it counts, as a sentence or two."""
    needs = "".join(f" Needs {NEEDS[need]}." for need in entry.needs)
    return f"Claim: **{entry.claim}**. Moves: {_listed(parts)}.{needs}"


def _plain(text: str) -> str:
    """Code in single backticks, and references to papers in the specification left out."""
    text = re.sub(r":(?:func|mod|class|meth|data):`[~.]*([^`]+)`", r"`\1`", text)
    text = re.sub(r"\s*\(``[\w.-]+\.md``[^)]*\)", "", text)
    return text.replace("``", "`")


def http() -> str:
    """Every address, from the OpenAPI document."""
    from weald.cli.http.openapi import document

    parts = [
        "# HTTP",
        "",
        "`weald serve` answers about one stream; `/openapi.json` is the whole document. Answers",
        "carry the model's epoch as their `ETag`; every error is `application/problem+json`.",
        "",
    ]
    for path, operations in document("", token=False)["paths"].items():
        for method, operation in operations.items():
            parts += [f"## {method.upper()} {path}", "", f"{operation['summary']}.", ""]
            given = operation.get("parameters", [])
            if given:
                parts += ["| parameter | in | meaning |", "|---|---|---|"]
                parts += [f"| `{p['name']}` | {p['in']} | {p['description']} |" for p in given]
                parts.append("")
            answers = operation["responses"].items()
            parts += [f"- `{status}`: {answer['description']}" for status, answer in answers]
            parts.append("")
    return "\n".join(parts)


def python() -> str:
    """What a Python program imports."""
    parts = ["# Python", "", "The estimators need `pip install 'weald[notebook]'`.", ""]
    for kind, names in (("class", CLASSES), ("function", FUNCTIONS)):
        for name in names:
            members = [":members:"] if kind == "class" else []
            parts += [f"## {name.rpartition('.')[2]}", "", "```{eval-rst}"]
            parts += [f".. auto{kind}:: {name}", *(f"   {member}" for member in members)]
            parts += ["```", ""]
    return "\n".join(parts)
