"""What the exactness tests run over: kernels, and small posteriors that can be enumerated.

To put a kernel under all of these tests, add a line to ``KERNELS``; a new family needs a line in
``_VALUES``. Priors come from their registry.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.window import draw_window
from weald.mcmc.gibbs import gibbs
from weald.mcmc.split_merge import dm, rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.split_merge.selection import EQUAL, TEMPERED, Selection, paper_selection
from weald.mcmc.state.atom_state import State, make_state, make_tally
from weald.treecore.compiled.draw import below
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import log_marginal, observe, statistics_width, workspace
from weald.treecore.partition.partition import Atoms, Model, Partition, make_atoms
from weald.treecore.prior import PRIORS, build_prior
from weald.treecore.prior.base import log_size

from .enumeration import Paths, Shape, partitions, transition_matrix

Sweep = Callable[..., None]


class Kernel(NamedTuple):
    """``sweep(rng, state, model, plan, live, tally)`` and the plan to run it with."""

    sweep: Sweep
    plan: Any = None


def _gibbs_step(rng: Any, state: State, model: Model, *rest: Any) -> None:
    # One atom only: a scan has many more paths, and is no more than steps in a row.
    plan, live, _ = rest
    at = int(below(rng, live.shape[0])) if plan is None else plan
    gibbs.sweep(rng, state, model, live[at : at + 1])


def _gibbs_window(rng: Any, state: State, model: Model, *rest: Any) -> None:
    n, live, _ = rest
    gibbs.sweep(rng, state, model, draw_window(rng, state.partition, live.shape[0], n))


# Gibbs on a window of two atoms.
GIBBS_WINDOW = Kernel(_gibbs_window, 2)

# One form of each kernel, for the product with all families and priors.
KERNELS = {
    "gibbs": Kernel(_gibbs_step),
    "rsm": Kernel(rsm.sweep, rsm.RsmPlan()),
    "rgsm": Kernel(rgsm.sweep, rgsm.RgsmPlan(scans=0, gibbs=0)),
    "sams": Kernel(sams.sweep, sams.SamsPlan()),
    "dm": Kernel(dm.sweep, dm.DmPlan()),
    "sdds-a": Kernel(sdds.sweep, sdds.SddsPlan(smart_splits=1.0)),
    "sdds-b": Kernel(sdds.sweep, sdds.SddsPlan(smart_splits=0.0)),
    "ss": Kernel(ss.sweep, ss.SsPlan()),
    "rm": Kernel(rm.sweep, rm.RmPlan()),
}

# Gibbs at one given atom.
GIBBS_AT = [Kernel(_gibbs_step, i) for i in range(5)]

# Other forms of the kernels.
FORMS = {
    "rgsm-1": Kernel(rgsm.sweep, rgsm.RgsmPlan(scans=1, gibbs=0)),
    "rgsm-anchored": Kernel(rgsm.sweep, rgsm.RgsmPlan(0, 1, 0, rgsm.ANCHORED)),
    "sams-near": Kernel(sams.sweep, sams.SamsPlan(1, 0.5)),
    "sdds": Kernel(sdds.sweep, sdds.SddsPlan()),
    "sdds-a-per-nat": Kernel(sdds.sweep, sdds.SddsPlan(1, 1.0, Selection(floor=0.0))),
    "sdds-a-equal": Kernel(sdds.sweep, sdds.SddsPlan(1, 1.0, Selection(EQUAL))),
    "sdds-a-tempered": Kernel(sdds.sweep, sdds.SddsPlan(1, 1.0, Selection(TEMPERED, tau=0.5))),
    "sdds-a-paper": Kernel(sdds.sweep, sdds.SddsPlan(1, 1.0, paper_selection())),
    "sdds-b-paper": Kernel(sdds.sweep, sdds.SddsPlan(1, 0.0, paper_selection())),
    "ss-paper": Kernel(ss.sweep, ss.SsPlan(1, Selection(TEMPERED, floor=0.0))),
    "rm-half": Kernel(rm.sweep, rm.RmPlan(share=rm.HALF)),
}

BERN5 = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 1], [1, 0, 0]], dtype=np.float64)

_VALUES: dict[str, tuple[Any, dict[str, Any]]] = {
    "gaussian": ([[0.1, 1.2], [2.9, -0.5], [0.4, 0.8], [-1.5, 0.3], [2.2, -1.1]], {}),
    "diagonal": ([[0.1, 1.2], [2.9, -0.5], [0.4, 0.8], [-1.5, 0.3], [2.2, -1.1]], {}),
    "bernoulli": (BERN5, {"a": 1.0, "b": 1.0}),
    "categorical": ([[0, 1], [0, 2], [1, 0], [2, 2], [0, 1]], {"beta": 0.5, "levels": [3, 3]}),
    "multinomial": ([[3, 0, 1], [1, 1, 0], [0, 4, 1], [2, 0, 0], [0, 2, 3]], {"beta": 0.7}),
    "poisson": ([[0, 3], [1, 2], [7, 0], [5, 1], [0, 4]], {"shape": 1.5}),
    "gamma": ([[0.3, 1.2], [2.9, 0.5], [0.4, 0.8], [5, 0.3], [2.2, 1.1]], {"grid": [0.6, 4, 20]}),
    "negative-binomial": (
        [[0, 3], [1, 2], [17, 0], [5, 1], [0, 4]],
        {"shape": 1.5, "grid": [0.4, 3]},
    ),
    "mixed": ([[1, 0.4], [1, -1.2], [0, 2.5], [0, 1.9], [1, 0.1]], {}),
}

PRIOR_CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in PRIORS}
PRIOR_CASES["dp"] = ("dp", {"alpha": 1.0})
# Partitions of more than three blocks are impossible here: log weights of minus infinity.
PRIOR_CASES["emm-at-most-3"] = ("emm", {"kmax": 3})

FAMILY_NAMES = sorted(_VALUES)
PRIOR_NAMES = sorted(PRIOR_CASES)


@dataclass(frozen=True)
class Problem:
    """A posterior over the partitions of a few atoms; ``target`` are its probabilities."""

    family: Any
    atoms: Atoms
    model: Model
    states: list[Shape]
    target: NDArray[np.float64]
    _prepared: dict[Shape, State] = field(default_factory=dict)

    def prepare(self, state: Shape) -> State:
        """A state of its own with that partition."""
        if state not in self._prepared:
            labels = np.array(state, dtype=np.int64)
            self._prepared[state] = make_state(self.family, self.atoms, labels)
        prepared = self._prepared[state]
        arrays: list[Any] = [array.copy() for array in prepared.partition]
        return prepared._replace(partition=Partition(*arrays))

    def after(self, kernel: Kernel, rng: Any, state: Shape) -> Shape:
        """The partition that one sweep of the kernel leads to."""
        work = self.prepare(state)
        live = np.arange(len(state), dtype=np.int64)
        kernel.sweep(rng, work, self.model, kernel.plan, live, make_tally())
        seen: dict[int, int] = {}
        return tuple(seen.setdefault(k, len(seen)) for k in work.partition.label.tolist())

    def matrix(self, kernel: Kernel, source: type[Paths]) -> NDArray[np.float64]:
        """Transition matrix of one sweep."""
        return transition_matrix(self.states, partial(self.after, kernel), source)


def _build(family: str, prior: str, values: NDArray[np.float64], owner: NDArray[np.int64]) -> Any:
    """Family, atoms and model, where observation r belongs to atom ``owner[r]``."""
    built = FAMILIES[family].build(_VALUES[family][1], values)
    size = np.bincount(owner)
    rows = np.zeros((size.shape[0], statistics_width(built)))
    single = np.zeros((1, rows.shape[1]))
    for r in range(values.shape[0]):
        observe(built, values, r, single, 0)
        rows[owner[r]] += single[0]
    work = workspace(built)
    name, parameters = PRIOR_CASES[prior]
    seating = build_prior(name, parameters).seating(values.shape[0], size.shape[0])
    return built, make_atoms(built, rows, size, work), Model(built, seating, work)


@cache
def problem(family: str, prior: str, n: int, *, compacted: bool = False) -> Problem:
    """Posterior of the first n observations; ``compacted`` makes atom 1 a pair, atom 2 a triple."""
    owner = np.sort(np.append(np.arange(n), [1, 2, 2])) if compacted else np.arange(n)
    values = np.asarray(_VALUES[family][0], dtype=np.float64)
    values = values[np.arange(owner.shape[0]) % values.shape[0]]
    built, atoms, model = _build(family, prior, values, owner)
    weighed = [(state, _log_target(model, atoms, state)) for state in partitions(n)]
    states = [state for state, weight in weighed if weight > -np.inf]
    log_target = np.array([weight for _, weight in weighed if weight > -np.inf])
    target = np.exp(log_target - log_target.max())
    return Problem(built, atoms, model, states, target / target.sum())


def random_state(family: str, prior: str, n: int, rng: Generator) -> tuple[State, Model]:
    """A random partition of n atoms of one to three random observations into 4 blocks at most."""
    values = np.asarray(_VALUES[family][0], dtype=np.float64)
    fractional = (values != np.floor(values)).any(axis=0)
    owner = np.repeat(np.arange(n), rng.integers(1, 4, n))
    values = values[rng.integers(0, values.shape[0], owner.shape[0])]
    moves = rng.normal(size=values.shape)[:, fractional]
    if family == "gamma":  # of numbers above 0
        values[:, fractional] *= np.exp(moves)
    else:
        values[:, fractional] += moves
    built, atoms, model = _build(family, prior, values, owner)
    return make_state(built, atoms, rng.integers(0, 4, n).astype(np.int64)), model


def _log_target(model: Model, atoms: Atoms, state: Shape) -> float:
    labels = np.array(state)
    value = float(model.seating.log_blocks[max(state) + 1])
    for block in range(max(state) + 1):
        row = atoms.rows[labels == block].sum(axis=0, keepdims=True)
        value += log_size(model.seating, int(atoms.size[labels == block].sum()))
        value += log_marginal(model.family, row, 0, model.work)
    return value
