"""Coming back: snapshots, replay, and the comparison with what SQL holds.

- ``consistency``: whether the parts of a restored model agree with each other.
- ``recovery``: from what SQL holds back to a model: the snapshot to begin with, the replay, the
  comparison.
- ``replayed_rounds``: rounds of leases, done again at a replay in the places where SQL holds
  them.
- ``snapshots``: what a person may do with a stream's snapshots: make one, check one, go back,
  compare two.
"""
