"""Cost and memory of bags of words by vocabulary: ``python -m benchmarks.words [dense]``.

Documents of 100 words (about as many non-zeros) of 5 topics over vocabularies of 10^3, 10^4 and
10^5 words: microseconds a document of insertion into the forest and of a Gibbs sweep, and what the
process has taken of memory by then. Each vocabulary has a process of its own. ``dense`` adds the
same with dense rows, up to 10^4 words.
"""

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from weald.mcmc.gibbs import gibbs
from weald.mcmc.offline.start import atoms_of, forest_labels, grow_forest
from weald.mcmc.state.atom_state import make_state
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import workspace
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

DOCUMENTS = 2000
WORDS = 100
TOPICS = 5


def documents(n: int, vocabulary: int) -> csr_array:
    """Counts (n, vocabulary) of words, whose frequencies fall as Zipf has it."""
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, vocabulary + 1)
    cumulative = np.cumsum(frequency / frequency.sum())
    order = [rng.permutation(vocabulary) for _ in range(TOPICS)]
    rows = np.repeat(np.arange(n), WORDS)
    ranks = np.minimum(np.searchsorted(cumulative, rng.random(rows.size)), vocabulary - 1)
    words = np.stack(order)[(rows % TOPICS), ranks]
    counts = csr_array((np.ones(rows.size), (rows, words)), shape=(n, vocabulary))
    counts.sum_duplicates()
    return counts


def measure(values: Any) -> str:
    """Insert all documents, then two Gibbs sweeps from the trees."""
    n = values.shape[0]
    family = FAMILIES["multinomial"].build({"beta": 0.1}, values)
    prior = build_prior("dp", {"alpha": 1.0})
    atoms = atoms_of(family, values)
    start = time.process_time()
    forest = grow_forest(family, prior, atoms)
    inserted = time.process_time() - start
    labels = canonical_labels(forest_labels(forest, n))
    state = make_state(family, atoms, labels)
    model = Model(family, prior.seating(n, n), workspace(family))
    rng = np.random.default_rng(0)
    visited = np.arange(n, dtype=np.int64)
    start = time.process_time()
    for _ in range(2):
        gibbs.sweep(rng, state, model, visited)
    swept = (time.process_time() - start) / 2
    return (
        f"{1e6 * inserted / n:12.1f}{1e6 * swept / n:12.1f}"
        f"{int(forest.n_roots[0]):8}{int(state.partition.n_blocks[0]):8}"
    )


def one(vocabulary: int, *, dense: bool) -> str:
    """A line of the table, in a process whose memory nothing else has taken."""
    values = documents(DOCUMENTS, vocabulary)
    warm = documents(40, vocabulary)
    measure(warm.toarray() if dense else warm)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = measure(values.toarray() if dense else values)
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    form = "dense" if dense else "sparse"
    return f"{form:>8}{vocabulary:>12}{values.nnz:>12}{told}{taken:12.0f}"


def main(arguments: list[str]) -> None:
    """Print the table, or one line of it."""
    if arguments[:1] == ["line"]:
        print(one(int(arguments[1]), dense=arguments[2] == "dense"), flush=True)
        return
    print(
        f"{'rows':>8}{'vocabulary':>12}{'non-zeros':>12}{'insert us':>12}{'Gibbs us':>12}"
        f"{'trees':>8}{'blocks':>8}{'MiB more':>12}",
        flush=True,
    )
    forms = ["sparse", "dense"] if "dense" in arguments else ["sparse"]
    for form in forms:
        for vocabulary in (1_000, 10_000, 100_000):
            if form == "dense" and vocabulary > 10_000:
                continue
            line = [sys.executable, "-m", "benchmarks.words", "line", str(vocabulary), form]
            subprocess.run(line, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
