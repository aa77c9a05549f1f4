"""``weald look``: a file's clusters and groups at once, without settings or a database.

- ``command``: ``weald look``: reads, infers a schema, fits, and tells what was found.
- ``found``: what a look found: groups and clusters with what sets each apart, and a page of it.
- ``rows``: a file's rows as a look sees them: columns to cluster by, and columns to tell of.
"""
