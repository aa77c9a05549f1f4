"""``weald demo``: the whole path on a bundled stream, with nothing to install.

- ``bounded``: A topic that ends: the real Kafka source, until everything that was replayed has
  been read.
- ``command``: ``weald demo``: a real stream through a Kafka topic into clusters, with nothing to
  install.
- ``findings``: what a demo found, read back from the database that it filled.
- ``home``: the folder that a demo leaves behind, from which the commands answer afterwards.
- ``picture``: the clusters of a stream in its own coordinates.
- ``preparation``: what a first demo waits for: kernels, which others compile; and what it shows
  meanwhile.
- ``replay``: replays a bundled stream onto a topic, as its own producer would have sent it.
- ``report``: tells a demo's findings: a table, a picture, a page, and what to try next.
- ``streams``: the bundled streams: what a record is, which numbers are clustered, and how
  clusters read.
"""
