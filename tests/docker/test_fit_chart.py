"""The Helm chart of fits in shards: held against KubeRay's and Kubernetes' schemas, and Weald."""

import copy
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest
import yaml
from typer.main import get_command

import weald
from tests.docker.test_chart import chosen_by, helm, validate
from tests.docker.test_compose import FOLDER, ROOT
from tests.servers.kuberay import custom_resource
from weald.cli.main import app

Json = dict[str, Any]

CHART = FOLDER / "helm" / "weald-fit"
APART = "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"
NEEDED = {"data.claim": "days", "data.path": "orders/new", "work.claim": "fits"}
EVERYTHING = {
    **NEEDED,
    "image.pullSecrets[0]": "registry",
    "fit.family": "diagonal",
    "head.nodeSelector.disk": "fast",
    "workers.tolerations[0].key": "batch",
    f"workers.affinity.{APART}": "kubernetes.io/hostname",
}


def rendered(values: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return helm("template", "days", CHART, *(f"--set={k}={v}" for k, v in values.items()))


@pytest.fixture(params=[NEEDED, EVERYTHING], ids=["needed", "everything"])
def documents(request: pytest.FixtureRequest) -> dict[str, Json]:
    """By kind."""
    done = rendered(request.param)
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout) if each}


@pytest.fixture
def job(documents: dict[str, Json]) -> Json:
    return documents["RayJob"]


@pytest.fixture(scope="module")
def refusals() -> Callable[[Json], list[str]]:
    """What KubeRay would say of a document; what it does not know it would drop in silence."""
    file = custom_resource("rayjobs")
    if file is None:
        pytest.skip("KubeRay's resources are not there, and `make servers` could not fetch them")
    definition = yaml.safe_load(file.read_text())
    (version,) = (each for each in definition["spec"]["versions"] if each["name"] == "v1")
    schema = closed(version["schema"]["openAPIV3Schema"])
    for name in ("apiVersion", "kind", "metadata"):
        schema["properties"][name] = {}
    validator = jsonschema.Draft7Validator(schema)
    return lambda document: [error.message for error in validator.iter_errors(document)]


def closed(schema: Any) -> Any:
    """The schema, which admits no property that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(each) for name, each in schema.items()}
    named = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if named and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


def templates(job: Json) -> Iterator[Json]:
    cluster = job["spec"]["rayClusterSpec"]
    yield cluster["headGroupSpec"]["template"]
    for group in cluster["workerGroupSpecs"]:
        yield group["template"]


def test_helm_has_nothing_to_complain_about() -> None:
    done = helm("lint", "--strict", CHART, *(f"--set={k}={v}" for k, v in NEEDED.items()))
    assert done.returncode == 0, done.stdout + done.stderr


def test_kuberay_accepts_the_job(job: Json, refusals: Callable[[Json], list[str]]) -> None:
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert refusals(job) == []


def test_what_kuberay_does_not_know_is_noticed(
    job: Json, refusals: Callable[[Json], list[str]]
) -> None:
    for path, name in (((), "entrypoints"), (("rayClusterSpec", "headGroupSpec"), "replica")):
        wrong = copy.deepcopy(job)
        inside = wrong["spec"]
        for step in path:
            inside = inside[step]
        inside[name] = 1
        assert any(name in each for each in refusals(wrong))


def test_kubernetes_accepts_the_pods(job: Json) -> None:
    for template in templates(job):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
        pod["metadata"] = {"name": "pod", **template["metadata"]}
        validate(pod)


def test_nobody_else_reaches_a_cluster_without_tokens(documents: dict[str, Json]) -> None:
    policy = documents["NetworkPolicy"]
    validate(policy)
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    for template in templates(documents["RayJob"]):
        assert chosen_by(chosen, template["metadata"]["labels"])
        (node,) = template["spec"]["containers"]
        assert {"name": "RAY_AUTH_MODE", "value": "disabled"} in node["env"]
    nodes, operator = policy["spec"]["ingress"]
    assert nodes["from"] == [{"podSelector": {"matchLabels": chosen}}]
    assert [each["port"] for each in operator["ports"]] == [8265]


def test_the_command_and_its_flags_exist(job: Json) -> None:
    program, name, data, *rest = shlex.split(job["spec"]["entrypoint"])
    known: Any = get_command(app)
    flags = {flag for each in known.commands[name].params for flag in each.opts}
    assert (program, data) == ("weald", "/data/orders/new")
    assert {each for each in rest if each.startswith("-")} <= flags
    assert {"--resume", "--engine"} <= set(rest)


def test_what_the_fit_keeps_is_on_the_claim_that_every_node_writes_to(job: Json) -> None:
    words = shlex.split(job["spec"]["entrypoint"])
    for template in templates(job):
        (node,) = template["spec"]["containers"]
        at = {each["name"]: each["mountPath"] for each in node["volumeMounts"]}
        for flag in ("--work", "--out"):
            assert words[words.index(flag) + 1].startswith(f"{at['work']}/days/")


def test_every_node_has_the_volumes_and_may_do_little(job: Json) -> None:
    for template in templates(job):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["automountServiceAccountToken"] is False
        claims = {
            each["name"]: each["persistentVolumeClaim"]["claimName"]
            for each in spec["volumes"]
            if "persistentVolumeClaim" in each
        }
        assert claims == {"data": "days", "work": "fits"}
        for container in (*spec["initContainers"], *spec["containers"]):
            assert container["image"] == f"weald:{weald.__version__}"
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            mounted = {each["name"] for each in container["volumeMounts"]}
            assert mounted <= {each["name"] for each in spec["volumes"]}


def test_ray_is_that_of_the_image(job: Json) -> None:
    pinned = re.search(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == pinned[1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"work.claim": "fits"}, "/data"),
        ({**NEEDED, "fit.shard": "2"}, "shard"),
        ({**NEEDED, "fit.family": "irm"}, "family"),
        ({**NEEDED, "data.path": "a; reboot"}, "path"),
    ],
)
def test_mistakes_are_refused(values: dict[str, str], said: str) -> None:
    done = rendered(values)
    assert done.returncode != 0
    assert said in done.stderr
