"""Moves of what the model's base measure and prior are set to.

- ``base_scale``: A Metropolis step for the scale of the base measure.
- ``diagonal_base``: the base measure of Gaussian clusters with independent features, learned.
- ``freedom``: degrees of freedom of clusters' variances, redrawn by Metropolis steps.
- ``gaussian_base``: the base measure of Gaussian clusters with full covariance, learned.
- ``learner``: what learns a family's base measure, and which family has what.
"""
