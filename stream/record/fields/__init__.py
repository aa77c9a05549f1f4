"""From one field of a record to columns of an observation, and back.

- ``event_time``: when something happened, as records tell it.
- ``features``: from one field of a record to its columns of an observation, by the kind that is
  declared.
- ``gaps``: from whole records to rows of features, with a gap where a value is missing or cannot be
  read.
- ``originals``: back from the columns of an observation to values as they came in: names, flags,
  units, times.
- ``words``: text to counts: a line or a passage becomes how often each of a fixed number of
  buckets was hit.
"""
