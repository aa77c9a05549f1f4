"""How the shards of an engine are started."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .engine import ShardLink
from .local import LocalShard

__all__ = ["linked"]


@contextmanager
def linked(engine: str) -> Iterator[Callable[[], ShardLink]]:
    """What starts a shard of the engine, "local" or "ray", while the block lasts.

    Raises SourceError where Ray is asked for and is not installed.
    """
    if engine == "local":
        yield LocalShard
        return
    from .ray_actors import RayShard, connect_to_ray, leave_ray

    connect_to_ray()
    try:
        yield RayShard
    finally:
        leave_ray()
