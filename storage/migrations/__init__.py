"""The schema in steps, shipped with the package so that an installed Weald can upgrade.

- ``env``: Alembic's entry: runs inside the transaction that ``storage.migrate`` opened.
"""
