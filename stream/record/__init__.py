"""From raw messages to observations, and the reasons why not.

- ``decode``: raw messages into observations: pure, and never an exception because of data.
- ``edges``: from records of edges to the rows that SQL keeps and replay takes in again.
- ``event_time``: when something happened, as records tell it.
- ``explain``: the slow path of decoding: one field at a time, so that a refusal says which field
  and why.
- ``features``: from one field of a record to its columns of an observation, by the kind that is
  declared.
- ``field_inference``: what the values of one field are, as far as a sample shows it, and why.
- ``formats``: the formats that records come in, and what each needs before the one decoder serves
  it.
- ``gaps``: from whole records to rows of features, with a gap where a value is missing or cannot be
  read.
- ``originals``: back from the columns of an observation to values as they came in: names, flags,
  units, times.
- ``pending_batch``: records between their arrival and their commit, with the account of each
  partition.
- ``proposal``: a schema that fits a sample of records, and why.
- ``record``: what flows through this room: raw messages, batches of observations, dead letters.
- ``refused``: the verdict on a record that cannot become an observation.
- ``schema``: the declared schema, compiled once into what the decoder needs per record.
- ``words``: text to counts: a line or a passage becomes how often each of a fixed number of
  buckets was hit.
"""
