"""Which functions get machine code, and that those without are whole in their callers."""

import ctypes
import subprocess
import sys

import pytest

from .entries import checked_half, half_of

# A process of its own finds the kernel in the cache.
AGAIN = """
from tests.treecore.entries import checked_half, half_of
assert checked_half(6) == 3
assert checked_half.stats.cache_hits and not half_of.overloads
try:
    checked_half(7)
except ValueError as error:
    print(error)
"""


def test_only_what_python_calls_has_machine_code() -> None:
    assert checked_half(8) == 4
    with pytest.raises(ValueError, match="odd"):
        checked_half(7)
    half_of.compile("int64(int64)")  # type: ignore[attr-defined]  # a dispatcher
    (inner,) = half_of.overloads.values()  # type: ignore[attr-defined]  # as above
    assert inner.library.get_pointer_to_function("absent") == 0
    assert not inner.library.codegen._engine.is_symbol_defined(inner.fndesc.llvm_func_name)

    # Unless somebody asks where it is.
    address = inner.library.get_pointer_to_function(inner.fndesc.llvm_func_name)
    result, excuse = ctypes.c_int64(), ctypes.c_void_p()
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    assert call(ctypes.addressof(result), ctypes.addressof(excuse), 10) == 0
    assert result.value == 5


def test_the_cache_keeps_it_whole() -> None:
    checked_half(2)
    done = subprocess.run(
        [sys.executable, "-c", AGAIN], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "odd\n", "")
