"""Who has been with whom through the newest sweeps: against a record of every one of them."""

import numpy as np
import pytest

from weald.mcmc.chain import co_occurrence as module
from weald.mcmc.chain.co_occurrence import CoOccurrence

SPELL = 5


@pytest.fixture(autouse=True)
def short_spells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPELL", SPELL)


def test_against_a_record(rng: np.random.Generator) -> None:
    """Fingerprints agree exactly where the labels of both spells do, for atoms as old as that."""
    company, n = CoOccurrence(), 12
    atoms = np.arange(n)
    company.arrive(atoms)
    record = []
    labels = rng.integers(0, 3, size=n)
    for sweep in range(60):
        if rng.random() < 0.3:
            labels = labels.copy()
            labels[rng.integers(n)] = rng.integers(0, 3)
        record.append(labels)
        company.note(atoms, labels)
        begun = SPELL * (sweep // SPELL)
        told = np.array(record[max(begun - SPELL, 0) :])
        groups = company.groups(atoms)
        for i in range(n):
            for j in range(i):
                # In the first spell all are newcomers.
                together = begun > 0 and bool((told[:, i] == told[:, j]).all())
                assert (groups[i] == groups[j]) == together


def test_newcomers_have_been_with_nobody() -> None:
    company = CoOccurrence()
    company.arrive(np.arange(3))
    for _ in range(4 * SPELL):
        company.note(np.arange(3), np.zeros(3, dtype=np.int64))
    assert len(set(company.groups(np.arange(3)).tolist())) == 1
    # An id that is given again, and one that is new.
    company.arrive(np.array([1, 3]))
    company.note(np.arange(4), np.zeros(4, dtype=np.int64))
    groups = company.groups(np.arange(4)).tolist()
    assert groups[0] == groups[2]
    assert len(set(groups)) == 3


def test_wanderers() -> None:
    """Of six, one goes to and fro, one is always alone, and one has come late."""
    company, there = CoOccurrence(), np.arange(6)
    company.arrive(there)
    for sweep in range(6 * SPELL):
        company.note(there, np.array([0, 0, 1, 1, 2, sweep % 2]))
    assert company.wanderers(there).tolist() == [False] * 5 + [True]
    company.arrive(np.array([6]))
    for sweep in range(SPELL):
        company.note(np.arange(7), np.array([0, 0, 1, 1, 2, sweep % 2, sweep % 2]))
    assert company.wanderers(np.arange(7)).tolist() == [False] * 5 + [True, False]
    again = CoOccurrence.restore(company.state(7))
    for each in (company, again):
        each.note(np.arange(7), np.array([0, 0, 1, 1, 2, 1, 1]))
    assert company.groups(np.arange(7)).tolist() == again.groups(np.arange(7)).tolist()
