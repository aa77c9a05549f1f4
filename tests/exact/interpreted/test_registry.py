"""Every kernel of the registry does what its line claims."""

import pytest

from tests.exact.claims import kernel_of, posed_to, require_claim
from weald.mcmc.contract import Entry
from weald.mcmc.schedule.registry import REGISTRY

# They draw real numbers: `tests.exact.calibration` runs them. The published tree-guided sampler has
# a file of its own, for its state has trees.
CALIBRATED = {"slice", "subc", "subc-burnin", "subc-published", "fsd", "gibbs-supc"}
CALIBRATED |= {"tgmcmc-published"}


def test_what_is_not_enumerated_is_known() -> None:
    assert {entry.name for entry in REGISTRY if kernel_of(entry).least is None} == CALIBRATED


@pytest.mark.parametrize("posed", [0, 1])
@pytest.mark.parametrize(
    "entry",
    [entry for entry in REGISTRY if entry.name not in CALIBRATED],
    ids=lambda entry: f"{entry.data}-{entry.name}",
)
def test_a_kernel_does_what_it_claims(entry: Entry, posed: int) -> None:
    require_claim(kernel_of(entry), posed_to(entry, posed))
