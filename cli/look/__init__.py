"""``weald look``: clusters and groups of a file or folder at once, without settings.

- ``called``: what rows of a file are called: by a column that says which record it is.
- ``command``: ``weald look``: reads, infers a schema, fits, and tells what was found.
- ``found``: what a look found: groups and clusters with what sets each apart, and a page of it.
- ``rows``: rows as a look sees them: columns to cluster by, and columns to tell of.
- ``seen``: what a family sees of rows: columns as they are, long vectors along their components.
"""
