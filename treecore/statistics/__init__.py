"""Arithmetic on rows of sufficient statistics, dense and sparse.

- ``log_gamma``: log gamma and rising factorials for compiled code, several times faster than the
  C library.
- ``observations``: observations as people give them: numbers, or counts of words as a sparse
  matrix of scipy.
- ``ordering``: orders of few numbers inside compiled code, where numpy's own take seconds to
  compile.
- ``room``: arrays with room behind their end, so that what grows with a stream is not copied.
- ``rows``: arithmetic on statistics rows: one dense float64 row per node, block or atom.
- ``sparse_rows``: statistics rows by their non-zeros: bags of words over vocabularies of 10^5 and
  more.
"""
