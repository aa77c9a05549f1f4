"""Files that people bring: tables, networks, samples of a stream.

- ``folder``: a folder of files of one kind, read as one.
- ``gap_words``: what people and programs write in a cell where there is nothing.
- ``network``: read a network: a list of edges, Matrix Market, GraphML, or an adjacency matrix of
  NumPy.
- ``refused_rows``: rows of a file that cannot be read: refused and told, as a stream's dead letters
  are.
- ``sample``: looks at the first records of a file and proposes a schema, saying why.
- ``stream_rows``: a file as its stream reads it, and which of its rows that sets aside.
- ``table``: read a data file into a matrix, for ``weald fit`` and ``weald predict``.
- ``text_table``: what parts the cells of a text table, where its header is, and which rows are
  none.
- ``written_numbers``: numbers as people write them: "3,5", "1,234.50", "$12", "70.1 kg", "12 %".
"""
