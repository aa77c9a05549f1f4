"""SQL schema, migrations, snapshots; Redis statistics. Bytes, tables and keys."""
