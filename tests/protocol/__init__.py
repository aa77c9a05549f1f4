"""The protocol as a model: ``weald.pml`` is searched by Spin, within the bounds of ``spin.py``."""
