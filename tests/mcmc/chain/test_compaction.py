"""Compaction: fewer atoms, the same partition, and the posterior given that blocks stay whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exact.enumeration import Shape
from tests.mcmc.chains import PRIORS, Values, chain_faults, clumps, same, started
from tests.mcmc.small_chains import GAUSS_1, posterior, small_chain, total_variation
from tests.treecore.invariants import describe
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.chain.compacting import CERTAIN, choose_nodes
from weald.treecore.errors import ObservationError
from weald.treecore.forest.compaction import forest_order, judge_nodes, measure_nodes

N = 4000


class Stream:
    """A chain beside a plain record of what each of its atoms stands for."""

    def __init__(self, prior: str, values: Values) -> None:
        self.chain = started(prior, values)
        self.values = values
        self.held: dict[int, list[int]] = {}
        self._next = 0

    def insert(self, n: int) -> None:
        end = min(self._next + n, len(self.values))
        ids = self.chain.insert(self.values[self._next : end]).tolist()
        assert not self.held.keys() & set(ids)
        self.held |= {i: [r] for i, r in zip(ids, range(self._next, end), strict=True)}
        self._next = end

    def remove(self, atoms: list[int]) -> None:
        self.chain.remove(np.array(atoms, dtype=np.int64))
        for atom in atoms:
            del self.held[atom]

    def compact(self, n_atoms: int) -> None:
        labels, n_before = self.chain.labels, self.chain.n_atoms
        done = self.chain.compact(n_atoms, np.zeros(len(labels), dtype=np.int64), n_atoms)
        for each in done.compacted:
            parts = each.members.tolist()
            assert parts[0] == each.atom
            assert len(set(labels[parts].tolist())) == 1
            assert max(len(self.held[i]) for i in parts) == len(self.held[each.atom])
            rows = [r for i in parts for r in self.held.pop(i)]
            self.held[each.atom] = rows
            assert self.chain.labels[each.atom] == labels[each.atom]
        assert self.chain.n_atoms == min(n_before, max(n_atoms, self.chain.n_blocks))
        assert 0 <= done.n_early <= max(n_before - n_atoms, 0)

    def expand(self, atom: int) -> None:
        rows, label = self.held.pop(atom), self.chain.labels[atom]
        ids = self.chain.expand(atom, self.values[rows])
        assert (self.chain.labels[ids] == label).all()
        self.held |= {i: [r] for i, r in zip(ids.tolist(), rows, strict=True)}

    def check(self) -> None:
        assert describe(chain_faults(self.chain)) == []
        assert np.flatnonzero(self.chain.labels >= 0).tolist() == sorted(self.held)
        sizes = self.chain.atom_sizes
        assert {i: int(sizes[i]) for i in self.held} == {i: len(r) for i, r in self.held.items()}


def play(stream: Stream, rng: np.random.Generator, n_operations: int) -> None:
    """Random operations; splits and merges are what a refinement is made of."""
    chain = stream.chain
    for _ in range(n_operations):
        chosen = rng.integers(10)
        heavy = [i for i, rows in stream.held.items() if len(rows) > 1]
        if chosen < 4 or not stream.held:
            stream.insert(int(rng.integers(1, 6)))
        elif chosen < 6:
            some = rng.choice(list(stream.held), int(rng.integers(1, 4)))
            stream.remove(sorted(set(some.tolist())))
        elif chosen == 6:
            stream.compact(int(rng.integers(1, chain.n_atoms + 1)))
        elif chosen == 7 and heavy:
            stream.expand(int(rng.choice(heavy)))
        elif chosen == 8:
            chain.refine()
        stream.check()
        while len(stream.held) > 60:
            stream.remove(list(stream.held)[:20])


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["dp", "nggp", "mfm"])
def test_a_thousand_operations(prior: str, rng: np.random.Generator) -> None:
    stream = Stream(prior, clumps(int(rng.integers(2**32)), N))
    play(stream, rng, 1000)
    assert same(stream.chain, MixtureChain.restore(stream.chain.state()))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), prior=st.sampled_from(list(PRIORS)))
def test_restored_after_operations(seed: int, prior: str) -> None:
    rng = np.random.default_rng(seed)
    whole = Stream(prior, clumps(seed, 400))
    play(whole, rng, 15)
    other = Stream(prior, whole.values)
    other.chain = MixtureChain.restore(whole.chain.state())
    other.held, other._next = dict(whole.held), whole._next
    later = int(rng.integers(2**32))
    for stream in (whole, other):
        play(stream, np.random.default_rng(later), 15)
    assert same(whole.chain, other.chain)


def together(chain: MixtureChain, atoms: list[int]) -> None:
    """Refine until these atoms are in one block."""
    while len(set(chain.labels[atoms].tolist())) > 1:
        chain.refine()


def restricted(full: dict[Shape, float], i: int, j: int) -> dict[Shape, float]:
    """The table given that two observations are in one block."""
    whole = {shape: p for shape, p in full.items() if shape[i] == shape[j]}
    total = sum(whole.values())
    return {shape: p / total for shape, p in whole.items()}


def compacted_pair(values: Values, prior: str = "dp", other: int = 1) -> MixtureChain:
    """A chain whose first observation and another have become one atom, numbered 0."""
    parameters = {"dp": {"alpha": 1.0}, "pitman-yor": {"alpha": 0.5, "discount": 0.1}}
    chain = small_chain(values, (prior, {**parameters[prior], "learn": False}))
    chain.insert(values)
    together(chain, [0, other])
    tags = np.arange(len(values))
    tags[other] = 0
    done = chain.compact(len(values) - 1, tags, len(values) - 1)
    assert [each.members.tolist() for each in done.compacted] == [[0, other]]
    return chain


@pytest.mark.parametrize("prior", ["dp", "pitman-yor"])
def test_what_is_sampled_is_the_restricted_table(prior: str) -> None:
    chain = compacted_pair(GAUSS_1, prior)
    expected = restricted(posterior(chain, GAUSS_1), 0, 1)
    assert len(expected) == 15
    found, noise = total_variation(chain, [0, 0, 2, 3, 4], expected, 2000)
    assert found < 1.5 * noise


def test_a_pair_of_no_neighbours() -> None:
    """The first and the last of five on a line: no subtree of the forest holds just these two."""
    chain = compacted_pair(GAUSS_1, other=4)
    expected = restricted(posterior(chain, GAUSS_1), 0, 4)
    found, noise = total_variation(chain, [0, 1, 2, 3, 0], expected, 2000)
    assert found < 1.5 * noise


def test_expanded_it_is_the_whole_table_again() -> None:
    chain = compacted_pair(GAUSS_1)
    chain.refine()
    places = chain.expand(0, GAUSS_1[:2]).tolist()
    assert chain.disruption == 0.0
    found, noise = total_variation(chain, [*places, 2, 3, 4], posterior(chain, GAUSS_1), 2000)
    assert found < 1.5 * noise


def test_the_estimate_beside_the_truth() -> None:
    """Total variation is the posterior probability that the pair is not together.

    The estimate sees the pair alone: the others, which may pull it apart or hold it together, are
    not in it. So it is neither the truth nor a bound, but of its order.
    """
    chain = compacted_pair(GAUSS_1)
    full = posterior(chain, GAUSS_1)
    truth = sum(p for shape, p in full.items() if shape[0] != shape[1])
    # The spec's oracle O12: intact with probability 0.601168024726.
    assert truth == pytest.approx(1.0 - 0.601168024726, abs=1e-10)
    assert truth / 3 < chain.disruption < 3 * truth
    near, far = np.array([[0.0], [0.01], [300.0], [310.0], [320.0]]), []
    for spread in (1.0, 10.0):
        chain = compacted_pair(near * spread)
        full = posterior(chain, near * spread)
        truth = sum(p for shape, p in full.items() if shape[0] != shape[1])
        far.append((chain.disruption, truth))
        assert truth / 3 < chain.disruption < 3 * truth


def test_the_rule_comes_before_need() -> None:
    values = clumps(4, 300)
    chain = started("dp", values)
    chain.insert(values)
    chain.refine(rounds=5)
    present = np.arange(300)
    groups = np.stack([chain.labels, np.where(present % 3 == 0, -1, chain.labels)])
    order = forest_order(chain._forest)
    measure_nodes(chain._first_model(0), chain._forest, order)
    judged = judge_nodes(chain._model(0), chain._forest, order, groups)
    inner = order[chain._forest.left[order] >= 0]
    whole = inner[judged.together[inner] >= 0]
    # No node is easier to take than one below it, so what is taken is closed downwards.
    for v in whole.tolist():
        for child in (int(chain._forest.left[v]), int(chain._forest.right[v])):
            assert judged.worst[child] <= judged.worst[v]
            assert judged.together[child] == judged.together[v]
    saved = []
    for n in range(0, len(whole) + 5, 7):
        nodes, early = choose_nodes(chain._forest, order, judged, n)
        assert int((chain._forest.n_leaves[nodes] - 1).sum()) == min(n, len(whole))
        saved.append(early)
        assert early == 0 or (judged.worst[nodes] > CERTAIN).any() or early <= n
    assert saved == sorted(saved)


def test_a_torn_partition_is_never_bent() -> None:
    values = clumps(4, 60)
    chain = started("dp", values)
    chain.insert(values)
    chain.refine(rounds=3)
    chain.compact(1, np.arange(60), 1)
    assert chain.n_atoms == 60
    before = chain.labels
    alike = np.zeros(60, dtype=np.int64)
    # Subtrees alone, and then as far as it must be.
    chain.compact(1, alike, 60)
    assert chain.n_blocks < chain.n_atoms < 60
    middle = (chain.n_blocks + chain.n_atoms) // 2
    chain.compact(1, alike, middle)
    assert chain.n_atoms == middle
    chain.compact(1, alike, 1)
    after = chain.labels
    assert chain.n_atoms == chain.n_blocks
    assert (after[after >= 0] == before[after >= 0]).all()
    assert chain.n_observations == 60


def test_expanding_what_is_not_there() -> None:
    chain = compacted_pair(GAUSS_1)
    before = chain.state()
    for atom, n in ((0, 1), (1, 2), (9, 1), (-1, 1)):
        with pytest.raises(ObservationError):
            chain.expand(atom, GAUSS_1[:n])
    assert all(np.array_equal(before[key], value) for key, value in chain.state().items())
