"""A fit's snapshots, a new one after each sweep, from which another process goes on.

The folder has the shards' labels after the same sweep, so that what comes next is the same, bit for
bit, as if nobody had gone away.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.sharded.sharded_chain import ShardedState
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import SnapshotCorrupt
from weald.stream.errors import SourceError
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.prior import build_prior

from .standing import FitStanding, KeptDraws, ShardedTrace

__all__ = ["FitSnapshots"]

_SNAPSHOT, _TERMS, _LOCK = "fit.snapshot", "fit.json", "fit.lock"
_FOLLOWED = ("log_joint", "n_clusters", "sum_of_squares", "seconds", "bytes")


class FitSnapshots:
    """The snapshot of a fit in a folder that one process has at a time.

    Parameters
    ----------
    folder : Path
    terms : mapping
        All that a fit depends on but how long it lasts, as JSON has it. One that goes on has to
        have the same.

    Raises
    ------
    SourceError
        If another process has the folder, or it is that of a fit on other terms.
    """

    def __init__(self, folder: Path, terms: Mapping[str, Any]) -> None:
        self._folder = folder
        # Let go by the system, however the process ends; shards do not inherit it.
        self._lock = (folder / _LOCK).open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise SourceError(f"{folder}: another fit has this folder") from error
        try:
            self._agree(terms)
        except BaseException:
            self._lock.close()
            raise

    def _agree(self, terms: Mapping[str, Any]) -> None:
        wanted = json.loads(json.dumps(terms))
        path = self._folder / _TERMS
        if not path.exists():
            self._put(_TERMS, json.dumps(terms).encode())
            return
        known = json.loads(path.read_text())
        for name, value in wanted.items():
            if known.get(name) != value:
                raise SourceError(
                    f"{self._folder}: is of a fit with other {name}: {known.get(name)}, not {value}"
                )

    def _put(self, name: str, data: bytes) -> None:
        """Write a file; it is there as a whole, or the one before is."""
        part = self._folder / f"{name}.part"
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._folder / name)

    def save(self, standing: FitStanding) -> None:
        """Keep where the fit stands, in place of where it stood."""
        state, trace, draws = standing.state, standing.trace, standing.draws
        spec = spec_of(state.family)
        about = {
            "family": spec.name,
            "parameters": spec.parameters(state.family),
            "prior": [state.prior.name, state.prior.parameters()],
            "first_prior": [standing.first_prior.name, standing.first_prior.parameters()],
            "n": state.n,
            "seed": state.seed,
            "sweep": state.sweep,
            "n_remade": trace.n_remade,
            "draws": [draws.kept, draws.stride, sorted(draws.held), draws.unneeded],
        }
        saved: dict[str, NDArray[Any]] = {
            "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            "sums": state.sums,
            "tally": state.tally,
            "whole_tally": trace.tally,
        }
        saved |= {name: np.array(getattr(trace, name)) for name in _FOLLOWED}
        saved |= {f"hyper_{name}": np.array(values) for name, values in trace.hyper.items()}
        self._put(_SNAPSHOT, encode(saved))

    def load(self, n_features: int) -> FitStanding | None:
        """Where the fit stands; None before its first sweep. What it learns by is not there.

        Raises SourceError for a damaged file.
        """
        path = self._folder / _SNAPSHOT
        if not path.exists():
            return None
        try:
            saved = decode(path.read_bytes())
        except SnapshotCorrupt as error:
            raise SourceError(f"{path}: {error}") from error
        about = json.loads(saved["about"].tobytes())
        sample = np.empty((0, n_features))
        family = FAMILIES[about["family"]].build(about["parameters"], sample)
        state = ShardedState(
            about["n"],
            about["seed"],
            about["sweep"],
            saved["sums"],
            family,
            build_prior(*about["prior"]),
            tally=saved["tally"],
        )
        trace = ShardedTrace(tally=saved["whole_tally"], n_remade=about["n_remade"])
        for name in _FOLLOWED:
            getattr(trace, name).extend(saved[name].tolist())
        hyper = [name for name in saved if name.startswith("hyper_")]
        trace.hyper = {name.removeprefix("hyper_"): saved[name].tolist() for name in hyper}
        kept, stride, held, unneeded = about["draws"]
        draws = KeptDraws(kept, stride, set(held), unneeded)
        return FitStanding(state, build_prior(*about["first_prior"]), trace, draws)

    def close(self) -> None:
        """Let others have the folder."""
        self._lock.close()
