"""What the stack mounts: Prometheus' and Grafana's configuration, the versions, the Dockerfile."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docker.test_compose import FOLDER, ROOT, SERVICES, mounts
from tests.servers.kafka import kafka_version
from weald.cli.config.settings import load

DOCKERFILE = (FOLDER / "Dockerfile").read_text()
PROVISIONING = FOLDER / "grafana" / "provisioning"


def image(name: str) -> str:
    version: str = SERVICES[name]["image"].partition(":")[2]
    return version


def provisioned(folder: str) -> dict[str, Any]:
    (path,) = (PROVISIONING / folder).glob("*.yaml")
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def test_prometheus_accepts_its_configuration(
    run_promtool: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    shutil.copy(FOLDER / "prometheus.yml", tmp_path)
    shutil.copytree(ROOT / "monitoring" / "rules", tmp_path / "rules")
    status, said = run_promtool("check", "config", tmp_path / "prometheus.yml")
    assert status == 0, said
    assert "2 rule files found" in said


def test_prometheus_scrapes_the_port_that_weald_listens_on() -> None:
    jobs = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    (weald,) = (job for job in jobs if job["job_name"] == "weald")
    (discovery,) = weald["dns_sd_configs"]
    assert set(discovery["names"]) <= SERVICES.keys()
    assert discovery["port"] == load(FOLDER / "weald.toml").settings.monitoring.port
    assert f"EXPOSE {discovery['port']}" in DOCKERFILE


def test_grafana_reads_from_prometheus() -> None:
    (source,) = provisioned("datasources")["datasources"]
    host, port = source["url"].removeprefix("http://").split(":")
    assert port in [mapping.split(":")[2] for mapping in SERVICES[host]["ports"]]
    scrape = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scrape


def test_grafana_finds_the_dashboards() -> None:
    (provider,) = provisioned("dashboards")["providers"]
    targets = {target: source for source, target in mounts(SERVICES["grafana"])}
    folder = FOLDER / targets[provider["options"]["path"]]
    environment = SERVICES["grafana"]["environment"]
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert (folder / home.name).is_file()


def test_versions_are_those_that_were_tested() -> None:
    schema = json.loads((ROOT / "tests" / "monitoring" / "grafana" / "package.json").read_text())
    assert image("grafana") == schema["dependencies"]["@grafana/schema"]
    assert image("kafka") == image("topics") == kafka_version()


def test_dockerfile_passes_hadolint() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, FOLDER / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_dockerfile_copies_what_exists_and_is_not_ignored() -> None:
    kept = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert sorted(copied) == sorted(kept)
    for source in copied:
        assert (ROOT / source).exists(), source
    rooms = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert rooms <= set(copied)


def test_both_stages_have_one_base_and_the_last_is_not_root() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE
    assert 'ENTRYPOINT ["weald"]' in DOCKERFILE


@pytest.mark.parametrize("name", ["build-image.sh"])
def test_scripts_are_plain_sh(name: str) -> None:
    subprocess.run(["sh", "-n", FOLDER / name], check=True)
