"""Records that could not become observations, and their second chance.

- ``dead_letter``: what happens to dead letters beside their rows in SQL: a rate limit, and a
  topic of their own.
- ``kafka_topic``: the topic of the dead letters, ``<topic>.dlq``: a copy for other programs to
  act on.
- ``replay``: dead letters that somebody asked for again, decided anew by the stream's one writer.
"""
