"""Which observations leave the model.

Decided at refinements only, from the numbers and the times of the observations: a stream that is
cut into other batches, or replayed, forgets the same.

By a *half-life* each leaves by itself, half of those of an age within one half-life: when the share
that is to be left of its age falls below its priority, a uniform number that follows from the
stream's seed and its own number. So what stays is a sample of the stream, the older the thinner,
whose observations are whole. They could stay with less weight instead, but the prior would count
them in full: what is sampled then (``tgmcmc-ibhc.md`` section 7) joins clusters that are ten
standard deviations apart. A network's edges do fade, being counts.

The *stream's clock* is the median time of the observations since the last refinement, and never
goes back: a few records with a wrong clock neither empty a window nor stop it.
"""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.stream.settings import MemorySettings
from weald.stream.tables.atom_table import AtomTable

from .sample import priorities

__all__ = ["REPLACED_RECORDS", "Forgetting", "load_memory", "saved_memory"]

Ids = NDArray[np.int64]

# What was replaced leaves after each so many observations, and at refinements: together, since
# every removal looks for its numbers among all that is held.
REPLACED_RECORDS = 100
# In saved settings a policy is its place here.
_POLICIES = ("bundles", "sample")


class Forgetting:
    """The settings, and where the stream stood at the last refinement.

    Parameters
    ----------
    settings : MemorySettings
    """

    def __init__(self, settings: MemorySettings) -> None:
        self.settings = settings
        self._seq = 0
        self._clock = -np.inf
        self._replaced: Ids = np.empty(0, dtype=np.int64)

    def advance(self, atom_table: AtomTable, seq: int) -> None:
        """Go on to observation number `seq`."""
        recent = atom_table.time[: atom_table.end][atom_table.seq[: atom_table.end] > self._seq]
        self.go_on(seq, recent, seq - self._seq)

    def go_on(self, seq: int, recent: NDArray[np.float64], n_new: int) -> float:
        """Go on to number `seq`; returns by what factor weights shrink, of what fades.

        Parameters
        ----------
        seq : int
        recent : ndarray of float64
            Times of what has come since the last refinement and is there.
        n_new : int
            How many have come.
        """
        before = self._clock
        if len(recent):
            self._clock = max(self._clock, float(np.median(recent)))
        self._seq = seq
        halvings = 0.0
        if self.settings.half_life_records is not None:
            halvings = n_new / self.settings.half_life_records
        elif self.settings.half_life_seconds is not None and np.isfinite(before):
            halvings = (self._clock - before) / self.settings.half_life_seconds
        return float(0.5**halvings)

    @property
    def replacing(self) -> bool:
        """Whether any are to leave because they were replaced."""
        return len(self._replaced) > 0

    def replace(self, seqs: Ids) -> None:
        """Note observations that are to leave because a later one has their key; 0 is none."""
        self._replaced = np.concatenate([self._replaced, seqs[seqs > 0]])

    def take_replaced(self) -> Ids:
        """Return what was noted, once."""
        replaced, self._replaced = self._replaced, np.empty(0, dtype=np.int64)
        return replaced

    @property
    def stood(self) -> int:
        """Number of the observation at the last refinement."""
        return self._seq

    @property
    def horizon(self) -> float:
        """The time before which things leave."""
        window = self.settings.window_seconds
        return -np.inf if window is None else self._clock - window

    def leaving(self, atom_table: AtomTable, seed: int) -> Ids:
        """Atoms that leave.

        Parameters
        ----------
        atom_table : AtomTable
        seed : int
            Of the stream, from which priorities follow.
        """
        atoms = atom_table.present
        seqs, times = atom_table.seq[atoms], atom_table.time[atoms]
        leaves = times < self.horizon
        if self.settings.window_records is not None:
            leaves |= seqs <= self._seq - self.settings.window_records
        if self.settings.fades:
            leaves |= self._shares(seqs, times) < priorities(seed, seqs) / 2.0**64
        # What was compacted before there was a window has no number and no time: it stays.
        return atoms[leaves & (seqs > 0)]

    def _shares(self, seqs: Ids, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share (n) of observations of their ages that is left, by numbers and times (n)."""
        if self.settings.half_life_records is not None:
            halvings = (self._seq - seqs) / self.settings.half_life_records
        else:
            halvings = (self._clock - times) / (self.settings.half_life_seconds or np.inf)
        # One whose own clock is ahead is no younger than new.
        return np.asarray(0.5 ** np.maximum(halvings, 0.0))

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays from which `restore` goes on."""
        stood = np.array([float(self._seq), self._clock])
        settings = saved_memory(self.settings)
        return {"settings": settings, "stood": stood, "replaced": self._replaced}

    @classmethod
    def restore(cls, state: dict[str, NDArray[Any]]) -> "Forgetting":
        """Undo `state`."""
        forgetting = cls(load_memory(state["settings"]))
        forgetting._seq, forgetting._clock = int(state["stood"][0]), float(state["stood"][1])
        # An earlier Weald replaced nothing.
        forgetting._replaced = state.get("replaced", forgetting._replaced)
        return forgetting


def saved_memory(settings: MemorySettings) -> NDArray[np.float64]:
    """Settings as an array; NaN for what is not set."""
    *values, policy = (getattr(settings, name) for name in MemorySettings.__struct_fields__)
    numbers = [np.nan if value is None else float(value) for value in values]
    return np.array([*numbers, float(_POLICIES.index(policy))])


def load_memory(saved: NDArray[np.float64]) -> MemorySettings:
    """Undo `saved_memory`."""
    # An earlier Weald had no policy, the last of them.
    chosen: dict[str, Any] = {
        name: value
        for name, value in zip(MemorySettings.__struct_fields__, saved.tolist(), strict=False)
        if not np.isnan(value)
    }
    policy = int(chosen.pop("policy", 0))
    if "leaf_budget" in chosen:
        chosen["policy"] = _POLICIES[policy]
    return msgspec.convert(chosen, MemorySettings, strict=False)
