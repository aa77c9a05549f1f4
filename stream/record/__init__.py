"""From raw messages to observations, and the reasons why not.

- ``decode``: raw messages into observations: pure, and never an exception because of data.
- ``edges``: from records of edges to the rows that SQL keeps and replay takes in again.
- ``explain``: the slow path of decoding: one field at a time, so that a refusal says which field
  and why.
- ``formats``: the formats that records come in, and what each needs before the one decoder serves
  it.
- ``pending_batch``: records between their arrival and their commit, with the account of each
  partition.
- ``record``: what flows through this room: raw messages, batches of observations, dead letters.
- ``refused``: the verdict on a record that cannot become an observation.
- ``schema``: the declared schema, compiled once into what the decoder needs per record.
"""
