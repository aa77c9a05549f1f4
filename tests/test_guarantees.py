"""Every promise of docs/guarantees.md names tests that exist."""

import ast
import re
from pathlib import Path

from tests.simulation.scenario import FAULTS

ROOT = Path(__file__).parents[1]
CLASSES = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
SIMULATED = re.compile(r"Simulated under ((?:`\w+`(?:,\s+)?)+)")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall((ROOT / "docs" / "guarantees.md").read_text())
    assert len(named) > 25
    for file, test in named:
        module = ast.parse((ROOT / file).read_text())
        defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
        assert test in defined, f"{file} has no {test}"


def test_the_classes_of_faults_are_those_that_are_simulated() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text()
    assert CLASSES.findall(text) == list(FAULTS)
    named = [name for names in SIMULATED.findall(text) for name in re.findall(r"\w+", names)]
    assert set(named) == set(FAULTS)
