"""What sets clusters, and any rows, apart from all others.

- ``contrast``: what makes a cluster different, in a few words, and how surprising its
  observations are.
- ``sentences``: what sets rows apart from all others, in sentences that are true of the data as
  they stand.
- ``texts``: words and templates that rows' texts have more often than all others.
"""
