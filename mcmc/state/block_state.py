"""What kernels that work on mixtures and on networks alike know of either's arrays."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weald.treecore.partition.partition import Partition

__all__ = ["BlockState"]


class BlockState(Protocol):
    """A partition, and scratch arrays that no kernel expects to find clean."""

    @property
    def partition(self) -> Partition:
        """Blocks and who is in them."""
        ...

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """Scratch (n + 4)."""
        ...

    @property
    def members(self) -> NDArray[np.int64]:
        """Scratch (n)."""
        ...

    @property
    def order(self) -> NDArray[np.int64]:
        """Scratch (n)."""
        ...

    @property
    def side(self) -> NDArray[np.int8]:
        """Scratch (n)."""
        ...
