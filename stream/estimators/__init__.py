"""The engine for notebooks: scikit-learn's and River's verbs, data frames.

- ``bayesian_clusterer``: the engine as a scikit-learn estimator: the same model and kernels,
  driven by calls.
- ``frame_schema``: data frames with their dtypes as rows of features, through one inferred schema.
- ``frames``: results as data frames, for notebooks.
- ``inference_data``: the chains of a fit as ArviZ knows them, so that its diagnostics and plots
  apply.
- ``named_parameters``: parameters of a prior that an estimator has under their own names, beside
  its dict of them.
- ``online_clusterer``: the engine with River's verbs: ``learn_one`` and ``predict_one``. Needs
  ``weald[notebook]``.
"""
