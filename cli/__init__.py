"""The composition root: reads configuration, builds objects, turns errors into exit codes.

- ``errors``: exit codes and the errors that carry them.
- ``main``: the ``weald`` program: its commands, and how an error becomes an exit code.
"""
