"""Every kernel leaves every posterior invariant: ``pi P = pi`` from the production code."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import (
    FAMILY_NAMES,
    FORMS,
    GIBBS_WINDOW,
    KERNELS,
    PRIOR_NAMES,
    Problem,
    problem,
)
from tests.exact.enumeration import IdOrder, Paths, is_irreducible
from weald.treecore.family import FAMILIES

TOLERANCE = 1e-12


def check(small: Problem, matrix: NDArray[np.float64]) -> None:
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
    assert np.abs(small.target @ matrix - small.target).max() < TOLERANCE
    assert is_irreducible(matrix)


def test_every_family_is_tried() -> None:
    assert set(FAMILY_NAMES) == set(FAMILIES)


def every_pair() -> list[tuple[str, str, str]]:
    """Kernel, family and prior, so that each two of two kinds meet.

    A kernel sees a family through the marginals of blocks, a prior through weights of their sizes
    and number, and adds both: what is right for each pair is right for all three.
    """
    kernels = list(KERNELS)
    k, f, p = len(kernels), len(FAMILY_NAMES), len(PRIOR_NAMES)
    return sorted(
        {
            (kernels[i % k], FAMILY_NAMES[j % f], PRIOR_NAMES[(i + j) % p])
            for i, j in product(range(max(k, f, p)), repeat=2)
        }
    )


def test_each_pair_is_tried() -> None:
    tried = every_pair()
    for one, other in combinations(range(3), 2):
        lists = (KERNELS, FAMILY_NAMES, PRIOR_NAMES)
        met = {(each[one], each[other]) for each in tried}
        assert met == set(product(lists[one], lists[other]))


@pytest.mark.parametrize(("kernel", "family", "prior"), every_pair())
def test_four_atoms(kernel: str, family: str, prior: str) -> None:
    small = problem(family, prior, 4)
    check(small, small.matrix(KERNELS[kernel], IdOrder))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("prior", ["dp", "pitman-yor", "mfm"])
def test_compacted_atoms(kernel: str, prior: str) -> None:
    small = problem("gaussian", prior, 4, compacted=True)
    check(small, small.matrix(KERNELS[kernel], IdOrder))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prior", ["dp", "mfm"])
def test_other_forms(form: str, prior: str) -> None:
    small = problem("gaussian", prior, 4)
    check(small, small.matrix(FORMS[form], IdOrder))


@pytest.mark.parametrize("kernel", ["rgsm", "sams", "sdds-a", "ss"])
@pytest.mark.parametrize("prior", ["dp", "mfm"])
def test_random_order(kernel: str, prior: str) -> None:
    small = problem("gaussian", prior, 4)
    check(small, small.matrix(KERNELS[kernel], Paths))


@pytest.mark.parametrize("kernel", ["rsm", "sams", "dm", "sdds-b"])
@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_five_atoms(kernel: str, family: str) -> None:
    small = problem(family, "dp", 5)
    check(small, small.matrix(KERNELS[kernel], IdOrder))


@pytest.mark.parametrize(("prior", "compacted"), [("dp", False), ("mfm", True)])
def test_windows_of_two_of_five_atoms(prior: str, *, compacted: bool) -> None:
    small = problem("gaussian", prior, 5, compacted=compacted)
    check(small, small.matrix(GIBBS_WINDOW, Paths))
