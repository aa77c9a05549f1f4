"""Opens what the settings lead to: a stream's stored state, or the whole database."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weald.answers.stored_stream import StoredStream
from weald.cli.errors import NotFoundError, NotReadyError

from .output import scrub_notes

if TYPE_CHECKING:
    from weald.cli.config.settings import Loaded, Settings
    from weald.storage.queries.base import ClusterRow
    from weald.storage.queries.reader import SqlReader

__all__ = [
    "cluster_asked",
    "open_settings",
    "opened",
    "reading",
    "reading_with_settings",
    "sqlite_file",
    "stream_and_shard",
]

FIRST_STEPS = "weald demo    makes a stream to look at; weald init and weald run start your own"


def open_settings(
    config: Path | None, set_: list[str] | None, flags: Mapping[str, Any] | None = None
) -> Loaded:
    """Load the settings that a command's flags lead to.

    Parameters
    ----------
    config : Path, optional
        What ``--config`` gave.
    set_ : list of str, optional
        What ``--set`` gave.
    flags : mapping of str to object, optional
        ``section.key`` to what a flag of the command's own gave, or None.
    """
    from weald.cli.config.secrets import Scrubbing, secrets_of
    from weald.cli.config.settings import load, parse_overrides

    given = {key: value for key, value in (flags or {}).items() if value is not None}
    loaded = load(config, {**parse_overrides(set_ or []), **given})
    scrubbing = Scrubbing(secrets_of(loaded.settings))
    scrub_notes(scrubbing.scrubbed)
    for handler in logging.getLogger().handlers:
        handler.addFilter(scrubbing)
    return loaded


@contextmanager
def reading(
    config: Path | None,
    set_: list[str] | None,
    stream: str | None = None,
    *,
    undivided: bool = True,
) -> Iterator[StoredStream]:
    """Open the state that the settings point to; ``undivided`` as in `reading_with_settings`.

    Raises
    ------
    NotFoundError
        If the database holds no stream of that name; the message lists those it holds.
    NotReadyError
        If there is no database yet.
    """
    found = reading_with_settings(config, set_, stream, undivided=undivided)
    with found as (stored, _):
        yield stored


@contextmanager
def reading_with_settings(
    config: Path | None,
    set_: list[str] | None,
    stream: str | None = None,
    *,
    undivided: bool = True,
) -> Iterator[tuple[StoredStream, Settings]]:
    """Open the state that the settings point to, as :func:`reading`, and return these, too.

    Parameters
    ----------
    config, set_
        What the flags gave.
    stream : str, optional
        Name of the stream; ``NAME/s`` is shard s of it.
    undivided : bool
        Refuse a stream in shards, whose trees and snapshots its shards have; else questions
        about it are answered from all of them.
    """
    from weald.storage.queries.whole import WholeReader

    _, shard = stream_and_shard(stream)
    with opened(config, set_, stream) as (reader, loaded):
        name = _chosen(loaded, reader.streams())
        asked = reader
        if shard is not None:
            name = _part(name, shard, reader.parts(name))
        elif reader.spec(name).shards > 1:
            if undivided:
                raise NotReadyError(
                    f"stream {name} is in shards, and this is told of one of them only",
                    next_step=f"add --stream {name}/0",
                )
            asked = WholeReader(reader, name)
        yield StoredStream(asked, name), loaded.settings


def cluster_asked(state: StoredStream, cluster: int) -> ClusterRow:
    """Return one cluster, ended or not.

    Raises
    ------
    NotFoundError
        If there never was one of this id.
    """
    found = state.reader.cluster(state.stream, cluster)
    if found is None:
        raise NotFoundError(
            f"stream {state.stream} never had a cluster {cluster}",
            next_step="weald clusters    lists those it has",
        )
    return found


def stream_and_shard(stream: str | None) -> tuple[str | None, int | None]:
    """Take the name of a shard apart; the name of a stream has none."""
    if stream is None:
        return None, None
    name, found, shard = stream.rpartition("/")
    return (name, int(shard)) if found and shard.isdecimal() else (stream, None)


def _part(stream: str, shard: int, parts: Mapping[int, str]) -> str:
    if shard in parts:
        return parts[shard]
    known = f"its shards are {', '.join(parts.values())}" if parts else "it is not in shards"
    raise NotFoundError(
        f"stream {stream} has no shard {shard}: {known}",
        next_step=f"weald status --stream {stream}",
    )


@contextmanager
def opened(
    config: Path | None, set_: list[str] | None, stream: str | None = None
) -> Iterator[tuple[SqlReader, Loaded]]:
    """Open the database that the settings point to, whatever streams it holds.

    Raises
    ------
    NotReadyError
        If there is no database yet.
    """
    from weald.storage.queries.reader import SqlReader

    loaded = open_settings(config, set_, {"stream.name": stream_and_shard(stream)[0]})
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


def _chosen(loaded: Loaded, known: list[str]) -> str:
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
