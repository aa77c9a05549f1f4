"""Memory of a stream's model, array by array: ``python -m benchmarks.array_memory``.

Feeds observations of Gaussian clusters to one stream's model, as `benchmarks.memory` does, and
prints which arrays there are at the end, by the attribute that holds each, with the bytes of each
that are resident (the kernel says which pages are: what nobody has touched takes none), for each
observation. Statistics rows, which the family needs, are told from everything else; dots stand for
other attributes of the same array.

    python -m benchmarks.array_memory
    python -m benchmarks.array_memory --records 300000 --features 10
"""

import argparse
import ctypes
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory import CHUNK, Source, started
from weald.cli.service.allocation import give_arrays_back

# Arrays of which an observation has less are added up.
LEAST_BYTES = 4
# What leads from a model to its arrays goes through no more attributes than these.
DEPTH = 9


def arrays_of(held: Any, place: str, seen: set[int], depth: int = DEPTH) -> Iterator[Any]:
    """The arrays that an object holds, each once, with the attributes that lead to them."""
    if id(held) in seen or isinstance(held, str | bytes | int | float | type | None) or not depth:
        return
    seen.add(id(held))
    if isinstance(held, np.ndarray):
        if isinstance(held.base, np.ndarray):
            yield from arrays_of(held.base, f"{place}, ...", seen, depth)
        else:
            yield place, held
        return
    if isinstance(held, dict):
        parts = [(place, each) for each in held.values()]
    elif hasattr(held, "_fields"):
        parts = [(f"{place}.{name}", getattr(held, name)) for name in held._fields]
    elif isinstance(held, list | tuple):
        parts = [(place, each) for each in held]
    else:
        parts = [(f"{place}.{name}", each) for name, each in getattr(held, "__dict__", {}).items()]
    for name, each in parts:
        yield from arrays_of(each, name, seen, depth - 1)


def resident(array: NDArray[Any]) -> int:
    """Bytes of an array's pages that are in memory."""
    first = array.ctypes.data // mmap.PAGESIZE
    last = (array.ctypes.data + max(array.nbytes, 1) - 1) // mmap.PAGESIZE
    pages = (ctypes.c_ubyte * (last - first + 1))()
    libc = ctypes.CDLL(None, use_errno=True)
    length = ctypes.c_size_t(len(pages) * mmap.PAGESIZE)
    if libc.mincore(ctypes.c_void_p(first * mmap.PAGESIZE), length, pages):
        raise OSError(ctypes.get_errno(), "mincore")
    there = int((np.frombuffer(pages, dtype=np.uint8) & 1).sum())
    return min(there * mmap.PAGESIZE, array.nbytes)


def main() -> None:
    """Run a stream and print its arrays, the largest first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=6)
    parser.add_argument("--clusters", type=int, default=30)
    options = parser.parse_args()
    give_arrays_back()  # as `weald run` does
    asked = vars(options) | {"family": "gaussian", "policy": "sample", "every": 500}
    source = Source(options.clusters, options.features)
    shard = started(source, argparse.Namespace(**asked, budget=10 * options.records))
    while shard.seq < options.records:
        shard.apply(source.take(min(CHUNK, options.records - shard.seq)), 0.0)
    bytes_of: dict[str, float] = {}
    for place, array in arrays_of(shard, "model", set()):
        bytes_of[place] = bytes_of.get(place, 0.0) + resident(array) / shard.seq
    rows = sum(each for place, each in bytes_of.items() if place.endswith(".rows"))
    total = sum(bytes_of.values())
    print("| array | bytes an observation |\n|---|---|")
    for place, each in sorted(bytes_of.items(), key=lambda item: -item[1]):
        if each >= LEAST_BYTES:
            print(f"| `{place.removeprefix('model.')}` | {each:,.0f} |")
    print(f"| smaller ones | {sum(b for b in bytes_of.values() if b < LEAST_BYTES):,.0f} |")
    print(f"| all | {total:,.0f} |\n| statistics rows | {rows:,.0f} |")
    print(f"| all but statistics rows | {total - rows:,.0f} |")


if __name__ == "__main__":
    main()
