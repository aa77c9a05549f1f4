"""Alert and recording rules: promtool accepts them, their unit tests pass, each has a runbook."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from weald.cli.config.settings import SECTIONS
from weald.cli.main import app
from weald.monitoring.names import METRICS

ROOT = Path(__file__).parents[2]
RULES = sorted((ROOT / "monitoring" / "rules").glob("*.yaml"))
UNIT_TESTS = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
SUFFIXES = ("_bucket", "_count", "_sum")

Run = Callable[..., tuple[int, str]]


def rules() -> list[dict[str, Any]]:
    """Every rule of every file."""
    documents = [yaml.safe_load(path.read_text()) for path in RULES]
    return [
        rule for document in documents for group in document["groups"] for rule in group["rules"]
    ]


ALERTS = [rule for rule in rules() if "alert" in rule]
RECORDED = [rule for rule in rules() if "record" in rule]
CASES = [
    case
    for path in UNIT_TESTS
    for test in yaml.safe_load(path.read_text())["tests"]
    for case in test["alert_rule_test"]
]


def test_promtool_accepts_the_rules(run_promtool: Run) -> None:
    status, said = run_promtool("check", "rules", "--lint-fatal", *RULES)
    assert status == 0, said


def test_unit_tests_of_the_rules_pass(run_promtool: Run) -> None:
    status, said = run_promtool("test", "rules", *UNIT_TESTS)
    assert status == 0, said


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alert_is_complete(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert {"for", "keep_firing_for"} <= alert.keys()
    assert {"summary", "description", "runbook_url"} == alert["annotations"].keys()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alert_has_a_case_in_which_it_fires(alert: dict[str, Any]) -> None:
    fired = [case for case in CASES if case["alertname"] == alert["alert"] and case["exp_alerts"]]
    assert fired


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alert_has_a_series_for_which_it_is_silent(alert: dict[str, Any]) -> None:
    for path in UNIT_TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            cases = [c for c in test["alert_rule_test"] if c["alertname"] == alert["alert"]]
            if not cases:
                continue
            names = {found for entry in test["input_series"] for found in subjects(entry["series"])}
            alerted = {
                expected["exp_labels"].get("stream", expected["exp_labels"].get("instance"))
                for case in cases
                for expected in case["exp_alerts"]
            }
            assert names > alerted
            return
    raise AssertionError(f"no unit test names {alert['alert']}")


def subjects(series: str) -> list[str]:
    """Streams of a series, or its instances where it has no stream."""
    return re.findall(r'stream="(.*?)"', series) or re.findall(r'instance="(.*?)"', series)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_runbook_exists(alert: dict[str, Any]) -> None:
    page, anchor = alert["annotations"]["runbook_url"].split("#")
    headings = re.findall(r"^## (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor == alert["alert"].lower()
    assert alert["alert"] in headings


def test_runbooks_have_no_orphans() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    assert headings == [alert["alert"] for alert in ALERTS]


def test_rules_use_existing_series() -> None:
    known = {metric.name for metric in METRICS}
    known |= {f"{metric.name}{s}" for metric in METRICS for s in SUFFIXES if metric.buckets}
    for rule in rules():
        used = set(re.findall(r"(?<![:\w])weald_\w+", rule["expr"]))
        assert used <= known, rule


def test_alerts_use_recorded_series_that_exist() -> None:
    recorded = {rule["record"] for rule in RECORDED}
    for rule in rules():
        assert set(re.findall(r"job_stream:[\w:]+", rule["expr"])) <= recorded, rule


def test_runbooks_name_settings_and_commands_that_exist() -> None:
    text = (ROOT / "docs" / "runbooks.md").read_text()
    sections = "|".join(SECTIONS)
    for section, field in re.findall(rf"`({sections})\.(\w+)`", text):
        assert field in SECTIONS[section].__struct_fields__, f"{section}.{field}"
    commands = {
        command.callback.__name__ for command in app.registered_commands if command.callback
    }
    commands |= {str(group.name) for group in app.registered_groups}
    assert set(re.findall(r"`weald (\w+)", text)) <= commands
