"""Likelihood families with their base measures, one file each.

- ``parameter_draws``: drawn parameters of clusters, as rows against which statistics rows are
  simply multiplied.
- ``product``: clusters of mixed records: independent parts, each a family over some of the
  columns.
- ``same_kind``: a family with other hyperparameters than one that is there.
- ``totals``: statistics of groups of observations, summed in the order in which the observations
  come.
"""

from . import product as product
from .discrete import beta_bernoulli as beta_bernoulli
from .discrete import dirichlet_categorical as dirichlet_categorical
from .discrete import dirichlet_multinomial as dirichlet_multinomial
from .discrete import gamma_poisson as gamma_poisson
from .discrete import sparse_multinomial as sparse_multinomial
from .gaussian import normal_inverse_gamma as normal_inverse_gamma
from .gaussian import normal_inverse_wishart as normal_inverse_wishart
from .gaussian import predictive_bounds as predictive_bounds
from .gridded import gamma as gamma
from .gridded import negative_binomial as negative_binomial
from .interface.base import FAMILIES, FamilySpec, FeatureSummary, spec_of

__all__ = ["FAMILIES", "FamilySpec", "FeatureSummary", "spec_of"]
