"""What metrics and health are told of a run."""

from pathlib import Path

from tests.stream import network
from tests.stream.scenario import Hook, new_store, plan_for, records_file, write_lines
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.stream.engine.engine import Engine
from weald.stream.model.shard import MOVED_BETWEEN_DRAWS
from weald.stream.publication.certainty import DRAWS_KEPT
from weald.stream.record.record import TopicPartition
from weald.stream.source.file_source import FileSource
from weald.stream.telemetry.telemetry import Telemetry


def test_the_numbers_of_a_run_add_up(tmp_path: Path) -> None:
    lines = records_file(tmp_path, 300).read_text().splitlines()
    lines[100:100] = ["nonsense"] * 3
    plan = plan_for(write_lines(tmp_path / "mixed.jsonl", lines))
    telemetry = Hook(lambda _name, _count: None)
    store = new_store(tmp_path)
    Engine(plan, FileSource(plan.stream), store, None, telemetry).run()

    def told(name: str, /, **labels: str) -> float:
        value = telemetry.metrics.registry.get_sample_value(name, {"stream": "stream", **labels})
        assert value is not None, name
        return value

    assert told("weald_records_polled_total") == 303
    assert told("weald_records_decoded_total") == 300
    assert told("weald_observations_inserted_total") == 300
    assert told("weald_dead_letters_total", reason="not_json") == 3
    assert told("weald_observations") == 300
    assert told("weald_clusters") == store.status("stream").n_clusters
    assert told("weald_publications_total") == len(store.publications("stream")) == 2
    assert told("weald_snapshots_total") == 2
    # One in each refinement between, which leaves a draw to the end's publication, and before each
    # publication several for each draw that is lacking: 200 and 300 observations are few.
    between = [MOVED_BETWEEN_DRAWS // n for n in (200, 300)]
    rounds = 1 + DRAWS_KEPT * between[0] + 1 + (DRAWS_KEPT - 1) * between[1]
    assert told("weald_refinement_rounds_total") == rounds
    assert told("weald_phase", phase="stopping") == 1
    assert told("weald_model_info", family="gaussian", prior="dp") == 1
    assert told("weald_hyperparameter", name="alpha") > 0
    assert told("weald_partition_lag_records", topic="mixed.jsonl", partition="0") == 0
    events = store.lineage("stream")
    for kind in ("birth", "split", "merge", "move", "retire"):
        n = sum(event.kind == kind for event in events)
        assert told("weald_lineage_events_total", kind=kind) == n
    assert told("weald_step_seconds_count", step="refine") == 4
    # Records of this schema tell no time of their own.
    assert told("weald_assignment_latency_seconds_count", since="broker") == 303
    assert told("weald_assignment_latency_seconds_count", since="event") == 0


def test_a_network_has_no_number_of_groups(tmp_path: Path) -> None:
    plan = network.plan_for(network.edges_file(tmp_path))
    telemetry, store = Hook(lambda _name, _count: None), new_store(tmp_path)
    Engine(plan, FileSource(plan.stream), store, None, telemetry).run()
    of = telemetry.metrics.registry.get_sample_value
    stream = {"stream": plan.stream.name}
    assert of("weald_clusters", stream) == store.status(plan.stream.name).n_clusters > 0
    assert of("weald_publication_warnings", stream) is not None
    assert of("weald_groups", stream) is None


def test_what_waits_is_told_between_commits() -> None:
    """Lag and what is held must not stand still while a slow topic fills the warm-up."""
    now = [1000.0]
    telemetry = Telemetry(Metrics("stream"), Health(), clock=lambda: now[0])
    place = TopicPartition("t", 0)
    telemetry._newest |= {place: 990.0}
    telemetry.waiting({place: 5}, 12)

    def told(name: str, **labels: str) -> float | None:
        return telemetry.metrics.registry.get_sample_value(name, {"stream": "stream", **labels})

    assert told("weald_held_observations") == 12
    assert told("weald_partition_lag_seconds", topic="t", partition="0") == 10
    now[0] = 1030.0
    telemetry.waiting({place: 7}, 12)
    assert told("weald_partition_lag_records", topic="t", partition="0") == 7
    assert told("weald_partition_lag_seconds", topic="t", partition="0") == 40
