"""Arrays as bytes that can be checked, and that nothing could run.

- ``row_bytes``: rows of numbers as the bytes that the tables and Redis hold: float64, little-
  endian.
- ``snapshot``: snapshots as bytes: named arrays in, named arrays out, and nothing that could run.
"""
