"""How the engine is observed: steps, numbers, health.

- ``mixing``: whether the chain's recent past looks like one distribution: R-hat of its two
  halves.
- ``novelty``: how new the newest observations are: their surprise against that of those before
  them.
- ``outages``: what is away is told when it begins, once a minute while it lasts, and when it is
  over.
- ``steps``: labelled steps of a record's journey: a context manager around each.
- ``telemetry``: how the engine is observed: labelled steps, numbers for the metrics, reasons for
  the health.
"""
