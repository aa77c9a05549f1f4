"""The engine for notebooks: scikit-learn's and River's verbs, data frames.

- ``bayesian_clusterer``: the engine as a scikit-learn estimator: the same model and kernels,
  driven by calls.
- ``frames``: results as data frames, for notebooks.
- ``inference_data``: the chains of a fit as ArviZ knows them, so that its diagnostics and plots
  apply.
- ``online_clusterer``: the engine with River's verbs: ``learn_one`` and ``predict_one``. Needs
  ``weald[notebook]``.
"""
