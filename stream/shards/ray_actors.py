"""A shard as an actor of Ray, on any machine of its cluster.

The machines need Weald, the files under the same paths, and a folder that all of them see for what
shards keep: an actor may come back on another one.
"""

import os
from typing import Any

from weald.stream.errors import SourceError
from weald.stream.optional import optional_library

from .worker import ShardWorker

__all__ = ["RayShard", "connect_to_ray", "leave_ray"]


def _ray() -> Any:
    return optional_library("ray", "--engine ray", "ray")


def connect_to_ray(address: str | None = None) -> None:
    """Join the cluster at an address or in RAY_ADDRESS; where there is none, start one here.

    Raises SourceError where no cluster lets this process in.
    """
    # Nothing is reported to anybody unless a person has said so.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = _ray()
    if ray.is_initialized():
        return
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
        )
    except ConnectionError as error:
        raise SourceError(
            f"{error}. Is it the address in RAY_ADDRESS, and is the cluster's token here "
            "(RAY_AUTH_MODE=token, RAY_AUTH_TOKEN)?"
        ) from error


def leave_ray() -> None:
    """Leave the cluster, and end it if it was started here."""
    _ray().shutdown()


class RayShard:
    """An actor that answers bytes."""

    def __init__(self) -> None:
        ray = _ray()
        self._ray = ray
        # Ray's own restarts would bring it back without its rows: the engine starts another. No
        # processor is reserved, or more shards than processors would wait for ever.
        options = ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy="SPREAD")
        self._actor = options(ShardWorker).remote()
        self._answer: Any = None

    def send(self, message: bytes) -> bool:
        """Hand a message over; an actor that is gone says so when it is asked for the answer."""
        self._answer = self._actor.answer.remote(message)
        return True

    def receive(self) -> bytes | None:
        """Wait for the answer; None where the actor is gone."""
        try:
            answer: bytes = self._ray.get(self._answer)
        except self._ray.exceptions.RayActorError:
            return None
        return answer

    def close(self) -> None:
        """End the actor."""
        self._ray.kill(self._actor)
