"""Large arrays that are freed go back to the system at once.

A refinement of all atoms makes arrays beside the model that together are as large as it, and frees
them. glibc takes large arrays from the system one by one until the first is freed, and from then on
keeps what is freed below that one's size for the next, up to 32 MiB: between much smaller arrays
that live on, it stays in the process. With a threshold that is set it does not learn another one.
An array of zeros whose rows nobody touches then takes no memory either, and no time.
"""

from __future__ import annotations

__all__ = ["give_arrays_back"]

_MMAP_THRESHOLD = -3  # glibc's M_MMAP_THRESHOLD, of malloc.h
_LARGE_BYTES = 4 * 2**20


def give_arrays_back() -> bool:
    """Have freed arrays of 4 MiB and more leave the process; tell whether the C library can."""
    import ctypes

    try:
        setter = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # another C library, which has ways of its own
    return bool(setter(_MMAP_THRESHOLD, _LARGE_BYTES))
