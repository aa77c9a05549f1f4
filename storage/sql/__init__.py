"""The tables, and how databases are opened, upgraded and understood.

- ``bulk``: the statements that see every observation, each in the fastest form its database has.
- ``bundles``: compacted observations: one row says which cluster all of a bundle are in.
- ``database``: engines: how SQLite and PostgreSQL are opened, and which revision they must have.
- ``failpoints``: labelled steps of a record's journey at which a test may have the process
  killed.
- ``failures``: what a driver's error means to the caller: try again, stop, or ask for permission.
- ``migrate``: moving a database between revisions, with the migrations that ship in this package.
- ``revision``: the revision that the tables are, for whoever must not load SQLAlchemy to know it.
- ``schema``: the tables. SQLAlchemy Core; ``migrations`` holds the same in steps, and a test
  compares them.
"""
