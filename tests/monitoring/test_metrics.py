"""Metrics: what the engine tells is what Prometheus reads, in names that promtool accepts."""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.monitoring.sample import busy_metrics
from weald.monitoring.metrics import Metrics
from weald.monitoring.names import METRICS


def value(metrics: Metrics, metric: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, {"stream": "quakes", **labels})


def test_every_name_keeps_the_convention() -> None:
    for metric in METRICS:
        assert metric.name.startswith("weald_")
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.help.endswith("."), metric.name
        assert "stream" not in metric.labels
        assert bool(metric.buckets) == (metric.kind == "histogram"), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets))


def test_names_are_unique() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_every_metric_is_exposed_once_told() -> None:
    exposition = generate_latest(busy_metrics("quakes").registry).decode()
    for metric in METRICS:
        series = metric.name + ("_count" if metric.kind == "histogram" else "")
        assert f"\n{series}{{" in exposition, metric.name


def test_promtool_accepts_a_live_exposition(
    promtool_reads: Callable[[bytes, str, str], tuple[int, str]],
) -> None:
    exposition = generate_latest(busy_metrics("quakes").registry)
    assert promtool_reads(exposition, "check", "metrics") == (0, "")


def test_known_labels_exist_at_zero_from_the_start() -> None:
    metrics = Metrics("quakes", reasons=("not_json",))
    assert value(metrics, "weald_dead_letters_total", reason="not_json") == 0
    assert value(metrics, "weald_lineage_events_total", kind="split") == 0
    assert value(metrics, "weald_step_seconds_count", step="commit") == 0
    assert value(metrics, "weald_assignment_latency_seconds_count", since="broker") == 0


def test_what_has_not_happened_has_no_time() -> None:
    metrics = Metrics("quakes")
    assert value(metrics, "weald_last_commit_timestamp_seconds") is None
    assert value(metrics, "weald_last_publication_timestamp_seconds") is None
    assert value(metrics, "weald_log_joint_nats") is None


def test_data_cannot_make_a_label_value() -> None:
    metrics = Metrics("quakes", reasons=("not_json",))
    metrics.dead_letter("not_json", 2)
    metrics.dead_letter("made up by a record", 3)
    assert value(metrics, "weald_dead_letters_total", reason="not_json") == 2
    assert value(metrics, "weald_dead_letters_total", reason="other") == 3


@pytest.mark.parametrize(
    "tell",
    [
        lambda metrics: metrics.step_seconds("nap", 1.0),
        lambda metrics: metrics.phase("dreaming"),
        lambda metrics: metrics.rebalance("stolen"),
        lambda metrics: metrics.retry("gods"),
        lambda metrics: metrics.published({"death": 1}, 0),
    ],
)
def test_unknown_label_values_are_refused(tell: Callable[[Metrics], None]) -> None:
    with pytest.raises(ValueError, match="one of"):
        tell(Metrics("quakes"))


def test_commit_counts_each_latency_in_its_bucket() -> None:
    metrics = Metrics("quakes", clock=lambda: 1000.0)
    metrics.batch_committed(4, since_broker=[0.01, 0.2, 1e6, -5.0], since_event=[float("nan")])
    name = "weald_assignment_latency_seconds"
    assert value(metrics, f"{name}_bucket", since="broker", le="0.01") == 2
    assert value(metrics, f"{name}_bucket", since="broker", le="0.1") == 2
    assert value(metrics, f"{name}_bucket", since="broker", le="0.25") == 3
    assert value(metrics, f"{name}_bucket", since="broker", le="+Inf") == 4
    assert value(metrics, f"{name}_sum", since="broker") == pytest.approx(1e6 + 0.21)
    assert value(metrics, f"{name}_count", since="event") == 0
    assert value(metrics, "weald_last_commit_timestamp_seconds") == 1000.0


def test_kernel_gain_and_loss_are_apart() -> None:
    metrics = Metrics("quakes")
    metrics.kernel_round("gibbs", 10, 4, 0.5, 3.0)
    metrics.kernel_round("gibbs", 10, 4, 0.5, -1.0)
    assert value(metrics, "weald_kernel_log_joint_gain_nats_total", kernel="gibbs") == 3.0
    assert value(metrics, "weald_kernel_log_joint_loss_nats_total", kernel="gibbs") == 1.0
    assert value(metrics, "weald_kernel_proposed_total", kernel="gibbs") == 20


