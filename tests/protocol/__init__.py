"""The protocol as models that Spin searches.

- ``weald.pml``: writers, leases, snapshots, replay and the ways back.
- ``rounds.pml``: rounds of the shards of one stream.
- ``told.h``: what both are told by their environment.
- ``scenes``: within which bounds they are searched, and their wrong forms.
- ``spin``: the search.
"""
