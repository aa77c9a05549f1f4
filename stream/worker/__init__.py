"""The worker's loop, and its settings.

- ``row_pages``: statistics of a lease's atoms on their way through Redis, sent when they change.
- ``settings``: what people may choose about workers and their leases.
- ``worker``: the worker's loop: take a lease, spend its moves, give it back.
"""
