"""Priors over partitions, one file each."""

from .base import PartitionPrior, Seating
from .dirichlet_process import DirichletProcess

__all__ = ["DirichletProcess", "PartitionPrior", "Seating"]
