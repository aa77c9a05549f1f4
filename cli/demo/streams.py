"""The bundled streams: what a record is, which numbers are clustered, and how clusters read."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

__all__ = ["STREAMS", "BundledStream", "DemoFeature", "Record", "Window"]

Row = Mapping[str, str]
Record = dict[str, Any]


@dataclass(frozen=True)
class DemoFeature:
    """One number of an observation: its name in the record, and how people read it.

    Parameters
    ----------
    name : str
        Name in the record and in ``[schema]``.
    title : str
        Heading with the unit.
    """

    name: str
    title: str


@dataclass(frozen=True)
class Window:
    """A part of the plane that gets a panel of the picture; None is as far as the data go."""

    title: str
    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None


@dataclass(frozen=True)
class BundledStream:
    """A stream that ships with the package.

    Parameters
    ----------
    name : str
    title : str
        One line: what happened, where and when.
    resource : str
        File in ``data/``; its origin and licence are in ``data/PROVENANCE.md``.
    to_record : callable
        From a row of the file to the record that is sent.
    features : tuple of Feature
        What is clustered.
    plane : tuple of str
        The two features that span the picture.
    windows : tuple of Window
        Its panels.
    places : callable
        From a record to names of where it was, the narrowest first; no part of the model.
    stream, model, refinement : mapping
        What its ``weald.toml`` says in those sections.
    """

    name: str
    title: str
    resource: str
    to_record: Callable[[Row], Record]
    features: tuple[DemoFeature, ...]
    plane: tuple[str, str]
    windows: tuple[Window, ...]
    places: Callable[[Record], tuple[str, ...]]
    model: Mapping[str, Any]
    refinement: Mapping[str, Any]
    stream: Mapping[str, Any] = field(default_factory=dict)

    def records(self) -> Iterator[Record]:
        """Yield the records in the order of the file, which is that of time."""
        source = files(__package__).joinpath("data", self.resource)
        with source.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                yield self.to_record(row)


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def _earthquake(row: Row) -> Record:
    return {
        "id": row["id"],
        "time": int(row["time_ms"]),
        "longitude": _number(row["longitude"]),
        "latitude": _number(row["latitude"]),
        "depth_km": _number(row["depth_km"]),
        "magnitude": _number(row["mag"]),
        "place": row["place"],
    }


def _town_and_region(record: Record) -> tuple[str, ...]:
    """Take "9km NE of Aguanga, CA" apart, with California spelt in one way."""
    near, _, region = str(record["place"]).rpartition(",")
    region = {"CA": "California", "MX": "Mexico"}.get(region.strip(), region.strip())
    town = near.rpartition(" of ")[2].strip()
    return (f"{town}, {region}", region) if town else (region,)


def _diagonal(*values: float) -> list[list[float]]:
    return [
        [value if i == j else 0.0 for j in range(len(values))] for i, value in enumerate(values)
    ]


def _flight(row: Row) -> Record:
    scheduled = row["sched_dep"]
    hour, minute = scheduled[11:].split(":")
    return {
        "id": f"{row['carrier']}{row['flight']}-{row['origin']}-{scheduled[:10]}",
        # New York keeps Eastern Standard Time throughout January and February.
        "time": f"{scheduled}:00-05:00",
        "hour": int(hour) + int(minute) / 60,
        "distance": _number(row["distance"]),
        "dep_delay": _number(row["dep_delay"]),
        "arr_delay": _number(row["arr_delay"]),
        "origin": row["origin"],
        "destination": row["dest"],
    }


STREAMS = {
    stream.name: stream
    for stream in (
        BundledStream(
            name="earthquakes",
            title="earthquakes of one week, 31 January to 7 February 2018 (USGS)",
            resource="earthquakes.csv.gz",
            to_record=_earthquake,
            features=(
                DemoFeature("longitude", "longitude °"),
                DemoFeature("latitude", "latitude °"),
                DemoFeature("depth_km", "depth km"),
                DemoFeature("magnitude", "magnitude"),
            ),
            plane=("longitude", "latitude"),
            windows=(
                Window("the world"),
                Window("the western United States", (-126.0, -108.0), (31.0, 49.0)),
            ),
            places=_town_and_region,
            # Before any data a swarm is expected to spread over half a degree, 5 km of depth and
            # half a magnitude. Left to the data as a whole, the scale would be that of the globe.
            model={
                "params.kappa": 0.01,
                "params.nu": 6.0,
                "params.psi": _diagonal(0.25, 0.25, 25.0, 0.25),
            },
            refinement={"every_records": 100, "publish_every_records": 200, "rounds": 4},
        ),
        BundledStream(
            name="flights",
            title="departures from New York City, January and February 2013",
            resource="flights.csv.gz",
            to_record=_flight,
            features=(
                DemoFeature("hour", "hour"),
                DemoFeature("distance", "distance mi"),
                DemoFeature("dep_delay", "departure delay min"),
                DemoFeature("arr_delay", "arrival delay min"),
            ),
            plane=("distance", "arr_delay"),
            windows=(
                Window("all flights"),
                Window("up to two hours late", (0.0, 2700.0), (-80.0, 120.0)),
            ),
            places=lambda record: (str(record["destination"]),),
            model={},
            refinement={"every_records": 1000, "publish_every_records": 5000, "rounds": 2},
            # The blizzard of 8 and 9 February cancelled most flights of two days.
            stream={"dead_letter_share": 1.0},
        ),
    )
}
