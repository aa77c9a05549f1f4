"""The one place that touches the compiler: options, dispatch, caches, random draws.

- ``code_library``: machine code for functions that Python calls, and for no others.
- ``compile``: the one place that names numba options: compiled functions, compile-time dispatch,
  the cache.
- ``draw``: every random choice that a kernel makes, as a handful of replaceable primitives.
- ``kernel_cache``: where compiled kernels are kept, and how processes that want the same one
  share the work.
- ``packaged``: kernels that came compiled with the package, and whether this process may use them.
- ``prefetch``: asking for a row before it is needed, so that memory answers while something else
  is computed.
- ``reference``: passing a state of many arrays by reference inside compiled code.
- ``source_stamps``: what compiled code depends on: a stamp of every source that a module's
  functions may call.
"""
