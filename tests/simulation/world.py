"""One run: servers, processes and an operator, and a list of events that befall them."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from weald.storage.redis import lease_queue, statistics
from weald.storage.writing.store import SqlStore
from weald.stream.engine import commit_pipeline, concurrent
from weald.stream.engine import writer as engine_writer
from weald.stream.engine.concurrent import Work
from weald.stream.source import kafka_log, kafka_source
from weald.stream.worker import worker

from .broker import Broker, Record
from .chain import work_by_coins
from .cheap import cheap_parts
from .consumer import consumer_of
from .database import Database
from .history import History
from .processes import TOPIC, Fleet
from .redis_faults import RedisClient, RedisFaults
from .scenario import CHAOS_SECONDS, Event, Scenario
from .scheduler import EPOCH, Process, Scheduler
from .sql_faults import SqlFaults
from .virtual_time import Beside, Pool, virtual_time

__all__ = ["World"]

_HEAL_SECONDS, _CALM_SECONDS = 240.0, 4.0
_REMAKING_SECONDS = 0.06


class World:
    """Everything that a run consists of.

    Parameters
    ----------
    scenario : Scenario
    database : Database
        Made anew for this run.
    """

    def __init__(self, scenario: Scenario, database: Database) -> None:
        self.scenario = scenario
        self.draw = random.Random(scenario.seed ^ 0x5EED)
        self.scheduler = Scheduler(random.Random(scenario.seed ^ 0xC10C))
        self.broker = Broker(self.scheduler, TOPIC, scenario.n_partitions)
        self.redis = RedisFaults(self.scheduler, lambda: EPOCH + self.scheduler.now)
        self.sql = SqlFaults(self.scheduler, random.Random(scenario.seed ^ 0x5A1))
        self.database = database
        database.renew(self.sql, sheds=bool(scenario.retention))
        self._takes = {
            "refinement": random.Random(scenario.seed ^ 0xBE5),
            "snapshot": random.Random(scenario.seed ^ 0x1AA6E),
        }
        self.history = History(database.path, self.broker)
        self.sql.on_commit = self.history.look
        self.fleet = Fleet(self)
        self._n_sent = 0
        self._operators = 0

    def store(self) -> SqlStore:
        """A process's way to SQL, behind the faults."""
        return self.database.store()

    def close(self) -> None:
        """Let go of what a run that broke off has left."""
        self.fleet.end()
        self.history.close()

    def play(self) -> None:
        """Let everything happen, then let it heal, then stop.

        What is wrong is in `history.faults`.
        """
        with self.in_place():
            self.fleet.start()
            for each in self.scenario.events:
                self.scheduler.run(until=each.at)
                getattr(self, f"_{each.kind}")(each)
            self.scheduler.run(until=CHAOS_SECONDS)
            self._heal()
            self._settle("everybody is back", self.fleet.start)
            if self.fleet.workers and not self.history.too_few:
                before = self.history.rounds
                self._run_until(
                    lambda: self.history.rounds > before, "no round of leases comes back any more"
                )
            # A last start has to find what was done, by what SQL, a snapshot and the log hold.
            self._settle("one writer has started again", self.fleet.start_alone)
            self.fleet.stop()
            self._run_until(lambda: self.fleet.ended, "the writer did not stop")

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The product's ways to its servers lead here, and its kernels cost nothing."""

        def client(_settings: object) -> RedisClient:
            return RedisClient(self.redis, self.scheduler)

        consumer = consumer_of(self.broker, self.scheduler, self.draw)
        stand_ins = [
            (lease_queue, "connect", client),
            (statistics, "connect", client),
            (kafka_source, "KafkaConsumer", consumer),
            (kafka_log, "KafkaConsumer", consumer),
            (worker, "work", self._work),
            *cheap_parts(self.scenario.few_atoms),
            (concurrent, "BackgroundThread", self._beside),
            (engine_writer, "BackgroundThread", self._beside),
            (commit_pipeline, "ThreadPoolExecutor", lambda *_: Pool(self.scheduler)),
        ]
        with ExitStack() as stack:
            stack.enter_context(
                virtual_time(self.scheduler, random.Random(self.scenario.seed), self.fleet.passes)
            )
            for where, name, stand_in in stand_ins:
                stack.enter_context(patch.object(where, name, stand_in))
            yield

    def _beside(self, work: Work, name: str) -> Beside:
        # As long as other things take, or much longer.
        takes = self._takes[name]
        seconds = takes.choice((0.0, 1.0, 5.0, 20.0)) * takes.random()
        return Beside(work, self.scheduler, seconds)

    def _work(self, lease: object) -> object:
        self.scheduler.sleep(self.draw.choice((0.01, 0.3, 2.0, 7.0)) * self.draw.random())
        return work_by_coins(lease)  # type: ignore[arg-type]

    # The end.

    def _heal(self) -> None:
        self.broker.away_until = 0.0
        self.sql.heal()
        self.redis.heal()
        self.fleet.heal()
        if self.broker.redeliver:
            self.broker.redeliver = 0

    def _settle(self, what: str, begin: Callable[[], None]) -> None:
        begin()
        self._run_until(
            lambda: self.history.caught_up() and self.fleet.leading,
            f"{what}, and nobody catches up",
        )
        # Nothing may come of waiting longer.
        self.scheduler.run(until=self.scheduler.now + _CALM_SECONDS)

    def _run_until(self, done: Callable[[], bool], otherwise: str) -> None:
        end = self.scheduler.now + _HEAL_SECONDS
        while not done() and self.scheduler.now < end and not self.history.faults:
            self.scheduler.run(until=self.scheduler.now + 1.0)
        if not done() and not self.history.faults:
            self.history.faults.append(otherwise)

    # What happens: to the topic.

    def _append(self, event: Event) -> None:
        for _ in range(int(event.amount)):
            self._n_sent += 1
            number = self._n_sent
            if self.draw.random() < self.scenario.repeated_keys:
                number = self.draw.randint(1, number)
            flags = {"x": self.draw.randint(0, 1), "y": self.draw.randint(0, 1)}
            value = json.dumps({"id": f"k{number}", **flags}).encode()
            if self.draw.random() < 0.07:
                value = b"\xff" + value
            self.broker.append(event.target, self._record(value))

    def _abort(self, event: Event) -> None:
        for _ in range(int(event.amount)):
            self.broker.append(event.target, self._record(b"aborted")._replace(visible=False))

    def _record(self, value: bytes) -> Record:
        return Record(None, value, int((EPOCH + self.scheduler.now) * 1000))

    def _expire(self, event: Event) -> None:
        for partition, log in enumerate(self.broker.topic.logs):
            log.expire(log.end - 2 - int(event.amount))
            self.history.note_gone(partition)

    def _compact(self, _: Event) -> None:
        for partition, log in enumerate(self.broker.topic.logs):
            log.compact(3)
            self.history.note_gone(partition)

    def _add_partition(self, _: Event) -> None:
        self.broker.topic.logs.append(type(self.broker.topic.logs[0])())

    def _recreate(self, event: Event) -> None:
        self.broker.recreate()
        # Nobody deletes a topic, makes it anew and writes it in less (`_SAME_TOPIC_SECONDS`).
        now = self.scheduler.now
        self.broker.away_until = max(self.broker.away_until, now + _REMAKING_SECONDS)
        self.history.replaced = True
        self._append(Event(event.at, "append", event.target, 3 * event.amount))

    def _truncate(self, event: Event) -> None:
        partition = event.target % len(self.broker.topic.logs)
        log = self.broker.topic.logs[partition]
        lost = min(1 + int(event.amount), log.end - log.start)
        self.history.note_truncated(partition, range(log.end - lost, log.end))
        log.truncate(log.end - lost)
        # Other records take the places; the mark's own place is one of them, or beyond the end.
        self._append(Event(event.at, "append", event.target, lost if event.amount > 2 else 0))

    def _redeliver(self, event: Event) -> None:
        self.broker.redeliver = 1 + int(event.amount)

    def _broker_away(self, event: Event) -> None:
        self.broker.away_until = self.scheduler.now + event.amount

    def _rebalance(self, _: Event) -> None:
        self.broker.group.rebalance()

    def _group_reset(self, _: Event) -> None:
        self.broker.group.reset()

    def _expel(self, event: Event) -> None:
        members = list(self.broker.group.members)
        if members:
            self.broker.group.leave(members[event.target % len(members)])

    # To processes.

    def _crash(self, event: Event) -> None:
        self.fleet.crash(self.fleet.writer(event.target), event.amount)

    def _crash_at(self, event: Event) -> None:
        self.fleet.crash_at(event.label, event.amount)

    def _freeze(self, event: Event) -> None:
        writer = self.fleet.writer(event.target)
        writer.frozen_until = self.scheduler.now + event.amount

    def _skew(self, event: Event) -> None:
        self.fleet.writer(event.target).skew = 100.0 * (event.amount - 4.0)

    def _worker_crash(self, event: Event) -> None:
        if self.fleet.workers:
            self.fleet.crash(self.fleet.a_worker(event.target), event.amount)

    def _worker_freeze(self, event: Event) -> None:
        if self.fleet.workers:
            worker = self.fleet.a_worker(event.target)
            worker.frozen_until = self.scheduler.now + event.amount

    # To SQL and Redis.

    def _sql_lost(self, _: Event) -> None:
        self.sql.armed.append(("lost", 0.0))

    def _sql_late(self, event: Event) -> None:
        self.sql.armed.append(("late", event.amount / 4.0))

    def _sql_abort(self, _: Event) -> None:
        self.sql.armed.append(("abort", 0.0))

    def _sql_drop(self, event: Event) -> None:
        self.sql.armed.append(("drop", int(event.amount)))

    def _sql_slow(self, event: Event) -> None:
        self.sql.armed.append(("slow", event.amount))

    def _sql_away(self, event: Event) -> None:
        self.sql.away_until = self.scheduler.now + event.amount

    def _sql_full(self, event: Event) -> None:
        self.sql.full_until = self.scheduler.now + event.amount

    def _redis_away(self, event: Event) -> None:
        self.redis.away_until = self.scheduler.now + event.amount

    def _redis_flush(self, _: Event) -> None:
        self.redis.flush()

    def _redis_evict(self, event: Event) -> None:
        self.redis.evict(min(event.amount / 5.0, 1.0))

    def _redis_lost(self, _: Event) -> None:
        self.redis.lost_answers += 1

    def _redis_stale(self, event: Event) -> None:
        self.redis.mark()
        # Before everything heals: nothing would come that Redis could be mended with.
        delay = min(event.amount, CHAOS_SECONDS - self.scheduler.now)
        self.scheduler.spawn(Process("redis"), self.redis.fail_over, delay)

    # By an operator.

    def _replay_letters(self, _: Event) -> None:
        self._operate(self.fleet.replay_letters)

    def _snapshot(self, _: Event) -> None:
        self._operate(self.fleet.make_snapshot)

    def _damage_snapshot(self, _: Event) -> None:
        self.history.damage_newest_snapshot()

    def _operate(self, what: Callable[[SqlStore], None]) -> None:
        self._operators += 1
        self.scheduler.spawn(
            Process(f"operator-{self._operators}"), lambda: self.fleet.operate(what)
        )
