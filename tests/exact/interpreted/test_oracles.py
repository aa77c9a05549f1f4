"""Transition matrices computed by an independent program: five binary vectors of three features.

``bern5.json`` holds the posterior, ``bern5_transitions.json.gz`` fifteen kernels' matrices, from
which the ones of this package's kernels are taken. Some of them visit atoms in the order of their
ids, where production draws the order: :class:`IdOrder` is a source of randomness that draws that
one.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import FORMS, GIBBS_AT, KERNELS, Kernel, problem
from tests.exact.enumeration import IdOrder, Paths, Shape

DATA = Path(__file__).parent.parent / "data"

# Oracle name: kernel, source of randomness.
MATRICES: dict[str, tuple[Kernel, type[Paths]]] = {
    "random": (KERNELS["rsm"], Paths),
    "rgsm0": (KERNELS["rgsm"], IdOrder),
    "sams_random_order": (KERNELS["sams"], Paths),
    "sams_fixed_order": (KERNELS["sams"], IdOrder),
    "sdds_a": (FORMS["sdds-a-paper"], IdOrder),
    "sdds_a_uniform": (FORMS["sdds-a-equal"], IdOrder),
    "sdds_a_pernat": (FORMS["sdds-a-per-nat"], IdOrder),
    "sdds_b": (KERNELS["sdds-b"], Paths),
    "sdds_b_eq6": (FORMS["sdds-b-paper"], Paths),
    "ss": (FORMS["ss-paper"], IdOrder),
    "rm_half": (FORMS["rm-half"], Paths),
    "rm_uniform": (KERNELS["rm"], Paths),
    "dm_split": (KERNELS["dm"], Paths),
}


def code(state: Shape) -> str:
    return "".join(str(label + 1) for label in state)


def published(name: str) -> NDArray[np.float64]:
    with gzip.open(DATA / "bern5_transitions.json.gz", "rt") as file:
        rows = json.load(file)[name]
    codes = [code(state) for state in problem("bernoulli", "dp", 5).states]
    return np.array([[rows[a].get(b, 0.0) for b in codes] for a in codes])


def test_posterior() -> None:
    small = problem("bernoulli", "dp", 5)
    expected = json.loads((DATA / "bern5.json").read_text())["post"]
    found = dict(zip(map(code, small.states), small.target, strict=True))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", MATRICES)
def test_transition_matrix(name: str) -> None:
    kernel, source = MATRICES[name]
    matrix = problem("bernoulli", "dp", 5).matrix(kernel, source)
    assert np.abs(matrix - published(name)).max() < 1e-10


def test_gibbs_scan() -> None:
    small = problem("bernoulli", "dp", 5)
    matrix = np.linalg.multi_dot([small.matrix(at, Paths) for at in GIBBS_AT])
    assert np.abs(matrix - published("gibbs_scan")).max() < 1e-10