def test_lag_goes_with_the_partitions() -> None:
    metrics = Metrics("quakes")
    metrics.partitions(assigned=2, paused=0)
    metrics.partition_lag("events", 1, records=7, seconds=1.5)
    metrics.partitions(assigned=2, paused=1)
    assert value(metrics, "weald_partition_lag_records", topic="events", partition="1") == 7
    metrics.partitions(assigned=0, paused=0)
    assert value(metrics, "weald_partition_lag_records", topic="events", partition="1") is None


def gauges_of(metrics: Metrics) -> set[tuple[str, str, float]]:
    """What is told of the stream, and not only of the process or of what it did last."""
    kept = {"weald_build_info", "weald_phase"}
    return {
        (sample.name, str(sample.labels), sample.value)
        for family in metrics.registry.collect()
        for sample in family.samples
        if family.type == "gauge" and sample.name.startswith("weald_")
        if sample.name not in kept and not sample.name.startswith("weald_last_")
    }


def test_who_loses_the_stream_tells_of_it_no_longer() -> None:
    """Dashboards show the largest over processes: the newer owner may have less to tell."""
    metrics = busy_metrics("quakes")
    assert "weald_publication_warnings" in {name for name, _, _ in gauges_of(metrics)}
    metrics.partitions(assigned=0, paused=0)
    assert gauges_of(metrics) == gauges_of(Metrics("quakes"))


def test_model_is_one_and_its_hyperparameters_are_numbers() -> None:
    metrics = Metrics("quakes")
    metrics.model("NormalInverseWishart", "dp", {"alpha": 1.0})
    metrics.model("GammaPoisson", "nggp", {"alpha": 2.0, "log_u": None, "learn": True})
    sample = metrics.registry.get_sample_value
    labels = {"stream": "quakes", "family": "GammaPoisson", "prior": "nggp"}
    assert sample("weald_model_info", labels) == 1
    labels = {"stream": "quakes", "family": "NormalInverseWishart", "prior": "dp"}
    assert sample("weald_model_info", labels) is None
    assert value(metrics, "weald_hyperparameter", name="alpha") == 2.0
    assert value(metrics, "weald_hyperparameter", name="log_u") is None
    assert value(metrics, "weald_hyperparameter", name="learn") is None


def test_one_phase_at_a_time() -> None:
    metrics = Metrics("quakes")
    metrics.phase("running")
    assert value(metrics, "weald_phase", phase="running") == 1
    assert value(metrics, "weald_phase", phase="starting") == 0


def test_two_streams_do_not_meet() -> None:
    first, second = Metrics("quakes"), Metrics("flights")
    first.batch_polled(5)
    assert first.registry is not second.registry
    polled = second.registry.get_sample_value("weald_records_polled_total", {"stream": "flights"})
    assert polled == 0


def test_registry_can_be_given() -> None:
    registry = CollectorRegistry()
    assert Metrics("quakes", registry).registry is registry


def test_shards_of_a_process_stand_side_by_side() -> None:
    first = Metrics("wide/0", version="1")
    second = first.beside("wide/1")
    assert second.registry is first.registry
    for each, n in ((first, 1), (second, 2)):
        each.model(f"family{n}", "crp", {})
        each.partition_lag("events", n, n, 0.0)
        each.partitions(1, 0)
        each.model_size(n, n)

    def told(name: str) -> dict[str, float]:
        samples = (s for metric in first.registry.collect() for s in metric.samples)
        return {s.labels["stream"]: s.value for s in samples if s.name == name}

    assert told("weald_observations") == {"wide/0": 1.0, "wide/1": 2.0}
    assert told("weald_partition_lag_records") == {"wide/0": 1.0, "wide/1": 2.0}
    second.partitions(0, 0)
    second.model("another", "crp", {})
    assert told("weald_partition_lag_records") == {"wide/0": 1.0}
    assert told("weald_model_info") == {"wide/0": 1.0, "wide/1": 1.0}
    assert told("weald_build_info") == {"wide/0": 1.0, "wide/1": 1.0}
