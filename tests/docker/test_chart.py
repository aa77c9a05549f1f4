"""The Helm chart: rendered by Helm, held against Kubernetes' schemas and against what Weald is."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
import pytest
import yaml
from typer.main import get_command

import weald
from tests.docker.test_compose import FOLDER, ROOT
from tests.servers.helm import helm_program
from weald.cli.config.settings import load
from weald.cli.main import app
from weald.monitoring.names import METRICS

Json = dict[str, Any]

CHART = FOLDER / "helm" / "weald"
KUBERNETES = "1.33.0"
CONFIG = """\
[stream]
name = "orders"

[kafka]
bootstrap_servers = "kafka:9092"
topic = "orders"

[schema]
fields = [{ name = "price" }]

[storage]
url = "postgresql+psycopg://weald@postgres/weald"
"""
EVERYTHING = {
    "existingSecret": "orders",
    "tlsSecret": "orders-tls",
    "image.pullSecrets[0]": "registry",
    "workers.enabled": "true",
    "workers.autoscaling.enabled": "true",
    "serviceMonitor.enabled": "true",
    "prometheusRule.enabled": "true",
    "dashboards.enabled": "true",
    "networkPolicy.scrapers[0].namespaceSelector.matchLabels.name": "monitoring",
    "networkPolicy.egressPeers[0].ipBlock.cidr": "10.0.0.0/8",
}
# What comes from Prometheus' operator is no part of Kubernetes.
OPERATORS = {"ServiceMonitor", "PrometheusRule"}


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = helm_program()
    if program is None:
        pytest.skip("helm is not on the PATH, and `make servers` could not build it")
    argv = [program, *arguments, "--kube-version", KUBERNETES]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def validate(document: Json) -> None:
    """Raise an error unless Kubernetes admits the document, and knows all that it has."""
    kubernetes_validate.validate(document, KUBERNETES.rpartition(".")[0], strict=True)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "weald.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def render(config: Path) -> Callable[..., list[Json]]:
    """Documents that a release named shop has, with these values."""

    def rendered(**values: str) -> list[Json]:
        given = [f"--set={name}={value}" for name, value in values.items()]
        done = helm("template", "shop", CHART, f"--set-file=config={config}", *given)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return rendered


def one(documents: list[Json], kind: str) -> Json:
    (found,) = (document for document in documents if document["kind"] == kind)
    return found


def pods(documents: list[Json]) -> Iterator[Json]:
    for document in documents:
        if document["kind"] in {"StatefulSet", "Deployment"}:
            yield document["spec"]["template"]


def containers(documents: list[Json]) -> Iterator[Json]:
    for pod in pods(documents):
        yield from (*pod["spec"]["initContainers"], *pod["spec"]["containers"])


def chosen_by(selector: Json, labels: Json) -> bool:
    return selector.items() <= labels.items()


def test_helm_has_nothing_to_complain_about(config: Path) -> None:
    done = helm("lint", "--strict", CHART, f"--set-file=config={config}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", [{}, {"workers.enabled": "true"}, EVERYTHING])
def test_kubernetes_accepts_every_document(
    render: Callable[..., list[Json]], values: dict[str, str]
) -> None:
    for document in render(**values):
        if document["kind"] not in OPERATORS:
            validate(document)


def test_the_schemas_do_refuse(render: Callable[..., list[Json]]) -> None:
    writer = one(render(), "StatefulSet")
    writer["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        validate(writer)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"config": ""}, "config is empty: give --set-file config=weald.toml"),
        ({"config": "[stream"}, "config is not TOML"),
        ({"config": CONFIG, "workers.replica": "2"}, "replica"),
        ({"config": CONFIG, "writer.replicas": "2"}, "config has stream.shards = 1"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(values: dict[str, str], said: str) -> None:
    given = [f"--set={name}={value}".replace(",", r"\,") for name, value in values.items()]
    done = helm("template", "shop", CHART, *given)
    assert done.returncode != 0
    assert said in done.stderr


def test_every_process_may_do_little(render: Callable[..., list[Json]]) -> None:
    documents = render(**EVERYTHING)
    for pod in pods(documents):
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["automountServiceAccountToken"] is False
        user = f"{security['runAsUser']}:{security['runAsGroup']}"
        assert f"USER {user}" in (FOLDER / "Dockerfile").read_text()
    for container in containers(documents):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_one_process_writes(render: Callable[..., list[Json]]) -> None:
    assert one(render(**EVERYTHING), "StatefulSet")["spec"]["replicas"] == 1


def test_shards_are_written_by_at_most_as_many(
    render: Callable[..., list[Json]], config: Path
) -> None:
    config.write_text(CONFIG.replace("[kafka]", "shards = 4\n\n[kafka]"))
    documents = render(**{"writer.replicas": "3"})
    for document in documents:
        validate(document)
    writers = one(documents, "StatefulSet")
    assert writers["spec"]["replicas"] == 3
    # One at a time may be taken away.
    budget = one(documents, "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    labels = writers["spec"]["template"]["metadata"]["labels"]
    assert chosen_by(budget["selector"]["matchLabels"], labels)


def test_commands_and_settings_exist(
    render: Callable[..., list[Json]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = render(**EVERYTHING)
    known: Any = get_command(app)
    for container in containers(documents):
        for variable in container.get("env", []):
            monkeypatch.setenv(variable["name"], variable["value"])
        if "args" in container:
            name, *rest = container["args"]
            command = known.commands[name]
            flags = {flag for each in command.params for flag in each.opts}
            assert {each for each in rest if each.startswith("-")} <= flags
    (file,) = (
        document["data"]["weald.toml"]
        for document in documents
        if "weald.toml" in document.get("data", {})
    )
    (tmp_path / "rendered.toml").write_text(file)
    settings = load(tmp_path / "rendered.toml").settings
    assert settings.stream.name == "orders"
    assert settings.refinement.mode == "workers"
    (port,) = one(documents, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert (settings.monitoring.host, settings.monitoring.port) == (
        "0.0.0.0",  # noqa: S104 (Prometheus is in another pod)
        port["containerPort"],
    )


def test_the_image_is_that_of_this_version(render: Callable[..., list[Json]]) -> None:
    images = {container["image"] for container in containers(render(**EVERYTHING))}
    assert images == {f"weald:{weald.__version__}"}


def test_selectors_choose_what_they_mean(render: Callable[..., list[Json]]) -> None:
    documents = render(**EVERYTHING)
    writer, workers = (
        one(documents, kind)["spec"]["template"]["metadata"]["labels"]
        for kind in ("StatefulSet", "Deployment")
    )
    service = one(documents, "Service")
    assert chosen_by(service["spec"]["selector"], writer)
    assert not chosen_by(service["spec"]["selector"], workers)
    monitor = one(documents, "ServiceMonitor")["spec"]
    assert chosen_by(monitor["selector"]["matchLabels"], service["metadata"]["labels"])
    assert [each["port"] for each in monitor["endpoints"]] == [
        each["name"] for each in service["spec"]["ports"]
    ]
    # Alerts and recorded series look at this job.
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "weald"
    policy = one(documents, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    assert chosen_by(policy, writer)
    assert chosen_by(policy, workers)
    budget = one(documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    assert chosen_by(budget, workers)
    assert not chosen_by(budget, writer)


def test_workers_are_scaled_by_the_staleness_of_leases(render: Callable[..., list[Json]]) -> None:
    documents = render(**EVERYTHING)
    scaler, workers = one(documents, "HorizontalPodAutoscaler"), one(documents, "Deployment")
    assert scaler["spec"]["scaleTargetRef"]["name"] == workers["metadata"]["name"]
    assert "replicas" not in workers["spec"]
    (metric,) = scaler["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] in {each.name for each in METRICS}
    assert metric["external"]["metric"]["selector"]["matchLabels"] == {"stream": "orders"}
    assert one(render(**{"workers.enabled": "true"}), "Deployment")["spec"]["replicas"] == 2


def test_rules_and_dashboards_are_those_of_the_repository(
    render: Callable[..., list[Json]],
    run_promtool: Callable[..., tuple[int, str]],
    tmp_path: Path,
) -> None:
    documents = render(**EVERYTHING)
    rules = one(documents, "PrometheusRule")["spec"]
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    status, said = run_promtool("check", "rules", tmp_path / "rules.yaml")
    assert status == 0, said
    files = sorted((ROOT / "monitoring" / "rules").glob("*.yaml"))
    assert rules["groups"] == [
        group for file in files for group in yaml.safe_load(file.read_text())["groups"]
    ]
    (shown,) = (
        document["data"]
        for document in documents
        if document["metadata"]["name"].endswith("dashboards")
    )
    assert {name: json.loads(text) for name, text in shown.items()} == {
        f"weald-{file.name}": json.loads(file.read_text())
        for file in (ROOT / "monitoring" / "dashboards").glob("*.json")
    }
