"""The entity/mention model: its state and its split-merge moves.

- ``emm``: split-merge on the entity/mention model: Wang and Russell (2015), sections 2 and 5.
- ``entities``: state (K, S) of the entity/mention model: K entities, some of them empty, and
  their mentions.
"""
