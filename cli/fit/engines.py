"""Names of what runs the shards of a table, which the command's help has to know."""

from enum import StrEnum

__all__ = ["EngineName"]


class EngineName(StrEnum):
    """What runs the shards of a table: processes of this machine, or a cluster of Ray's."""

    local = "local"
    ray = "ray"
