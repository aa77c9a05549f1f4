"""SQL schema, migrations, snapshots; Redis statistics. Bytes, tables and keys.

- ``errors``: what can go wrong in this room, named by what the caller does about it.
- ``settings``: the settings of this room: where SQL and Redis are, and how patient to be with
  them.
"""
