"""A folder of files of one kind, read as one."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weald.cli.errors import NotFoundError, UsageError

from .refused_rows import tell_refused
from .sample import Oddities, numbered_records, refuse_without_records, tell_oddities
from .table import open_text
from .text_table import LOOKED_AT, SEPARATORS, is_table

if TYPE_CHECKING:
    from weald.stream.record.formats import Format

__all__ = ["files_of", "form_of", "records_in"]

# What log rotation puts behind a name: app.log.1, app.log-20260101, app.log.2.gz.
_ROTATED = re.compile(r"([.-]\d+)+$")


def files_of(path: Path) -> list[Path]:
    """Files of a folder in the order of their names, hidden ones left out; a file alone.

    Raises
    ------
    NotFoundError, UsageError
        If there is none, or they are of more than one kind.
    """
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.iterdir() if each.is_file() and each.name[0] != ".")
    if not files:
        raise NotFoundError(f"{path}: no files in this folder")
    forms = {form_of(each): each.name for each in reversed(files)}
    if len(forms) > 1:
        told = ", ".join(f"{name} ({form})" for form, name in sorted(forms.items()))
        raise UsageError(
            f"{path}: files of more than one kind: {told}; a folder is read as one set of rows"
        )
    return files


def form_of(path: Path) -> Format:
    """Kind of a file by its name, rotated or not; where that says nothing, by its first lines.

    A file called .txt may be a log or a table.
    """
    from weald.stream.record.formats import SUFFIXES, format_of
    from weald.stream.settings import StreamSettings

    name = _ROTATED.sub("", path.name.removesuffix(".gz"))
    suffix = Path(name).suffix.lower()
    known = (suffix in SUFFIXES and suffix != ".txt") or suffix in (".jsonl", ".ndjson", ".json")
    if known or not path.is_file():
        return format_of(StreamSettings(source="file", path=name))
    try:
        with open_text(path) as lines:
            head = list(itertools.islice(lines, LOOKED_AT))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if "".join(head).lstrip()[:1] == "{":
        return "jsonl"
    return "csv" if is_table(head, SEPARATORS) else "lines"


def records_in(path: Path, separators: str) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Yield file name, line, row and record of all files that ``files_of`` finds.

    Rows count from 0 in each file, those that are left out as well.

    Raises
    ------
    NotFoundError, UsageError
        As reading each file does, and if tables do not have the same columns.
    """
    header: list[str] = []
    for file in files_of(path):
        form = form_of(file)
        odd = Oddities()
        at = -1
        for at, (line, record) in enumerate(numbered_records(file, separators, form, odd)):
            if form == "csv" and not at:
                own = list(record)
                header = header or own
                if own != header:
                    raise UsageError(
                        f"{file}: other columns ({', '.join(own)}) than the files before it "
                        f"({', '.join(header)})"
                    )
            n_before = bisect_left(odd.refused, line, key=attrgetter("line"))
            yield file.name, line, at + n_before, record
        refuse_without_records(file, odd, at + 1)
        tell_oddities(file, odd)
        tell_refused(
            file, odd.refused, at + 1 + len(odd.refused), "cannot be read, and are left out"
        )
