"""Priors over partitions, one file each, and the registry of their names."""

from .base import PartitionPrior, Seating
from .dirichlet_process import DirichletProcess
from .mixture_of_finite_mixtures import MixtureOfFiniteMixtures
from .normalized_generalized_gamma import NormalizedGeneralizedGamma
from .pitman_yor import PitmanYor
from .registry import PRIORS, build_prior
from .uniform_assignment import UniformAssignment

__all__ = [
    "PRIORS",
    "DirichletProcess",
    "MixtureOfFiniteMixtures",
    "NormalizedGeneralizedGamma",
    "PartitionPrior",
    "PitmanYor",
    "Seating",
    "UniformAssignment",
    "build_prior",
]
