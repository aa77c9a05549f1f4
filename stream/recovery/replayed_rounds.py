"""Rounds of refinement, done again at a replay in the places where SQL holds them."""

from collections import deque
from collections.abc import Sequence

from weald.storage.commit.commit import AdoptionRow, LeaseRow
from weald.stream.model.lease_rounds import packed
from weald.stream.model.shard import Shard

__all__ = ["ReplayedRounds"]


# A round that is out is taken back after all that is there to replay.
NOT_YET = 2**62


class ReplayedRounds:
    """The rounds that SQL holds beyond a shard's state, to be done again in their places.

    Parameters
    ----------
    rows : sequence of AdoptionRow
        Rounds that were taken back, in order.
    out : LeaseRow or None
        A lease of the round that is out at the end of the replay.
    shard : Shard
    """

    def __init__(self, rows: Sequence[AdoptionRow], out: LeaseRow | None, shard: Shard) -> None:
        self._rows = deque(rows)
        self._shard = shard
        last = rows[-1].round_number if rows else shard.rounds.taken
        if (
            out is not None
            and out.round_number > last
            and out.begun_seq is not None
            and out.begun_publication is not None
        ):
            begun = out.begun_seq, out.begun_publication
            self._rows.append(AdoptionRow(out.round_number, *begun, NOT_YET, NOT_YET, packed([])))

    def catch_up(self) -> None:
        """Begin and take back whatever has its place at the present point."""
        shard = self._shard
        while self._rows:
            row = self._rows[0]
            here = (shard.seq, shard.publication)
            if shard.round_out != row.round_number:
                if (row.begun_seq, row.begun_publication) != here:
                    return
                shard.begin_round(row)
            if (row.seq, row.publication) != here:
                return
            shard.adopt_round(row.payload)
            self._rows.popleft()

    def room(self, limit: int) -> int:
        """How many observations may be applied before the next place, at most ``limit``."""
        if not self._rows:
            return limit
        row, shard = self._rows[0], self._shard
        begun = shard.round_out == row.round_number
        ahead = (row.seq if begun else row.begun_seq) - shard.seq
        # A place at this very observation comes after a publication that is still to come.
        return min(limit, ahead) if ahead > 0 else limit
