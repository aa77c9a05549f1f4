"""The compose file, without an engine: its schema, and that everything it names exists.

The schema alone would let a misspelt service, volume, file or setting through.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from weald.cli.config.settings import SECTIONS, load

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docker"
INTERPOLATION = re.compile(r"\$\{(\w+):-([^}]*)\}")


def interpolated(text: str) -> str:
    """Put the defaults in, as compose does where the environment names nothing."""
    return INTERPOLATION.sub(lambda found: found[2], text)


STACK: Json = yaml.safe_load(interpolated((FOLDER / "compose.yaml").read_text()))
SERVICES: dict[str, Json] = STACK["services"]
WEALD = [name for name, service in SERVICES.items() if service["image"] == "weald:dev"]

every_service = pytest.mark.parametrize("name", SERVICES)


def parse(stack: Json) -> None:
    """Raise ``ValueError`` where the specification of compose is not met."""
    PyCompose.from_yaml(json.dumps(stack))


def mounts(service: Json) -> Iterator[tuple[str, str]]:
    for mount in service.get("volumes", []):
        source, target, *_ = mount.split(":")
        yield source, target


def test_stack_meets_the_specification() -> None:
    parse(STACK)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda weald: weald.update(stop_grace="30s"),
        lambda weald: weald.update(ports=["a:b"]),
        lambda weald: weald.update(stop_grace_period="soon"),
    ],
)
def test_the_check_does_check(spoil: Callable[[Json], None]) -> None:
    spoilt = copy.deepcopy(STACK)
    spoil(spoilt["services"]["weald"])
    with pytest.raises(ValueError, match="weald"):
        parse(spoilt)


@every_service
def test_service_waits_for_services_that_can_be_waited_for(name: str) -> None:
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        if wait["condition"] == "service_healthy":
            assert "test" in SERVICES[other]["healthcheck"]
        if wait["condition"] == "service_completed_successfully":
            assert SERVICES[other]["restart"] == "no"


def test_nobody_waits_in_a_circle() -> None:
    done: set[str] = set()
    while len(done) < len(SERVICES):
        ready = {n for n, s in SERVICES.items() if set(s.get("depends_on", {})) <= done} - done
        assert ready, f"a circle among {set(SERVICES) - done}"
        done |= ready


@every_service
def test_mounts_exist(name: str) -> None:
    for source, _ in mounts(SERVICES[name]):
        if source.startswith("."):
            assert (FOLDER / source).exists(), source
        else:
            assert source in STACK["volumes"], source


def test_volumes_and_networks_are_declared_and_used() -> None:
    used = {s for service in SERVICES.values() for s, _ in mounts(service) if s[0] != "."}
    assert used == STACK["volumes"].keys()
    networks = {n for service in SERVICES.values() for n in service.get("networks", {})}
    assert networks <= {"default", *STACK.get("networks", {})}
    assert not {"configs", "secrets"} & STACK.keys()


@every_service
def test_ports_are_published_on_loopback_and_once(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)
    published = [port.split(":")[1] for s in SERVICES.values() for port in s.get("ports", [])]
    assert len(set(published)) == len(published)


@every_service
def test_images_are_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.search(r":v?\d+\.\d+|:\d+-|^weald:dev$", image), image


@pytest.mark.parametrize("name", WEALD)
def test_environment_is_settings(name: str) -> None:
    known = {
        f"WEALD__{section}__{field}".upper()
        for section, kind in SECTIONS.items()
        for field in kind.__struct_fields__
    }
    assert SERVICES[name]["environment"].keys() <= known


def test_settings_load_as_in_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, text in SERVICES["weald"]["environment"].items():
        monkeypatch.setenv(variable, text)
    settings = load(FOLDER / "weald.toml").settings
    assert settings.kafka.bootstrap_servers == "kafka:9092"
    assert settings.storage.url.startswith("postgresql+psycopg://weald:")
    assert settings.monitoring.host == "0.0.0.0"  # noqa: S104 (inside the container)


def test_addresses_lead_to_services_that_listen() -> None:
    settings = SERVICES["weald"]["environment"]
    kafka = SERVICES["kafka"]["environment"]
    assert f"INTERNAL://{settings['WEALD__KAFKA__BOOTSTRAP_SERVERS']}" in kafka[
        "KAFKA_ADVERTISED_LISTENERS"
    ].split(",")
    for url in (settings["WEALD__STORAGE__URL"], settings["WEALD__REDIS__URL"]):
        host, port = re.split(r"[:/]", re.split(r"@|//", url)[-1])[:2]
        published = [mapping.split(":")[2] for mapping in SERVICES[host]["ports"]]
        assert port in published


def test_topic_is_the_same_everywhere() -> None:
    topic = load(FOLDER / "weald.toml").settings.kafka.topic
    assert f"--topic {topic} " in SERVICES["topics"]["command"]
    assert topic in SERVICES["producer"]["command"]


@pytest.mark.parametrize("name", WEALD)
def test_weald_runs_with_few_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service
