"""What SQL showed after each commit, by eyes of its own; contradictions are noted at once."""

import hashlib
import json
import sqlite3
from contextlib import suppress
from pathlib import Path

from .broker import Broker

__all__ = ["History", "Row"]

Place = tuple[str, int, int]


class Row:
    """A row of the observations or the dead letters, as it was when it came."""

    __slots__ = ("key", "number", "place")

    def __init__(self, place: Place, number: int, key: str | None) -> None:
        self.place, self.number, self.key = place, number, key


class History:
    """The commits of a run.

    Parameters
    ----------
    path : Path
        The database.
    broker : Broker

    Attributes
    ----------
    faults : list of str
        What is wrong.
    rows, letters : list of Row
        Every observation and dead letter that ever came, whatever the retention deleted since. The
        topic's name in their places is that of the log's account at the end.
    gone : set
        Topic's id, partition and offset of records that were deleted before they were read.
    rewritten : set
        Topic's id, partition and offset of places that a log has lost, and may have filled anew.
    read_on : set of int
        Partitions whose log lost its end while a writer read it, and was read on by the same.
    offers : dict
        By round, number and token what was put up for workers.
    pages : dict
        By number and checksum the rows that leases rest on.
    """

    def __init__(self, path: Path, broker: Broker) -> None:
        self._sql = sqlite3.connect(path, isolation_level=None, timeout=0)
        self._broker = broker
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.rows: list[Row] = []
        self.letters: dict[tuple[int, int], Row] = {}
        self.gone: set[tuple[str, int, int]] = set()
        self.offers: dict[tuple[int, int, int], bytes] = {}
        self.pages: dict[tuple[int, bytes], bytes] = {}
        self.adopted: dict[int, bytes] = {}
        self.rewritten: set[tuple[str, int, int]] = set()
        self.replaced = False
        self.read_on: set[int] = set()
        self._truncated: dict[int, tuple[str, int]] = {}
        self.commits = 0
        self._last = (0, 0)
        self._seq = 0
        self._reached: dict[tuple[str, int], tuple[int, int]] = {}
        self._publication = (0, 0)
        self._damaged: int | None = None

    def close(self) -> None:
        """Look no more."""
        self._sql.close()

    def digest(self) -> str:
        """A checksum of everything that was committed, in order, by whom."""
        told = [(row.place, row.number, row.key) for row in self.rows]
        owned = self._sql.execute("SELECT owner, epoch, next_seq FROM streams").fetchall()
        return hashlib.sha256(repr((told, sorted(self.letters), owned)).encode()).hexdigest()[:16]

    def note(self, text: str) -> None:
        """Keep a line for whoever reads the trace."""
        self.notes.append(text)

    def look(self) -> None:
        """Compare what SQL shows now with what it showed before."""
        self.commits += 1
        row = self._sql.execute("SELECT epoch, next_seq FROM streams").fetchone()
        if row is None:
            return
        epoch, next_seq = row
        if epoch not in (self._last[0], self._last[0] + 1) or next_seq < self._last[1]:
            self._wrong(f"commit {epoch} with {next_seq} came after {self._last}")
        self._last = (epoch, next_seq)
        self._look_at_rows(next_seq)
        self._look_for_readers()
        self._look_at_offsets()
        self._look_at_publications()
        self._look_at_adoptions()

    def _wrong(self, text: str) -> None:
        self.faults.append(text)

    def _look_at_rows(self, next_seq: int) -> None:
        for seq, source, offset, key in self._sql.execute(
            "SELECT seq, source_id, record_offset, record_key FROM observations WHERE seq > ? "
            "ORDER BY seq",
            (self._seq,),
        ).fetchall():
            if seq != self._seq + 1:
                self._wrong(f"observation {seq} follows {self._seq}")
            self._seq = seq
            self.rows.append(Row(("", source, offset), seq, key))
        if self._seq != next_seq - 1:
            self._wrong(f"SQL counts {next_seq - 1} observations and holds {self._seq}")
        for source, offset in self._sql.execute(
            "SELECT source_id, record_offset FROM dead_letters"
        ).fetchall():
            self.letters[source, offset] = Row(("", source, offset), 0, None)

    def _look_at_offsets(self) -> None:
        for topic, partition, at, source in self._sql.execute(
            "SELECT topic, partition, next_offset, id FROM offsets"
        ).fetchall():
            before = self._reached.get((topic, partition))
            if before is not None and before[1] == source and at < before[0]:
                self._wrong(f"{topic}[{partition}] went back from {before[0]} to {at}")
            self._reached[topic, partition] = (at, source)

    def _look_at_publications(self) -> None:
        newest = self._sql.execute(
            "SELECT number, seq FROM publications ORDER BY number DESC LIMIT 1"
        ).fetchone()
        if newest is not None:
            if newest[0] < self._publication[0] or newest[1] < self._publication[1]:
                self._wrong(f"publication {newest} came after {self._publication}")
            self._publication = newest

    def _look_at_adoptions(self) -> None:
        last = max(self.adopted, default=0)
        for number, payload in self._sql.execute(
            "SELECT round_number, payload FROM adoptions WHERE round_number > ?", (last,)
        ).fetchall():
            self.adopted[number] = payload
        doubled = self._sql.execute(
            "SELECT round_number, number FROM leases WHERE outcome = 'adopted' "
            "GROUP BY round_number, number HAVING count(*) > 1"
        ).fetchall()
        if doubled:
            self._wrong(f"leases {doubled} were adopted from two holders")

    # The topic.

    def next_offset(self, partition: int) -> int:
        """Where SQL goes on in a partition of the topic that is there."""
        row = self._sql.execute(
            "SELECT next_offset FROM offsets WHERE topic = ? AND partition = ?",
            (self._broker.name, partition),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def note_gone(self, partition: int) -> None:
        """Records of a partition were deleted: those beyond SQL's offset may never be read."""
        log, topic = self._broker.topic.logs[partition], self._broker.topic.id
        for topic_id, place, offset in list(self._broker.ever):
            unread = offset >= self.next_offset(partition) and offset not in log.records
            if (topic_id, place) == (topic, partition) and unread:
                self.gone.add((topic, partition, offset))

    def note_truncated(self, partition: int, places: range) -> None:
        """A log loses these places, under whoever reads it now."""
        self.replaced = True
        self.rewritten |= {(self._broker.topic.id, partition, each) for each in places}
        self._truncated[partition] = (self._owner(), self.next_offset(partition))

    def _look_for_readers(self) -> None:
        """Note whether the writer that read a log that lost its end has simply read on.

        It looks at the log when it starts, and by then the record at SQL's mark is one of the log
        that is there.
        """
        for partition, (owner, at) in list(self._truncated.items()):
            if self.next_offset(partition) != at:
                del self._truncated[partition]
                # Before there is a stream, SQL has no mark of what was read.
                if owner in ("", self._owner()):
                    self.read_on.add(partition)

    def _owner(self) -> str:
        row = self._sql.execute("SELECT owner FROM streams").fetchone()
        return "" if row is None else str(row[0])

    @property
    def too_few(self) -> bool:
        """Whether the topic holds too few good records to make a model of."""
        good = [
            1
            for log in self._broker.topic.logs
            for each in log.records.values()
            if each.visible and each.value is not None and each.value.startswith(b"{")
        ]
        return self._sql.execute("SELECT 1 FROM streams").fetchone() is None and len(good) < 3

    def caught_up(self) -> bool:
        """Whether SQL has all that the topic holds."""
        if self.too_few:
            return True
        accounts = self._sql.execute(
            "SELECT next_offset, topic_id, partition FROM offsets WHERE topic = ?",
            (self._broker.name,),
        ).fetchall()
        for at, topic_id, partition in accounts:
            # Another log that nobody has noticed yet.
            if topic_id != self._broker.topic.id or at > self._broker.topic.logs[partition].end:
                return False
        for partition, log in enumerate(self._broker.topic.logs):
            visible = [offset for offset, each in log.records.items() if each.visible]
            if visible and self.next_offset(partition) <= max(visible):
                return False
        return True

    @property
    def rounds(self) -> int:
        """Number of the newest round of leases that was taken back."""
        return max(self.adopted, default=0)

    def damage_newest_snapshot(self) -> None:
        """Change a bit of the newest snapshot, if there is another one to go back to."""
        numbers = [row[0] for row in self._sql.execute("SELECT number FROM snapshots ORDER BY 1")]
        if len(numbers) < 2 or self._damaged in numbers:
            return
        self._damaged = numbers[-1]
        (payload,) = self._sql.execute(
            "SELECT payload FROM snapshots WHERE number = ?", (self._damaged,)
        ).fetchone()
        broken = bytearray(payload)
        broken[len(broken) // 2] ^= 4
        with suppress(sqlite3.OperationalError):  # somebody is writing
            self._sql.execute(
                "UPDATE snapshots SET payload = ? WHERE number = ?", (bytes(broken), self._damaged)
            )

    @property
    def damaged(self) -> int | None:
        """Number of the snapshot that was damaged."""
        return self._damaged


def key_in(value: bytes) -> str | None:
    """The key that a good record tells; None of a bad one."""
    try:
        return str(json.loads(value)["id"])
    except ValueError:
        return None
