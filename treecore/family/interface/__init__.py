"""What a family implements, and what it gets for it.

- ``base``: what every conjugate family provides, as functions dispatched on the family's type.
- ``batched_predictive``: predictive tables side by side: the density of one observation under all
  blocks at once.
- ``checks``: checks of what people give to a family: hyperparameters and observations.
- ``defaults``: what a family has that implements the least: the other generic functions, by those
  it has.
- ``means``: families whose features have a mean of their own, above 0: counts and amounts.
"""
