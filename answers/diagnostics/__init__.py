"""Whether to believe chains and fits.

- ``convergence``: R-hat and effective sample sizes of chains: rank-normalised and split.
- ``fit_diagnostics``: whether to believe a fit: agreement of its chains, and how well it predicts
  other rows.
- ``trust``: the same in words that pages and tables share, from ``believe it`` to ``doubt it``.
"""
