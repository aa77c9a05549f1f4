"""Dashboards: the committed JSON is what the code builds, and it keeps the linter's rules.

The rules are those of Grafana's dashboard-linter that apply to Prometheus, each named by the test.
"""

import json
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from weald.cli.config.http_settings import HttpSettings
from weald.monitoring import dashboards
from weald.monitoring.dashboards.queries import counter_rate
from weald.monitoring.names import METRICS

Json = dict[str, Any]

FOLDER = Path(dashboards.__file__).parent
BUILT = {name: dashboard.json() for name, dashboard in dashboards.DASHBOARDS.items()}
COUNTER_SUFFIXES = ("_total", "_bucket", "_sum", "_count")

every_dashboard = pytest.mark.parametrize("board", BUILT.values(), ids=BUILT)


def panels(board: Json) -> list[Json]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def targets(board: Json) -> Iterator[Json]:
    return (target for panel in panels(board) for target in panel["targets"])


def annotations(board: Json) -> list[Json]:
    marks: list[Json] = board["annotations"]["list"]
    return marks


def expressions(board: Json) -> list[str]:
    marks = (mark["target"] for mark in annotations(board))
    return [each["expr"] for each in (*targets(board), *marks)]


def variables(board: Json) -> dict[str, Json]:
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def test_committed_files_are_what_the_code_builds() -> None:
    committed = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert committed == BUILT, "run python -m weald.monitoring.dashboards"


def test_uids_are_unique_and_name_the_files() -> None:
    for name, board in BUILT.items():
        assert board["uid"] == f"weald-{name.removesuffix('.json')}"


@every_dashboard
def test_template_datasource_rule(board: Json) -> None:
    source = variables(board)["datasource"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    assert source["label"] == "Data source"


@every_dashboard
@pytest.mark.parametrize("name", ["job", "instance", "stream"])
def test_template_job_and_instance_rules(board: Json, name: str) -> None:
    variable = variables(board)[name]
    assert variable["type"] == "query"
    assert variable["label"] == name.capitalize()
    assert variable["datasource"]["uid"] == "${datasource}"
    assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".+")


@every_dashboard
def test_template_on_time_change_reload_rule(board: Json) -> None:
    queried = [v for v in variables(board).values() if v["type"] == "query"]
    assert queried
    assert {variable["refresh"] for variable in queried} == {2}


@every_dashboard
def test_template_label_promql_rule(board: Json) -> None:
    for variable in variables(board).values():
        if variable["type"] == "query":
            match = re.fullmatch(
                r"label_values\((\w+)(\{.*\})?, (\w+)\)", variable["query"]["query"]
            )
            assert match
            assert match[1] in {metric.name for metric in METRICS}
            assert match[3] == variable["name"]


@every_dashboard
def test_panel_datasource_rule(board: Json) -> None:
    for holder in (*panels(board), *targets(board), *annotations(board)):
        assert holder["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@every_dashboard
def test_panel_title_description_rule(board: Json) -> None:
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(titles)) == len(titles)
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith(".")


@every_dashboard
def test_panel_units_rule(board: Json) -> None:
    for panel in panels(board):
        unit = panel["fieldConfig"]["defaults"]["unit"]
        assert unit in {"short", "s", "cps", "percentunit", "bytes", "none"}
        assert (unit == "none") == (panel["type"] == "table")


@every_dashboard
def test_panel_no_targets_rule(board: Json) -> None:
    for panel in panels(board):
        assert panel["targets"]
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)


@every_dashboard
def test_target_rate_interval_rule(board: Json) -> None:
    for expr in expressions(board):
        rated = re.sub(r"increase\([^)]*\[\$__range\]\)", "", expr)
        assert set(re.findall(r"\[(.*?)\]", rated)) <= {"$__rate_interval"}, expr


@every_dashboard
def test_target_job_and_instance_rules(board: Json) -> None:
    for expr in expressions(board):
        selectors = re.findall(r"((?:weald|process)_\w+)(\{.*?\})?", expr)
        assert selectors, expr
        for name, matchers in selectors:
            assert matchers.startswith('{job=~"$job", instance=~"$instance"'), expr
            assert name.startswith("process_") or 'stream=~"$stream"' in matchers, expr


@every_dashboard
def test_target_counter_agg_rule(board: Json) -> None:
    for expr in expressions(board):
        for found in re.finditer(r"(\S*?)((?:weald|process)_\w+)\{", expr):
            if found[2].endswith(COUNTER_SUFFIXES):
                assert found[1].endswith(("rate(", "increase(")), expr


@every_dashboard
def test_uneditable_dashboard_rule(board: Json) -> None:
    assert board["editable"] is False


@every_dashboard
def test_panels_have_ids_of_their_own_and_do_not_overlap(board: Json) -> None:
    identities = [panel["id"] for panel in board["panels"]]
    assert len(set(identities)) == len(identities)
    places = [panel["gridPos"] for panel in board["panels"]]
    for place in places:
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert all(one["y"] <= other["y"] for one, other in pairwise(places))


@every_dashboard
def test_dashboards_link_to_each_other(board: Json) -> None:
    (link,) = board["links"]
    assert link["type"] == "dashboards"
    assert link["tags"] == board["tags"] == ["weald"]
    assert link["includeVars"]
    assert link["keepTime"]


def test_first_row_says_whether_it_is_well_what_is_new_and_whether_it_is_sure() -> None:
    board = BUILT["overview.json"]
    row, *first = board["panels"][:8]
    assert row["type"] == "row"
    assert [panel["title"] for panel in first] == [
        *("Behind by", "Dead letters", "Clusters", "New clusters", "How sure", "Reasons to doubt"),
        "Health",
    ]
    assert first[-1]["type"] == "state-timeline"
    assert {mark["name"] for mark in annotations(board)} == {
        "Births",
        "Splits and merges",
        "Anomalies",
    }


@every_dashboard
def test_links_of_panels_lead_to_the_live_page(board: Json) -> None:
    live = variables(board)["live"]
    assert live["query"] == f"http://{HttpSettings().host}:{HttpSettings().port}/"
    for panel in panels(board):
        assert all(link["url"] == "${live}" for link in panel.get("links", []))


def test_every_metric_is_on_a_dashboard() -> None:
    shown = " ".join(expr for board in BUILT.values() for expr in expressions(board))
    unseen = {metric.name for metric in METRICS if metric.name not in shown}
    assert unseen == set()


def test_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="weald_moods_total is no counter"):
        counter_rate("weald_moods_total")
