"""One file per revision, numbered; each can be undone."""
