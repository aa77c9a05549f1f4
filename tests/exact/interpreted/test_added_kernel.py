"""The enumeration knows a kernel that is no more than a line in the registry, and its claim."""

import pytest

from tests.exact.claims import kernel_of, posed_to, require_claim
from weald.mcmc.contract import Claim, Entry
from weald.mcmc.schedule import registry


def added(monkeypatch: pytest.MonkeyPatch, claim: Claim) -> Entry:
    line = Entry("merge-only", claim, "tests.mcmc.schedule.merge_only")
    monkeypatch.setattr(registry, "REGISTRY", [*registry.REGISTRY, line])
    return line


@pytest.mark.parametrize("posed", [0, 1])
def test_merges_alone_are_approximate(posed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = added(monkeypatch, "approximate")
    require_claim(kernel_of(line), posed_to(line, posed))


def test_a_claim_that_does_not_hold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    line = added(monkeypatch, "exact")
    with pytest.raises(AssertionError):
        require_claim(kernel_of(line), posed_to(line, 0))
