"""What a stream is made of once its first observations are there, and what SQL keeps of that.

- ``family_choice``: which family suits a declared schema, for those who named none.
- ``log_moves``: whole numbers that are seen by their logarithm, moved about as far as they are
  rounded.
- ``stored_family``: a stream's family from what SQL keeps of it; apart from the model, which loads
  every sampler.
- ``stored_transformation``: a stream's transformation from its first sample, and in the bytes that
  SQL keeps of it.
"""
