"""A real Prometheus scrapes the exporter, loads the rules, and answers every dashboard query."""

import threading
from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.monitoring.prometheus import (
    RULES,
    Prometheus,
    annotation_queries,
    configuration,
    variable_queries,
)
from tests.monitoring.sample import busy_metrics, live
from tests.servers.server import Server, wait_until
from weald.monitoring.exporter import Exporter
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.monitoring.settings import MonitoringSettings

Start = Callable[[str], Server]


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    """Metrics to which everything happens ten times a second."""
    metrics, stop = busy_metrics("quakes"), threading.Event()

    def happen() -> None:
        while not stop.wait(0.1):
            live(metrics)

    thread = threading.Thread(target=happen)
    thread.start()
    yield metrics
    stop.set()
    thread.join()


def test_every_query_has_an_answer(start_prometheus: Start, metrics: Metrics) -> None:
    with Exporter(MonitoringSettings(port=0), metrics.registry, Health()) as exporter:
        server = start_prometheus(configuration(f"127.0.0.1:{exporter.port}"))
        prometheus = Prometheus(server.port)
        wait_until(lambda: not prometheus.unanswered(), "an answer to every panel", 30)
        for label, series in variable_queries():
            assert prometheus.api(f"label/{label}/values", **{"match[]": series}), label
        for name, expr in annotation_queries():
            # Whether there is a mark depends on a threshold; whether the query counts does not.
            assert prometheus.query(expr.rpartition(" > ")[0]), name


def test_numbers_arrive_as_told(start_prometheus: Start) -> None:
    metrics = busy_metrics("quakes")
    with Exporter(MonitoringSettings(port=0), metrics.registry, Health()) as exporter:
        prometheus = Prometheus(start_prometheus(configuration(f"127.0.0.1:{exporter.port}")).port)
        wait_until(lambda: bool(prometheus.query("weald_clusters")), "a first scrape", 30)
        (clusters,) = prometheus.query('weald_clusters{stream="quakes", job="weald"}')
        assert clusters["value"][1] == "13"
        (gain,) = prometheus.query('weald_kernel_log_joint_gain_nats_total{kernel="gibbs"}')
        assert gain["value"][1] == "4"


def test_rules_load_and_evaluate(start_prometheus: Start, metrics: Metrics) -> None:
    names = {
        rule.get("alert", rule.get("record"))
        for path in RULES.parent.glob(RULES.name)
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    }
    with Exporter(MonitoringSettings(port=0), metrics.registry, Health()) as exporter:
        prometheus = Prometheus(start_prometheus(configuration(f"127.0.0.1:{exporter.port}")).port)
        wait_until(lambda: set(prometheus.rule_health().values()) == {"ok"}, "healthy rules", 60)
        assert prometheus.rule_health().keys() == names


def test_prometheus_sends_the_token(start_prometheus: Start) -> None:
    settings = MonitoringSettings(port=0, token="made up for this test")  # noqa: S106 (it is)
    with Exporter(settings, busy_metrics("quakes").registry, Health()) as exporter:
        target = f"127.0.0.1:{exporter.port}"
        known = Prometheus(start_prometheus(configuration(target, token=settings.token)).port)
        stranger = Prometheus(start_prometheus(configuration(target)).port)
        wait_until(lambda: bool(known.query("up == 1")), "a scrape with the token", 30)
        wait_until(lambda: bool(stranger.query("up == 0")), "a refused scrape", 30)
