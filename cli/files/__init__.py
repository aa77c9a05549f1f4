"""Files that people bring: tables, networks, samples of a stream.

- ``decimal_commas``: numbers with a decimal comma, as much of Europe writes them: read with a
  point.
- ``folder``: a folder of files of one kind, read as one.
- ``network``: read a network: a list of edges, Matrix Market, GraphML, or an adjacency matrix of
  NumPy.
- ``refused_rows``: rows of a file that cannot be read: refused and told, as a stream's dead letters
  are.
- ``sample``: looks at the first records of a file and proposes a schema, saying why.
- ``table``: read a data file into a matrix, for ``weald fit`` and ``weald predict``.
"""
