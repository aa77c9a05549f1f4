"""The test files near a change: those changed, and those that import a changed file by name.

    python -m tests.near            # since the branch left main, or of the last commit on main
    python -m tests.near --since REF

Prints one path a line, those that import most of the changed files first.
"""

import argparse
import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["changed_files", "imported_modules", "near"]

ROOT = Path(__file__).parents[1]
_MOST = 12
# Checks that read all sources, in seconds.
_ALWAYS = "tests/test_architecture.py"


def _git(*arguments: str) -> list[str]:
    told = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return told.split()


def changed_files(since: str | None = None) -> list[str]:
    """Python files that differ from a commit, new ones included, as paths from the root."""
    if since is None:
        head = _git("rev-parse", "HEAD")[0]
        (since,) = _git("merge-base", "main", "HEAD")
        if since == head:
            since = "HEAD~1"
    changed = _git("diff", "--name-only", "--diff-filter=d", since, "--", "*.py")
    return changed + _git("ls-files", "--others", "--exclude-standard", "--", "*.py")


def module_of(path: str) -> str:
    """Name by which tests import a file."""
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return dotted if path.startswith(("tests/", "benchmarks/")) else f"weald.{dotted}"


def imported_modules(source: str) -> Iterator[str]:
    """Modules that a source names in its imports; of ``from a import b``, both a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def near(changed: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Those of the test files that are changed, or that import what is, most imports first."""
    wanted = {module_of(path) for path in changed}
    found: Counter[str] = Counter()
    for path in tests:
        if module_of(path) in wanted:
            found[path] = len(wanted) + 1
            continue
        source = (ROOT / path).read_text(encoding="utf-8")
        found[path] = len(wanted.intersection(imported_modules(source)))
    return [path for path, count in found.most_common() if count][:_MOST]


def main() -> None:
    """Print what is near."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--since", help="a commit; by default where the branch left main")
    tests = _git("ls-files", "--", "tests/**/test_*.py", "tests/test_*.py")
    found = near(changed_files(parser.parse_args().since), tests)
    sys.stdout.write("\n".join(dict.fromkeys([_ALWAYS, *found])) + "\n")


if __name__ == "__main__":
    main()
