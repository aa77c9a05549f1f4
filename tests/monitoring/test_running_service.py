"""A real Weald, on a real topic, scraped by a real Prometheus: every dashboard panel has data."""

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.prometheus import Prometheus, configuration, variable_queries
from tests.monitoring.service import running_weald, traffic
from tests.servers.server import Server

JOURNEY = ("observations_inserted", "duplicates", "dead_letters")


def get(port: int, path: str) -> tuple[int, Any]:
    """Status and JSON of one of Weald's probes; status 0 while nothing listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.load(response)
    except OSError:
        return 0, None
    finally:
        connection.close()


def total(prometheus: Prometheus, metric: str) -> float:
    """Value of a counter, summed over its labels, as Prometheus last scraped it."""
    (answer,) = prometheus.query(f"sum(weald_{metric}_total) or vector(0)")
    return float(answer["value"][1])


def handled(prometheus: Prometheus) -> float:
    """How many records the service is done with."""
    return sum(total(prometheus, metric) for metric in JOURNEY)


def settled(prometheus: Prometheus) -> bool:
    """Whether no partition has lag, and nothing has been committed for three scrapes."""
    (lag,) = prometheus.query("sum(max_over_time(weald_partition_lag_records[3s]))")
    (commits,) = prometheus.query("sum(changes(weald_batches_total[3s]))")
    return float(lag["value"][1]) == float(commits["value"][1]) == 0


@pytest.mark.slow
@pytest.mark.timeout(600)  # on a busy machine the kernels alone take minutes to compile
def test_every_panel_has_data_from_a_running_service(
    tmp_path: Path,
    kafka_bootstrap: str,
    kafka_topic: Callable[..., str],
    redis_url: str,
    start_prometheus: Callable[[str], Server],
    seed: int,
) -> None:
    topic = kafka_topic(partitions=2)
    with running_weald(tmp_path, kafka_bootstrap, topic, redis_url) as weald:
        port = weald.port
        prometheus = Prometheus(start_prometheus(configuration(f"127.0.0.1:{port}")).port)
        with traffic(kafka_bootstrap, topic, seed, lambda: handled(prometheus)):
            weald.wait_until(lambda: get(port, "/readyz")[0] == 200, "readiness", 120)
            try:
                weald.wait_until(lambda: not prometheus.unanswered(), "all panels", 400)
            except TimeoutError:
                pytest.fail(
                    f"no answer to {sorted(prometheus.unanswered())}\n{weald.log.read_text()}"
                )
            for label, series in variable_queries():
                assert prometheus.api(f"label/{label}/values", **{"match[]": series}), label
        weald.wait_until(lambda: settled(prometheus), "an end of the lag", 60)
        assert total(prometheus, "records_polled") == handled(prometheus)
        assert total(prometheus, "dead_letters") > 0
        status, ready = get(port, "/readyz")
        assert status == 200
        assert all(condition["ok"] for condition in ready["conditions"]), ready
        assert get(port, "/livez")[0] == 200
