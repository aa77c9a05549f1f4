"""How a command speaks: options, tables, progress, errors, completion.

- ``columns_told``: what is told of columns, one line for many that are alike.
- ``complete``: shell completion with what is there: names of streams, ids of clusters, keys of
  records.
- ``csv_cells``: cells of a CSV that a spreadsheet shows and does not obey.
- ``describe``: clusters in words and numbers: the rows that commands print, and the columns of
  their tables.
- ``error_messages``: what the rooms' errors mean to somebody at a terminal: an exit code and the
  next command.
- ``moments``: moments as people type them: a date, seconds, an age, or a publication.
- ``opened``: opens what the settings lead to: a stream's stored state, or the whole database.
- ``options``: options that many commands share, so that they are spelt and explained once.
- ``output``: answers on standard output, in the form that was asked for; everything else on
  standard error.
- ``progress``: progress on standard error: a bar on a terminal, a line now and then elsewhere.
- ``table``: tables: drawn to the width of a terminal, and as plain aligned text everywhere else.
"""
