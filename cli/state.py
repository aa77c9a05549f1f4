"""Opens the stored state of one stream for questions; nothing here writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import NotFoundError, NotReadyError, UsageError
from .options import open_settings

if TYPE_CHECKING:
    from ..storage.base import ClusterRow, Reader, StreamSpec
    from ..stream.schema import Schema
    from ..treecore.family import FeatureSummary
    from .settings import Loaded

__all__ = ["State", "opened", "reading", "sqlite_file"]

FIRST_STEPS = "weald demo    makes a stream to look at; weald init and weald run start your own"


@dataclass(frozen=True)
class State:
    """One stream's stored state.

    Parameters
    ----------
    reader : Reader
    stream : str
        Its name.
    loaded : Loaded
        The settings that led here.
    """

    reader: Reader
    stream: str
    loaded: Loaded

    @cached_property
    def spec(self) -> StreamSpec:
        """What the stream is: family, prior and schema as they were when it began."""
        return self.reader.spec(self.stream)

    @cached_property
    def schema(self) -> Schema:
        """What a record looks like."""
        import msgspec

        from ..stream.schema import Schema
        from ..stream.settings import SchemaSettings

        return Schema.of(msgspec.convert(self.spec.schema, SchemaSettings))

    @property
    def network(self) -> bool:
        """Whether the stream is of edges: vertices are clustered then, which have no values."""
        return self.schema.network

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that clusters are described by."""
        return ("edges",) if self.network else self.schema.features

    @cached_property
    def columns(self) -> dict[str, int]:
        """Names of the numbers that an observation is shown with, and their places among all."""
        if self.network:
            return {}
        # Hashed counts mean nothing without the text that they came of.
        named = enumerate(zip(self.schema.features, self.schema.kinds, strict=True))
        return {name: place for place, (name, kind) in named if kind != "text"}

    def values(self, values: list[float]) -> dict[str, float]:
        """Return the numbers of an observation that people are shown, by name."""
        return {name: values[place] for name, place in self.columns.items()}

    @property
    def n_clustered(self) -> int:
        """How many there are to be in clusters: observations, or vertices."""
        if self.network:
            return sum(each.n_observations for each in self.reader.clusters(self.stream))
        return self.reader.status(self.stream).n_inserted

    def require_values(self, what: str) -> None:
        """Raise UsageError where the stream is a network, which has nothing of the kind."""
        if self.network:
            raise UsageError(
                f"stream {self.stream} is a network, whose vertices have {what}",
                next_step="weald clusters    lists its clusters; weald predict FILE weighs edges",
            )

    @cached_property
    def family(self) -> Any:
        """The family with the hyperparameters that the stream runs with."""
        from ..stream.model import family_of

        return family_of(self.spec)

    def describe(self, cluster: ClusterRow) -> list[FeatureSummary]:
        """Return one summary per feature, in the data's own units."""
        from ..stream.model import family_named

        return family_named(self.spec.family).describe(
            self.family, cluster.statistics, self.features
        )


@contextmanager
def reading(
    config: Path | None, set_: list[str] | None, stream: str | None = None
) -> Iterator[State]:
    """Open the state that the settings point to.

    Raises
    ------
    NotFoundError
        If the database holds no stream of that name; the message lists those it holds.
    NotReadyError
        If there is no database yet.
    """
    with opened(config, set_, stream) as (reader, loaded):
        yield State(reader, _choose(loaded, reader.streams()), loaded)


@contextmanager
def opened(
    config: Path | None, set_: list[str] | None, stream: str | None = None
) -> Iterator[tuple[Reader, Loaded]]:
    """Open the database that the settings point to, whatever streams it holds.

    Raises
    ------
    NotReadyError
        If there is no database yet.
    """
    from ..storage.reader import SqlReader

    loaded = open_settings(config, set_, {"stream.name": stream})
    storage = loaded.settings.storage
    _require_file(storage.url)
    with SqlReader(storage) as reader:
        yield reader, loaded


def sqlite_file(url: str) -> Path | None:
    """Return the file that a SQLite URL names; None for other databases."""
    prefix = "sqlite:///"
    return Path(url.removeprefix(prefix)) if url.startswith(prefix) else None


def _require_file(url: str) -> None:
    """Say in plain words that nothing has run here yet, before a migration is even thought of."""
    file = sqlite_file(url)
    if file is not None and not file.is_file():
        raise NotReadyError(f"there is no state yet: {file} does not exist", next_step=FIRST_STEPS)


def _choose(loaded: Loaded, known: list[str]) -> str:
    name = loaded.settings.stream.name
    if name in known:
        return name
    if not known:
        raise NotReadyError("the database holds no stream yet", next_step=FIRST_STEPS)
    if "stream.name" not in loaded.origins and len(known) == 1:
        return known[0]
    raise NotFoundError(
        f"no stream named {name}; the database holds {', '.join(known)}",
        next_step=f"weald status --stream {known[0]}",
    )
