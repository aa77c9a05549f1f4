"""Try a built image the way compose.yaml runs it: migrate, run, produce, ask, stop.

Kafka, Redis and PostgreSQL are real ones on this machine's loopback (those of the tests), because
no registry with their images may be within reach; Weald's containers join the host's network. What
this does not try: compose's own networks, health conditions and volumes, and Grafana.
"""

import argparse
import http.client
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka import KafkaAdminClient

from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import database, postgresql_server
from tests.servers.redis import redis_server
from tests.servers.server import free_port, wait_until

FOLDER = Path(__file__).resolve().parent
TOPIC = "earthquakes"

# As in compose.yaml: no rights, and nothing of the image to write on but the kernels' folder.
CONFINED = (
    # Podman's health checks want systemd; the probes are asked from here instead.
    *("--network=host", "--no-healthcheck", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL"),
    *("--security-opt=no-new-privileges", "--volume=/var/cache/weald"),
    f"--volume={FOLDER}/weald.toml:/etc/weald/weald.toml:ro",
    f"--volume={FOLDER}/produce.py:/etc/weald/produce.py:ro",
)
# runc, and limits spelt out, also work where podman's own choices need more rights than there are.
ENGINES = {
    "docker": (["docker"], []),
    "podman": (
        ["podman", "--runtime=runc"],
        ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"],
    ),
}


class Containers:
    """Containers of one image under one engine, all with one environment."""

    def __init__(self, engine: str, image: str, environment: dict[str, str]) -> None:
        self._engine, limits = ENGINES[engine]
        settings = [f"--env={name}={text}" for name, text in environment.items()]
        self._options = [*CONFINED, *limits, *settings]
        self._image = image

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the engine; raise with all that it printed when it fails."""
        argv = [*self._engine, *arguments]
        # The engine is one of two, and no shell reads the arguments.
        done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            said = f"{done.stdout}{done.stderr}".strip()
            raise RuntimeError(f"{self._engine[0]} {' '.join(arguments)}: {said}")
        return done

    def weald(self, *arguments: str) -> str:
        """Run one command of ``weald`` to its end, and return what it answered."""
        done = self.call("run", "--rm", *self._options, self._image, *arguments)
        return done.stdout.strip()

    def produce(self, servers: str) -> int:
        """Send the bundled stream once, and return how many records that were."""
        script = ["/etc/weald/produce.py", "--bootstrap-servers", servers, "--topic", TOPIC]
        done = self.call(
            *("run", "--rm", "--entrypoint=python3", *self._options, self._image),
            *(*script, "--passes", "1", "--rate", "2000"),
        )
        sent = re.search(r"sent (\d+) records to", done.stderr)
        if sent is None:
            raise RuntimeError(f"the producer said: {done.stderr}")
        return int(sent[1])

    @contextmanager
    def service(self) -> Iterator[str]:
        """Run ``weald run`` in the background and yield the container's name."""
        name = f"weald-try-{free_port()}"
        self.call("run", "--detach", f"--name={name}", *self._options, self._image, "run")
        try:
            yield name
        except BaseException:
            sys.stderr.write(self.call("logs", name).stderr)
            raise
        finally:
            self.call("rm", "--force", name)


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    """Start the servers and yield the environment that leads Weald to them."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="weald-image-")))
        kafka = running.enter_context(kafka_broker(folder))
        redis = running.enter_context(redis_server(folder))
        url = running.enter_context(database(running.enter_context(postgresql_server()), "image"))
        administrator = KafkaAdminClient(bootstrap_servers=kafka.address)
        administrator.create_topics({TOPIC: {"num_partitions": 4, "replication_factor": 1}})
        administrator.close()
        yield {
            "WEALD__KAFKA__BOOTSTRAP_SERVERS": kafka.address,
            "WEALD__STORAGE__URL": url,
            "WEALD__REDIS__URL": f"redis://{redis.address}/0",
            "WEALD__MONITORING__HOST": "127.0.0.1",
            "WEALD__MONITORING__PORT": str(free_port()),
        }


def get(port: int, path: str) -> tuple[int, str]:
    """Ask Weald's own port; the status is 0 while nothing listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


def dealt_with(port: int) -> int:
    """Count the records that were inserted, known already, or set aside."""
    counters = r"weald_(?:observations_inserted|duplicates|dead_letters)_total"
    found = re.findall(rf"^{counters}\{{.*\}} (\S+)$", get(port, "/metrics")[1], re.MULTILINE)
    return round(sum(map(float, found)))


def try_image(containers: Containers, environment: dict[str, str]) -> None:
    """Do what compose.yaml has the image do, in its order."""
    port = int(environment["WEALD__MONITORING__PORT"])
    say(containers.weald("--version"))
    containers.weald("db", "upgrade")
    say("the database is at head")
    checks = json.loads(containers.weald("doctor", "--output", "json"))
    kernels = next(check["detail"] for check in checks if check["check"] == "kernels")
    say(f"kernels: {kernels}")
    if platform.machine() == "x86_64" and not kernels.startswith("came compiled"):
        raise RuntimeError("the image's kernels do not run here")
    begun = time.monotonic()
    with containers.service() as name:
        wait_until(lambda: get(port, "/readyz")[0] == http.HTTPStatus.OK, "/readyz")
        say(f"ready {time.monotonic() - begun:.1f} s after the start")
        begun = time.monotonic()
        sent = containers.produce(environment["WEALD__KAFKA__BOOTSTRAP_SERVERS"])
        wait_until(lambda: dealt_with(port) >= sent, f"{sent} records dealt with", 120)
        say(f"{sent} records dealt with {time.monotonic() - begun:.1f} s after the first")
        sys.stdout.write(containers.weald("status", "--output", "json") + "\n")
        containers.call("stop", "--time", "30", name)
        code = containers.call("inspect", "--format", "{{.State.ExitCode}}", name).stdout.strip()
        if code != "0":
            raise RuntimeError(f"SIGTERM ended the service with exit code {code}")
        say("stopped by SIGTERM with exit code 0")


def say(text: str) -> None:
    """Tell on standard error."""
    sys.stderr.write(f"image: {text}\n")


def main() -> None:
    """Read the command line and try the image."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=sorted(ENGINES), required=True)
    parser.add_argument("image")
    options = parser.parse_args()
    with servers() as environment:
        try_image(Containers(options.engine, options.image, environment), environment)


if __name__ == "__main__":
    main()
