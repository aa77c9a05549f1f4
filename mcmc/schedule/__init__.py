"""The registry of kernels, and what their moves came to.

- ``kernel_report``: what a refinement did: each move's proposals, what became of them, and what
  they cost.
- ``kernels``: the kernels by their papers' short names, each with its claim about the posterior.
- ``stream_kernels``: which of them refine a stream, by the writer or by workers.
"""
