"""The registry of kernels, and what their moves came to.

- ``kernel_report``: what a refinement did: each move's proposals, what became of them, and what
  they cost.
- ``kernels``: kernels by the names of the registry, each loaded when it is first asked for.
- ``ledger``: the sum of what each move of a refinement did.
- ``registry``: every kernel, a line each: its name, its claim, where it is, what it moves and what
  it needs.
- ``stream_kernels``: which of them refine a stream, by the writer or by workers.
"""
