"""The one place that names numba options: compiled functions, compile-time dispatch, the cache.

A *generic* function has one implementation per type of its first argument. Compiled callers choose
the implementation while they are compiled, so a kernel runs at the speed of code written for one
family; plain Python callers (and the exactness tests, which run with compilation switched off)
choose it while they run. Both execute the same source.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

# Names the folder of the cache before numba reads it.
from .kernel_cache import KernelCache  # isort: skip

import numba
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.extending import overload
from numpy import ndarray
from numpy.random import Generator

from .code_library import keep_inner_functions_intermediate, tell_nobody_of_locks

__all__ = [
    "allocating",
    "compiled",
    "generic",
    "generic_inner",
    "implements",
    "inner",
    "interpret_all_but",
]

keep_inner_functions_intermediate()
tell_nobody_of_locks()

F = TypeVar("F", bound=Callable[..., Any])

# Fast math stays off: it breaks log-sum-exp of all minus infinity and the test for NaN.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
# One for all generators, which every sweep is called with.
_GENERATOR: Any = types.NumPyRandomGeneratorType("rng")


@contextmanager
def _without_collector() -> Iterator[None]:
    """Look for no cycles meanwhile: the compiler makes objects by the million, and keeps them.

    It takes a tenth of the time of a compilation.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Shared(CPUDispatcher):
    """A dispatcher whose function is compiled by one process, whatever number of them wants it.

    Constants among its arguments have no type of their own: a function that is called with 0, with
    1 and with a variable is compiled once, where numba by itself would compile it three times.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        variables = tuple(types.unliteral(each) for each in args)
        named = {name: types.unliteral(each) for name, each in kws.items()}
        return super().get_call_template(variables, named)

    def typeof_pyval(self, value: object) -> types.Type:
        """Type of a value that native code doesn't know; numba finds that of a generator anew."""
        return _GENERATOR if type(value) is Generator else super().typeof_pyval(value)

    # Made for what a process calls, which is a small part of what it imports.
    @cached_property
    def _cache(self) -> KernelCache:
        return KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        with _without_collector():
            try:
                return super().compile(sig)
            finally:
                self._cache.release(sig)


class _Inner(_Shared):
    """A dispatcher without entry points for Python: called from there, the source itself runs."""

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)


def _dispatcher(function: F, kind: type[_Shared], **options: Any) -> F:
    dispatcher = numba.njit(**_OPTIONS, **options)(function)
    if isinstance(dispatcher, CPUDispatcher):
        # Numba has no door for either. Its own cache, which keeps nothing, hides that of the class.
        dispatcher.__class__ = kind
        del dispatcher._cache  # type: ignore[attr-defined]  # noqa: SLF001 - as said
    return dispatcher


def compiled(function: F) -> F:
    """Compile a function, keep the result on disk, and run it without the interpreter lock.

    Processes that want the same function at the same time wait for the first to have compiled it.
    """
    return _dispatcher(function, _Shared)


def _without_entry(function: F, **options: Any) -> F:
    entryless: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _dispatcher(function, _Inner, **entryless, **options)


def inner(function: F) -> F:
    """Compile a function for compiled callers only, without reference counting.

    Its arrays are borrowed from the caller, so that it must not allocate any. It compiles much
    faster than a :func:`compiled` one, and runs faster where it reads many arrays: every array
    taken out of a tuple would otherwise cost an atomic increment and decrement.
    """
    return _without_entry(function, _nrt=False)


def allocating(function: F) -> F:
    """Like :func:`inner`, for a function that allocates arrays or calls one that does."""
    return _without_entry(function)


def interpret_all_but(*kept: str) -> None:
    """Let Python run the source of compiled functions where Python calls them, but for these.

    ``kept`` is how their modules and names begin. It holds for the modules of treecore and mcmc
    that are loaded by now, and for good.
    """
    for module in list(sys.modules.values()):
        if module.__name__.startswith(("weald.treecore", "weald.mcmc")):
            for each in vars(module).values():
                if type(each) is _Shared and not _place(each).startswith(kept):
                    each.__class__ = _Inner


def _place(function: Any) -> str:
    return f"{function.py_func.__module__}.{function.py_func.__name__}"


def _type_of(numba_type: Any) -> type | None:
    # Named tuples know the class that they come from, and so do states held by reference.
    held: type | None = getattr(numba_type, "instance_class", None)
    if held is not None:
        return held
    if isinstance(numba_type, types.Array):
        return ndarray
    if isinstance(numba_type, types.NumPyRandomGeneratorType):
        return Generator
    return None


def generic(declaration: F) -> F:
    """Make a function generic over the type of its first argument.

    The declaration's body is never run; it documents the contract.
    """
    return _generic(declaration, {})


def generic_inner(declaration: F) -> F:
    """Like :func:`generic`, and like :func:`inner`: no implementation may allocate arrays."""
    return _generic(declaration, {"_nrt": False})


def _generic(declaration: F, without: dict[str, Any]) -> F:
    implementations: dict[type, Callable[..., Any]] = {}

    def dispatch(subject: Any, *args: Any) -> Any:
        chosen = implementations.get(type(subject))
        if chosen is None:
            name = type(subject).__name__
            raise TypeError(f"{declaration.__name__} has no implementation for {name}")
        return chosen(subject, *args)

    dispatch.__name__ = declaration.__name__
    dispatch.__qualname__ = declaration.__qualname__
    dispatch.__doc__ = declaration.__doc__
    dispatch.__module__ = declaration.__module__
    dispatch.implementations = implementations  # type: ignore[attr-defined]  # read by implements()

    # numba hands over the types of all arguments; only the first one chooses.
    def resolve(subject: Any, *args: Any) -> Callable[..., Any] | None:  # noqa: ARG001 - as above
        subject_type = _type_of(subject)
        return None if subject_type is None else implementations.get(subject_type)

    options: Any = {**_OPTIONS, **without, "no_cfunc_wrapper": True}
    overload(dispatch, jit_options=options, strict=False)(resolve)
    return dispatch  # type: ignore[return-value]  # same signature as the declaration


def implements(declared: Callable[..., Any], *subjects: type) -> Callable[[F], F]:
    """Register the decorated function as ``declared`` for the given types of the first argument."""

    def register(function: F) -> F:
        for subject in subjects:
            declared.implementations[subject] = function  # type: ignore[attr-defined]  # set by generic()
        return function

    return register
