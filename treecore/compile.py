"""The one place that names numba options: compiled functions, compile-time dispatch, the cache.

A *generic* function has one implementation per type of its first argument. Compiled callers choose
the implementation while they are compiled, so a kernel runs at the speed of code written for one
family; plain Python callers (and the exactness tests, which run with compilation switched off)
choose it while they run. Both execute the same source.

Numba keys its cache by each file's own time stamp and so misses a change in a callee that lives in
another file. The cache folder is therefore named after a hash of every source that is compiled, and
nothing in it by a path or a time: an installation and a checkout of the same sources share it.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["allocating", "cache_directory", "compiled", "generic", "implements", "inner"]

F = TypeVar("F", bound=Callable[..., Any])


_ROOMS = Path(__file__).resolve().parent.parent


@cache
def _source_hash() -> str:
    digest = hashlib.sha256()
    for room in ("treecore", "mcmc"):
        for source in sorted((_ROOMS / room).rglob("*.py")):
            digest.update(source.relative_to(_ROOMS).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Folder of the compiled kernels of exactly these sources.

    Its parent is ``WEALD_KERNEL_CACHE`` when that is set, else ``weald/kernels`` in the user's
    cache folder (``XDG_CACHE_HOME``, by default ``~/.cache``).
    """
    configured = os.environ.get("WEALD_KERNEL_CACHE")
    if configured:
        return Path(configured) / _source_hash()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "weald" / "kernels" / _source_hash()


os.environ["NUMBA_CACHE_DIR"] = str(cache_directory())

import numba  # noqa: E402 - the cache folder must be named before numba reads it
from numba.core import types  # noqa: E402 - as above
from numba.core.caching import UserProvidedCacheLocator  # noqa: E402 - as above
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402 - as above
from numba.core.registry import CPUDispatcher  # noqa: E402 - as above
from numba.extending import overload  # noqa: E402 - as above
from numpy import ndarray  # noqa: E402 - as above
from numpy.random import Generator  # noqa: E402 - as above


@cache
def _stamp(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()


class SharedCacheLocator(UserProvidedCacheLocator):
    """Where numba keeps a function of these rooms, wherever they are installed."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._source = Path(py_file).resolve()
        place = self._source.relative_to(_ROOMS).with_suffix("")
        self._cache_path = str(cache_directory() / place)

    def get_source_stamp(self) -> str:
        """Return a hash of the function's file."""
        return _stamp(self._source)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        """Return a locator, or nothing for a function of somebody else."""
        here = Path(py_file).resolve().is_relative_to(_ROOMS)
        return super().from_function(py_func, py_file) if here else None


numba.config.CACHE_DIR = str(cache_directory())  # type: ignore[attr-defined]  # set at run time
# The last two are what numba falls back to where the folder cannot be written.
numba.config.CACHE_LOCATOR_CLASSES = ",".join(  # type: ignore[attr-defined]  # as above
    (
        f"{__name__}.{SharedCacheLocator.__name__}",
        UserProvidedCacheLocator.__name__,
        "InTreeCacheLocator",
        "UserWideCacheLocator",
    )
)

# Fast math stays off: it breaks log-sum-exp of all minus infinity and the test for NaN.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


@cache
def _lock_file() -> int | None:
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
        return os.open(cache_directory() / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None  # a folder that is only read: there is nothing to share


@contextmanager
def _first_or_after(place: int) -> Iterator[None]:
    """Hold one byte of the cache's lock file, so that other processes wait for what is made here.

    A caller compiles what it calls while it holds its own byte. Processes that hold bytes wait for
    deeper callees only, so none ever waits for itself.
    """
    file = _lock_file()
    if file is None:
        yield
        return
    try:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
    except OSError:
        yield  # a file system without locks: compiled twice at worst
        return
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


class _Shared(CPUDispatcher):
    """A dispatcher whose function is compiled by one process, whatever number of them wants it.

    Constants among its arguments have no type of their own: a function that is called with 0, with
    1 and with a variable is compiled once, where numba by itself would compile it three times.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        variables = tuple(types.unliteral(each) for each in args)
        named = {name: types.unliteral(each) for name, each in kws.items()}
        return super().get_call_template(variables, named)

    def compile(self, sig: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
        # Of this process one thread at most is in there: locks of files do not part threads.
        with global_compiler_lock, _first_or_after(place):
            return super().compile(sig)


class _Inner(_Shared):
    """A dispatcher without entry points for Python: called from there, the source itself runs."""

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)


def _dispatcher(function: F, kind: type[_Shared], **options: Any) -> F:
    dispatcher = numba.njit(cache=True, **_OPTIONS, **options)(function)
    if isinstance(dispatcher, CPUDispatcher):
        dispatcher.__class__ = kind
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

    options: Any = {**_OPTIONS, "no_cfunc_wrapper": True}
    overload(dispatch, jit_options=options, strict=False)(resolve)
    return dispatch  # type: ignore[return-value]  # same signature as the declaration


def implements(declared: Callable[..., Any], *subjects: type) -> Callable[[F], F]:
    """Register the decorated function as ``declared`` for the given types of the first argument."""

    def register(function: F) -> F:
        for subject in subjects:
            declared.implementations[subject] = function  # type: ignore[attr-defined]  # set by generic()
        return function

    return register
