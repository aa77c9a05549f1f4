"""Whether sentences about rows of a file are so, by pandas and from the file alone.

Nothing of Weald takes part: a sentence is read as a person reads it, and its shares are counted
over the values that the file has.
"""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["false_sentences", "frame_of", "written"]

Mask = NDArray[np.bool_]

# In a column of names "none" is one of them.
GAPS = ["", "na", "n/a", "nan", "null", "?", "-"]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PERIODS = ("hour", "day", "week", "year")
# Seconds after which a moment begins anew.
SECONDS = {"day": 86_400.0, "week": 7 * 86_400.0}
MOMENT = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?"
SENTENCE = re.compile(r"(.+): ([<>]?\d+) %, elsewhere ([<>]?\d+) %")
# What parts the words of a line.
BETWEEN = r"\s=:,()\[\]{}\"';|<>"
# What a share is said to be is so to half a per cent.
HALF = 0.005


def frame_of(path: Path) -> pd.DataFrame:
    """The file as text and numbers, nested fields by their dotted paths."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        return pd.read_parquet(path)
    if name.endswith(".jsonl"):
        opened = pd.read_json(path, lines=True, convert_dates=False)
        return pd.json_normalize(json.loads(opened.to_json(orient="records")))
    if name.endswith(".log"):
        return pd.DataFrame({"line": path.read_text(encoding="utf-8").splitlines()})
    separator = "\t" if name.endswith(".tsv") else None
    return pd.read_csv(path, sep=separator, engine="python", dtype=str, keep_default_na=False)


def written(path: Path, column: str) -> list[str]:
    """A column of the file as it is written; names of digits stay as long as they are."""
    if ".jsonl" not in path.name:
        return [str(each) for each in frame_of(path)[column]]
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        frame = pd.json_normalize([json.loads(line) for line in lines])
    return [str(each) for each in frame[column]]


def false_sentences(description: str, frame: pd.DataFrame, inside: Mask) -> list[str]:
    """What is not so of a description of the rows that are ``inside`` (n)."""
    if description == "nothing sets it apart":
        return []
    where = _matching if list(frame.columns) == ["line"] else _held
    # Names of categories may hold a semicolon: a sentence ends with a share.
    found = []
    for sentence in re.split(r"(?<= %); ", description):
        told = SENTENCE.fullmatch(sentence)
        if told is None:
            found.append(f"{sentence}: cannot be read")
            continue
        try:
            held = where(told[1], frame)
        except LookupError as error:
            found.append(f"{sentence}: {error}")
            continue
        shares = float(held[inside].mean()), float(held[~inside].mean())
        if not all(map(_is_so, told.groups()[1:], shares)):
            found.append(f"{sentence}: it is {shares[0]:.2%}, elsewhere {shares[1]:.2%}")
    return found


def _is_so(said: str, share: float) -> bool:
    if said.startswith("<"):
        return 0.0 < share < float(said[1:]) / 100
    if said.startswith(">"):
        return float(said[1:]) / 100 < share < 1.0
    if said in ("0", "100"):
        return share == float(said) / 100
    return abs(share - float(said) / 100) <= HALF + 1e-9


def _held(what: str, frame: pd.DataFrame) -> Mask:
    """Where a rule holds."""
    if what.startswith("says "):
        word = re.compile(rf"(?<![^\W\d_]){re.escape(what[5:])}(?![^\W\d_])", re.IGNORECASE)
        texts = [name for name in frame.columns if frame[name].map(_is_text).any()]
        return np.any([frame[name].map(lambda v: bool(word.search(str(v)))) for name in texts], 0)
    if what.startswith("no "):
        column = frame[_column(what[3:], frame, whole=True)]
        return column.map(_is_gap).to_numpy()
    name = _column(what, frame)
    words = what[len(name) :].strip()
    column = frame[name]
    if (timed := _timed(column, words)) is not None:
        return timed
    interval = _interval(words)
    numbers = pd.to_numeric(column.mask(column.map(_is_gap)), errors="coerce")
    if interval is not None and numbers.notna().any():
        return numbers.between(*interval).to_numpy()
    names = column.map(_name)
    chosen = words.split(" or ")
    if not set(chosen) <= set(names):
        raise LookupError(f"no values {', '.join(chosen)}")
    return names.isin(chosen).to_numpy()


def _timed(column: pd.Series, words: str) -> Mask | None:
    for period in PERIODS:
        if words.startswith(f"({period}) "):
            return _moments(column, period, words.removeprefix(f"({period}) "))
    if re.match(r"(\d\d:\d\d|(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b)", words):
        return _moments(column, "week" if words[0].isalpha() else "day", words)
    if found := re.fullmatch(rf"(?:(since|until) )?({MOMENT})(?: to ({MOMENT}))?", words):
        return _between(column, *found.groups())
    return None


def _column(what: str, frame: pd.DataFrame, *, whole: bool = False) -> str:
    # By its path, or with low lines for dots.
    called = {form: name for name in frame.columns for form in (name.replace(".", "_"), name)}
    fits: Callable[[str], bool] = (
        (lambda name: what == name) if whole else (lambda name: what.startswith(f"{name} "))
    )
    found = [name for name in called if fits(name)]
    if not found:
        raise LookupError("no such column")
    return called[max(found, key=len)]


def _interval(words: str) -> tuple[float, float] | None:
    number = r"(-?\d[\d.]*)"
    if found := re.fullmatch(f"at most {number}", words):
        return -np.inf, float(found[1])
    if found := re.fullmatch(f"at least {number}", words):
        return float(found[1]), np.inf
    if found := re.fullmatch(number, words):
        return float(found[1]), float(found[1])
    if found := re.fullmatch(f"{number} to {number}(?:, {number} wide)?", words):
        low, high = float(found[1]), float(found[2])
        if found[3] is not None and abs(high - low - float(found[3])) > 1e-6 * abs(high - low):
            raise LookupError("its width is another")
        return low, high
    return None


def _moments(column: pd.Series, period: str, words: str) -> Mask:
    moments = pd.to_datetime(column.mask(column.map(_is_gap)), utc=True, format="ISO8601")
    since = (moments - pd.Timestamp("1970-01-05", tz="UTC")).dt.total_seconds()
    ends = [_seconds(each) for each in words.split(" to ")]
    low, high = ends[0], ends[-1]
    turned = (since - low) % SECONDS[period]
    if len(ends) == 1:
        return (turned == 0.0).to_numpy()
    # A moment that ends a whole turn is its end, not its beginning.
    return (turned <= ((high - low) % SECONDS[period] or SECONDS[period])).to_numpy()


def _between(column: pd.Series, kind: str | None, first: str, last: str | None) -> Mask:
    moments = pd.to_datetime(column.mask(column.map(_is_gap)), utc=True, format="ISO8601")
    low, high = (pd.Timestamp(each, tz="UTC") for each in (first, last or first))
    held = (moments >= low) if kind != "until" else moments.notna()
    return (held & (moments <= high) if kind != "since" else held).to_numpy()


def _seconds(moment: str) -> float:
    day, _, clock = moment.rpartition(" ")
    if moment in DAYS:
        return 86_400.0 * DAYS.index(moment)
    hours, minutes = clock.split(":")
    return 86_400.0 * (DAYS.index(day) if day else 0) + 3600.0 * int(hours) + 60.0 * int(minutes)


def _matching(template: str, frame: pd.DataFrame) -> Mask:
    """Where the words of a template are, in their order, each as a whole."""
    words = [re.escape(word) for word in template.split() if word != "<*>"]
    whole = (rf"(?<![^{BETWEEN}]){word}(?=[.!?]*(?:[{BETWEEN}]|$))" for word in words)
    return frame["line"].str.contains(".*".join(whole), regex=True).to_numpy()


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def _is_gap(value: Any) -> bool:
    if isinstance(value, list | np.ndarray):
        return False
    return value is None or str(value).strip().lower() in GAPS


def _name(value: Any) -> str:
    if isinstance(value, list | np.ndarray) or _is_gap(value):
        return ""
    return {"true": "yes", "false": "no"}.get(str(value).lower(), str(value))
