"""Conjugate likelihood families with their base measures, one file each."""

from . import beta_bernoulli as beta_bernoulli
from . import dirichlet_categorical as dirichlet_categorical
from . import dirichlet_multinomial as dirichlet_multinomial
from . import gamma_poisson as gamma_poisson
from . import normal_inverse_gamma as normal_inverse_gamma
from . import normal_inverse_wishart as normal_inverse_wishart
from . import product as product
from . import sparse_multinomial as sparse_multinomial
from . import wishart_bounds as wishart_bounds
from .base import FAMILIES, FamilySpec, FeatureSummary, spec_of

__all__ = ["FAMILIES", "FamilySpec", "FeatureSummary", "spec_of"]
