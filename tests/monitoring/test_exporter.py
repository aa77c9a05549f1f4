"""The exporter over real HTTP on loopback."""

import http.client
import json
import socket
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.monitoring.sample import busy_metrics
from weald.monitoring.exporter import Exporter
from weald.monitoring.health import REQUIRED, Health
from weald.monitoring.settings import MonitoringSettings

TOKEN = "a-token-for-the-test"  # noqa: S105 (made up here)


def get(
    exporter: Exporter, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=10)
    connection.request("GET", path, headers=headers or {})
    response = connection.getresponse()
    answer = response.status, dict(response.getheaders()), response.read().decode()
    connection.close()
    return answer


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def exporter(health: Health) -> Iterator[Exporter]:
    settings = MonitoringSettings(port=0)
    with Exporter(settings, busy_metrics("quakes").registry, health) as running:
        yield running


@pytest.fixture
def guarded(health: Health) -> Iterator[Exporter]:
    settings = MonitoringSettings(port=0, token=TOKEN)
    with Exporter(settings, busy_metrics("quakes").registry, health) as running:
        yield running


def test_what_listens_on_loopback_is_not_asked_under_a_foreign_name(exporter: Exporter) -> None:
    for path in ("/metrics", "/readyz", "/livez"):
        status, _, body = get(exporter, path, {"Host": "evil.example:9464"})
        assert (status, body) == (421, "ask under the address, not under a name\n")
    for host in ("localhost", "127.0.0.1:9464", "[::1]:9464", "LOCALHOST.:80"):
        assert get(exporter, "/metrics", {"Host": host})[0] == 200


def test_what_listens_for_others_is_asked_under_any_name(health: Health) -> None:
    settings = MonitoringSettings(host="0.0.0.0", port=0)  # noqa: S104 - as in a container
    with Exporter(settings, busy_metrics("quakes").registry, health) as running:
        assert get(running, "/metrics", {"Host": "weald:9464"})[0] == 200


def test_metrics_can_be_parsed(exporter: Exporter) -> None:
    status, headers, body = get(exporter, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    families = {family.name for family in text_string_to_metric_families(body)}
    assert {"weald_records_polled", "weald_step_seconds", "process_cpu_seconds"} <= families
    assert "_created" not in body


def test_openmetrics_when_asked(exporter: Exporter) -> None:
    accept = "application/openmetrics-text; version=1.0.0"
    status, headers, body = get(exporter, "/metrics", {"Accept": accept})
    assert status == 200
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


def test_livez_answers_at_once(exporter: Exporter) -> None:
    status, _, body = get(exporter, "/livez")
    assert status == 200
    assert json.loads(body)["ok"] is True


def test_readyz_gives_the_reasons(exporter: Exporter, health: Health) -> None:
    health.unsatisfied("sql", "connection refused")
    status, headers, body = get(exporter, "/readyz")
    assert (status, headers["Content-Type"]) == (503, "application/json")
    reasons = {c["name"]: c["reason"] for c in json.loads(body)["conditions"]}
    assert reasons["sql"] == "connection refused"
    for name in REQUIRED:
        health.satisfied(name)
    assert get(exporter, "/readyz")[0] == 200


def test_other_paths_are_named(exporter: Exporter) -> None:
    assert get(exporter, "/")[::2] == (404, "/metrics /livez /readyz\n")


def test_head_has_no_body(exporter: Exporter) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=10)
    connection.request("HEAD", "/livez")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    connection.close()


@pytest.mark.parametrize("sent", [None, "Bearer wrong", TOKEN, f"Basic {TOKEN}", "Bearer é"])
def test_token_guards_metrics(guarded: Exporter, sent: str | None) -> None:
    status, headers, _ = get(guarded, "/metrics", {"Authorization": sent} if sent else {})
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")


def test_token_opens_metrics(guarded: Exporter) -> None:
    assert get(guarded, "/metrics", {"Authorization": f"Bearer {TOKEN}"})[0] == 200


def test_probe_without_token_hears_no_reasons(guarded: Exporter, health: Health) -> None:
    health.unsatisfied("sql", "connection to db.internal refused")
    assert get(guarded, "/readyz")[::2] == (503, '{"ok": false}\n')
    _, _, told = get(guarded, "/readyz", {"Authorization": f"Bearer {TOKEN}"})
    assert "db.internal" in told


def test_taken_port_is_named(exporter: Exporter, health: Health) -> None:
    settings = MonitoringSettings(port=exporter.port)
    with pytest.raises(OSError, match=rf"127\.0\.0\.1:{exporter.port}.*monitoring\.port"):
        Exporter(settings, busy_metrics("quakes").registry, health)


def test_port_is_free_afterwards(health: Health) -> None:
    with Exporter(MonitoringSettings(port=0), busy_metrics("q").registry, health) as running:
        port = running.port
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_token_is_not_shown() -> None:
    assert TOKEN not in repr(MonitoringSettings(token=TOKEN))
