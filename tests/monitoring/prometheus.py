"""Talking to a real Prometheus: its configuration, its HTTP API, and the dashboards' queries."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import weald.monitoring.metrics as monitoring
from weald.monitoring.dashboards import DASHBOARDS

RULES = Path(monitoring.__file__).parent / "rules" / "*.yaml"

# What Grafana would put for the variables with "All" chosen; at a scrape a second.
SUBSTITUTES = {
    "$__rate_interval": "10s",
    "$__range": "10s",
    "$job": ".+",
    "$instance": ".+",
    "$stream": ".+",
}


def configuration(*targets: str, token: str | None = None) -> str:
    """Prometheus configuration that scrapes the targets every second and loads Weald's rules."""
    job: dict[str, Any] = {"job_name": "weald", "static_configs": [{"targets": list(targets)}]}
    if token is not None:
        job["authorization"] = {"credentials": token}
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [job],
        }
    )


def panel_queries() -> Iterator[tuple[str, str]]:
    """Every query of every panel, named by its dashboard and panel, variables filled in."""
    for dashboard in DASHBOARDS.values():
        for row in dashboard.rows:
            for panel in row.panels:
                for query in panel.queries:
                    yield f"{dashboard.uid}: {panel.title}", _filled(query.expr)


def annotation_queries() -> Iterator[tuple[str, str]]:
    """Every query of every annotation, named by its dashboard and itself, variables filled in."""
    for dashboard in DASHBOARDS.values():
        for mark in dashboard.annotations:
            yield f"{dashboard.uid}: {mark.name}", _filled(mark.expr)


def variable_queries() -> Iterator[tuple[str, str]]:
    """Label and series selector of every variable that a query fills."""
    for dashboard in DASHBOARDS.values():
        for variable in dashboard.json()["templating"]["list"]:
            if variable["type"] == "query":
                series = (
                    variable["query"]["query"].removeprefix("label_values(").rpartition(", ")[0]
                )
                yield variable["name"], _filled(series)


def _filled(expr: str) -> str:
    for variable, value in SUBSTITUTES.items():
        expr = expr.replace(variable, value)
    return expr


class Prometheus:
    """The HTTP API of a running Prometheus."""

    def __init__(self, port: int) -> None:
        self._port = port

    def api(self, path: str, **parameters: str) -> Any:
        """Answer of ``/api/v1/<path>``; an error becomes an exception with Prometheus' words."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
            answer = json.load(connection.getresponse())
        finally:
            connection.close()
        if answer["status"] != "success":
            raise ValueError(f"{path} {parameters}: {answer['error']}")
        return answer["data"]

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Series that answer an instant query."""
        result: list[dict[str, Any]] = self.api("query", query=expr)["result"]
        return result

    def unanswered(self) -> set[str]:
        """Names of the panels with a query that has no answer."""
        return {name for name, expr in panel_queries() if not self.query(expr)}

    def rule_health(self) -> dict[str, str]:
        """Health of every rule by its name: ``ok`` once it was evaluated without an error."""
        groups = self.api("rules")["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
