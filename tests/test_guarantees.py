"""Every promise of docs/guarantees.md names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall((ROOT / "docs" / "guarantees.md").read_text())
    assert len(named) > 25
    for file, test in named:
        module = ast.parse((ROOT / file).read_text())
        defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
        assert test in defined, f"{file} has no {test}"
