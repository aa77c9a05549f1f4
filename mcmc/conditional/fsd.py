"""Finite symmetric Dirichlet: the conditional sampler of a truncated model, as a baseline.

Weights of ``Plan.components`` components, empty ones included, are Dirichlet(alpha / components);
weights, parameters and all labels are drawn in turn. Approximate for the Dirichlet process: exact
only for its own finite model, from which the process differs by about 1 / components in total
variation. Source: Ishwaran and Zarepour (2002); Chang and Fisher (2013), section 6;
``split-merge-samplers.md`` section 2.10.
"""

from functools import partial
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.sweeps import Sampler, redraws
from weald.treecore.errors import ParameterError
from weald.treecore.family.parameter_draws import draw_parameters, log_gamma_draw
from weald.treecore.partition.partition import Atoms, Model

from .labels import Labels, block_sums, compact, draw_labels, require_dense

__all__ = ["FsdPlan", "kernel", "sweep"]


class FsdPlan(NamedTuple):
    """``components``: of the finite model."""

    components: int = 100


def sweep(rng: Generator, atoms: Atoms, labels: Labels, model: Model, plan: FsdPlan) -> Labels:
    """Redraw weights, parameters and all labels (n); returns labels 0 to k - 1.

    Raises ParameterError for another prior than the Dirichlet process, and where the partition has
    more blocks than the model has components.
    """
    seating = model.seating
    if not seating.is_product or seating.shift != 0.0 or seating.scale != 1.0:
        raise ParameterError("fsd truncates a Dirichlet process: use --prior dp")
    rows = require_dense(atoms.rows)
    labels = compact(labels)
    components = plan.components
    if int(labels.max()) >= components:
        raise ParameterError(
            f"fsd has {components} components, the partition {int(labels.max()) + 1} blocks: "
            "start from fewer (--init one)"
        )
    counts = np.bincount(labels, weights=atoms.size, minlength=components)
    log_weights = log_gamma_draw(
        rng, np.asarray(counts + exp(seating.slope) / components, np.float64)
    )
    natural = draw_parameters(model.family, block_sums(rows, labels, components), rng).natural
    return compact(draw_labels(rng, rows, atoms.size, log_weights, natural))


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return redraws(entry, partial(sweep, plan=FsdPlan()))
