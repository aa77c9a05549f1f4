"""Machine code for functions that Python calls, and for no others.

Numba optimises every function by itself and makes machine code of it. A caller does not use that:
it holds a copy of the callee's intermediate code, which is optimised and translated again with its
own. Here a function without an entry for Python stays intermediate code, so that each is optimised
once for each kernel that it is part of, and never for nobody. That saves a bit more than a third
of the time that compilation takes; the kernels are as fast as before.

A function out of the cache comes with its intermediate code, too. It is read when a caller that is
compiled here asks for it, which in a process that compiles nothing is never. What comes with a
package has machine code alone, which is a ninth of it all.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from llvmlite import binding
from llvmlite.binding import ffi
from numba.core import codegen

__all__ = [
    "called_by_others",
    "is_lean",
    "keep_inner_functions_intermediate",
    "made_lean",
    "tell_nobody_of_locks",
]

# What the cache keeps of a function's code: its name, a kind, and the code.
State = tuple[str, str, Any]

# How numba begins the names of what Python and C call.
_OF_PYTHON = "_ZN7cpython"
_ENTRIES = (_OF_PYTHON, "cfunc.")

_set_environment: Any = codegen.JITCPUCodegen.set_env


class _CodeLibrary(codegen.JITCodeLibrary):
    """A function's code, which becomes machine code when somebody asks for its address."""

    # What functions without machine code will need to know of their modules, by its symbol.
    _environments: ClassVar[dict[str, Any]] = {}
    _is_intermediate = False
    # Intermediate code of a function out of the cache, until a caller asks for it.
    _unread: bytes | None = None

    def _defines(self, name: str) -> bool:
        return any(each.name == name for each in self.get_defined_functions())

    def _has_entry(self) -> bool:
        # Those of callees were made ``linkonce_odr`` when they were copied.
        return any(
            each.linkage == binding.Linkage.external and each.name.startswith(_ENTRIES)
            for each in self.get_defined_functions()
        )

    def _optimize_final_module(self) -> None:
        if self._has_entry():
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        comes_translated = self._object_caching_enabled and self._compiled_object
        if comes_translated or self._has_entry():
            self._translate()
            return
        self._finalize_dynamic_globals()
        self._is_intermediate = self._finalized = True

    def _translate(self) -> None:
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            environment = self._environments.pop(variable.name, None)
            if environment is not None:
                _set_environment(self._codegen, variable.name, environment)

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function's machine code, which is made now if need be; 0 if it is absent."""
        self._ensure_finalized()
        if self._is_intermediate and self._defines(name):
            self._is_intermediate = False
            self._optimize_all()
            self._translate()
        return super().get_pointer_to_function(name)

    def _optimize_all(self) -> None:
        super()._optimize_final_module()

    def _get_module_for_linking(self) -> binding.ModuleRef:
        if self._unread == b"":
            raise RuntimeError(
                f"{self.name} came compiled, without what a caller of it is compiled from: set "
                "NUMBA_CPU_NAME=generic, and kernels are compiled here instead"
            )
        if self._unread is not None:
            self._shared_module = binding.parse_bitcode(self._unread)
            self._unread = None
        return super()._get_module_for_linking()

    def serialize_using_object_code(self) -> tuple[object, ...]:
        """What the cache keeps: machine code only where there is any, and what it defines."""
        if self._is_intermediate:
            return self.serialize_using_bitcode()
        name, kind, code = super().serialize_using_object_code()
        module = self._get_module_for_linking()
        symbols = [*module.functions, *module.global_variables]
        defined = frozenset(each.name for each in symbols if not each.is_declaration)
        return name, kind, (*code, defined)

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, code = state
        if kind != "object":
            return super()._unserialize(codegen, state)
        machine_code, intermediate_code, defined = code
        library = codegen.create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)  # noqa: SLF001 - of this class
        library._unread = intermediate_code  # noqa: SLF001 - as above
        library._finalize_final_module()  # noqa: SLF001 - as above
        codegen._engine._defined_symbols |= defined  # noqa: SLF001 - numba has no door
        return library


def called_by_others(states: Iterable[State]) -> set[str]:
    """Which of these functions some of the others were compiled from, by the names of their code.

    Those that have machine code themselves.
    """
    once: set[str] = set()
    again: set[str] = set()
    entries: dict[str, str] = {}
    for name, kind, code in states:
        if kind != "object":
            continue
        again |= once & code[2]
        once |= code[2]
        for each in code[2]:
            if each.startswith(_OF_PYTHON):
                entries[each.replace(_OF_PYTHON, "_ZN", 1)] = name
    return {entries[each] for each in again & entries.keys()}


def made_lean(state: State) -> State | None:
    """What is left of a function for processes that compile nothing that calls it, if anything."""
    name, kind, code = state
    return (name, kind, (code[0], b"", code[2])) if kind == "object" else None


def is_lean(state: State) -> bool:
    """Whether no caller of the function can be compiled from what there is of it."""
    return state[1] == "object" and not state[2][1]


def _set_or_keep(self: Any, name: str, environment: Any) -> None:
    if self._engine.is_symbol_defined(name):
        _set_environment(self, name, environment)
    else:
        _CodeLibrary._environments[name] = environment  # noqa: SLF001 - defined beside it


def keep_inner_functions_intermediate() -> None:
    """From here on, make machine code in this process only of what is called from outside."""
    # Numba has no door for either.
    generator: Any = codegen.JITCPUCodegen
    generator._library_class = _CodeLibrary  # noqa: SLF001 - as said
    generator.set_env = _set_or_keep


def tell_nobody_of_locks() -> None:
    """From here on, take LLVM's lock without numba's events of it.

    They are six at each of some ten thousand calls into LLVM, and nobody listens but clocks whose
    times are thrown away: a twentieth of the time of a compilation.
    """
    # What numba registers as it is loaded is known to the lock alone, and LLVM's door asks for it.
    lock: Any = ffi.lib._lock  # noqa: SLF001 - as said
    for entered, left in list(lock._cblist):  # noqa: SLF001 - as said
        ffi.unregister_lock_callback(entered, left)
