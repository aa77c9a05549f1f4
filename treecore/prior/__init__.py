"""Priors over partitions, one file each, and the registry of their names.

- ``apart``: a prior under which some atoms never share a block: those that are marked.
- ``base``: what every partition prior provides, and the table through which kernels see it.
- ``component_series``: sums over an unknown number K of components, with a proven truncation
  error.
- ``dirichlet_process``: Dirichlet process: the Chinese restaurant process with concentration
  alpha.
- ``levy``: the generalised gamma measure behind the NGGP: its auxiliary u and the integral over
  it.
- ``mixture_of_finite_mixtures``: mixture of finite mixtures: Dirichlet(gamma, ..., gamma) weights
  on K components, K random.
- ``normalized_generalized_gamma``: normalised generalised gamma process (NGGP), with its
  auxiliary variable u.
- ``pitman_yor``: Pitman-Yor process, with an auxiliary variable g that gives it product form.
- ``registry``: partition priors by name, built from plain values.
- ``sequential``: drawing a partition one observation after another, and numbering its blocks.
- ``slice_sampler``: slice sampling in one dimension, for the conditionals that have no direct
  draw.
- ``uniform_assignment``: the entity/mention model's prior: each observation belongs to one of K
  entities, uniformly.
"""

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
