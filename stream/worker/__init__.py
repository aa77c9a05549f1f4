"""The worker's loop, and its settings.

- ``settings``: what people may choose about workers and their leases.
- ``worker``: the worker's loop: take a lease, spend its moves, give it back.
"""
