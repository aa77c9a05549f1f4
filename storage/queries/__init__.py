"""The questions over SQL.

- ``answers``: what the queries return: frozen data, as a person or a program asks for it.
- ``assignments``: which observation is in which cluster, now and as of any moment.
- ``base``: what questions over SQL are asked with, and the rows that they and commits are made of.
- ``certainty``: how sure the chain's draws are: written with a publication, read with an
  assignment.
- ``dead_letters``: dead letters: which there are, which are to be tried again, and which may go.
- ``glance``: A stream at a glance out of an SQLite file, for a command that must answer at once.
- ``history``: what happened, in order: lineage, publications, refinement rounds.
- ``overview``: A stream at a glance: where it stands, its account, its clusters.
- ``reader``: the questions over SQL, each in a transaction of its own that sees one moment.
- ``replay``: coming back: snapshots that can be trusted, and the observations after them.
- ``status_statements``: what ``weald status`` asks, as SQL that both databases understand.
- ``trends``: what moves: when clusters began, where the newest observations went, which keys
  there are.
- ``whole``: questions about a stream in shards, whose parts have the observations.
- ``whole_numbers``: numbers of observations in a stream in shards: they go round the shards.
"""
