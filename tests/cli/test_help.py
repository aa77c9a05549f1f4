"""Help that teaches: every command says what it does and shows what to type, at once."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from weald.cli.main import app

from .conftest import type_command

ROOT = Path(__file__).parents[2]
# Rooms and libraries whose import alone would spend the limit.
HEAVY = ("numpy", "scipy", "numba", "sqlalchemy", "kafka", "redis", "matplotlib", "rich")


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command and group with its full name."""
    pending: list[tuple[str, Any]] = [("weald", typer.main.get_command(app))]
    while pending:
        name, command = pending.pop()
        yield name, command
        inner = getattr(command, "commands", {})
        pending += [(f"{name} {part}", each) for part, each in inner.items()]


COMMANDS = dict(commands())
each_command = pytest.mark.parametrize("name", sorted(COMMANDS))


@each_command
def test_every_command_has_help_of_its_own(name: str) -> None:
    text = COMMANDS[name].help or ""
    assert len(text.split()) >= 4, f"{name} does not say what it does"


@each_command
def test_every_command_shows_an_example(name: str) -> None:
    epilog = COMMANDS[name].epilog or ""
    assert name in epilog, f"the help of {name} shows no example of it"


@each_command
def test_every_option_is_explained(name: str) -> None:
    for parameter in COMMANDS[name].params:
        explained = getattr(parameter, "help", None)
        assert explained, f"{name} {parameter.name} is not explained"


@each_command
def test_examples_use_options_that_exist(name: str) -> None:
    for line in (COMMANDS[name].epilog or "").splitlines():
        for command in re.split(r"[|;&]", line):
            words = [word for word in command.split() if not word.startswith("WEALD")]
            if words[:1] == ["weald"]:
                check_words(words)


def check_words(words: list[str]) -> None:
    name = "weald"
    rest = words[1:]
    while rest and f"{name} {rest[0]}" in COMMANDS:
        name = f"{name} {rest.pop(0)}"
    known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    known |= {option for parameter in COMMANDS[name].params for option in parameter.secondary_opts}
    used = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert used <= known | {"--help"}, f"{' '.join(words)} uses {used - known}"


def test_the_commands_of_the_design_are_there() -> None:
    expected = "init run status clusters cluster assign predict fit doctor db config warmup demo"
    assert {f"weald {name}" for name in expected.split()} <= set(COMMANDS)
    assert {"weald db upgrade", "weald db current", "weald db check"} <= set(COMMANDS)
    assert "weald config show" in COMMANDS


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from weald.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"sys.exit(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert "Usage: weald" in done.stdout


@pytest.mark.parametrize("name", sorted(name for name in COMMANDS if name.count(" ") == 1))
def test_a_command_alone_has_its_own_help(name: str) -> None:
    found = type_command(name.removeprefix("weald "), "--help")
    assert found.code == 0
    assert found.out.startswith(f"Usage: {name} ")


def test_a_command_loads_no_other_command() -> None:
    code = (
        "import sys; from weald.cli.main import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('weald.cli.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert "weald.cli.fit.command" in loaded
    assert not [name for name in loaded if name.startswith("weald.cli.commands.")]


DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "$ weald" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_the_documents_exist(document: Path) -> None:
    for line in document.read_text(encoding="utf-8").splitlines():
        command = line.partition("#")[0]
        if command.startswith("$ weald "):
            check_words(command.removeprefix("$ ").split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_in_the_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
