"""Large arrays that are freed go back to the system at once.

A refinement of all atoms makes arrays beside the model that together are as large as it, and frees
them. glibc takes large arrays from the system one by one until the first is freed, and from then on
keeps what is freed below that one's size for the next, up to 32 MiB: between much smaller arrays
that live on, it stays in the process. With a threshold that is set it does not learn another one.
An array of zeros whose rows nobody touches then takes no memory either, and no time.

Where numpy asks Linux for huge pages, as it does for arrays of 4 MiB, the system may have to move
other pages together first: an array of 300 MB, which takes a tenth of a second, then took 1.1 s now
and then, with the records waiting.

And Python looks for objects that hold each other less often. The records of a batch are thousands
of objects at a time, none of which does, and each look at all that was ever imported takes a tenth
of a second.
"""

from __future__ import annotations

import gc
import os

__all__ = ["ask_for_usual_pages", "give_arrays_back", "seek_cycles_rarely"]

_MMAP_THRESHOLD = -3  # glibc's M_MMAP_THRESHOLD, of malloc.h
_LARGE_BYTES = 4 * 2**20

# So many objects more than there were, where Python's own limit is 700. A batch makes fewer.
_OBJECTS = 50_000


def ask_for_usual_pages() -> None:
    """Have numpy ask for no huge pages, unless the environment says so; before it is imported."""
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")


def give_arrays_back() -> bool:
    """Have freed arrays of 4 MiB and more leave the process; tell whether the C library can."""
    import ctypes

    try:
        setter = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # another C library, which has ways of its own
    return bool(setter(_MMAP_THRESHOLD, _LARGE_BYTES))


def seek_cycles_rarely() -> None:
    """Have Python's collector begin when there are many more objects, not a few more."""
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
