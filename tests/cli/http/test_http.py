"""`weald serve`: answers, errors and the page, from a real server over a real socket."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.cli.conftest import N_GOOD, Command
from tests.servers.chromium import Browser
from tests.servers.devtools import Page, driven
from weald.answers.report_data import headline
from weald.cli.errors import ExitCode

TOKEN = "a-token-nobody-guesses"  # noqa: S105 - of a server that lives for a test
AXE = Path(__file__).parents[2] / "servers" / "vendor" / "axe.min.js.gz"
PROBLEM = "application/problem+json"
# The first answer compiles nothing, but loads numba.
SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Service:
    """A running server."""

    address: str
    token: str | None = None

    @contextmanager
    def open(self, path: str, method: str = "GET", **given: Any) -> Iterator[HTTPResponse]:
        connection = HTTPConnection(urlsplit(self.address).netloc, timeout=SECONDS)
        headers = dict(given.pop("headers", {}))
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, headers=headers, **given)
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()

    def ask(self, path: str, method: str = "GET", **given: Any) -> Answer:
        with self.open(path, method, **given) as response:
            return Answer(response.status, dict(response.getheaders()), response.read())

    def post(self, path: str, body: object, kind: str = "application/json") -> Answer:
        encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(path, "POST", body=encoded, headers={"Content-Type": kind})


@contextmanager
def serving(home: Path, **environment: str) -> Iterator[str]:
    """Run `weald serve` as its own process; yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "weald.cli.main", "serve", "--port", "0", "--config", str(home)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert TOKEN not in said
        found = re.search(r"http://\S+", said)
        assert found is not None, said
        yield found.group()
    finally:
        process.terminate()
        process.wait(SECONDS)
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture(scope="module")
def service(filled: Path) -> Iterator[Service]:
    with serving(filled, WEALD__HTTP__POLL_SECONDS="0.1") as address:
        yield Service(address)


def test_pages_of_clusters_hold_each_once_largest_first(service: Service) -> None:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = service.ask(f"/v1/clusters?limit=1&retired=true{cursor}").json
        found += page["items"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    sizes = [each["size"] for each in found]
    assert sizes == sorted(sizes, reverse=True)
    assert len({each["cluster"] for each in found}) == len(found) > 2
    everything = service.ask("/v1/clusters?retired=true").json
    assert everything["items"] == found
    live = service.ask("/v1/clusters").json["items"]
    assert sum(each["size"] for each in live) == N_GOOD
    one = service.ask(f"/v1/clusters/{live[0]['cluster']}").json
    assert one == live[0]


def test_answers_are_those_of_the_commands(service: Service, filled: Path, weald: Command) -> None:
    home = ("--config", str(filled), "--output", "json")
    for moment in ("", "publication:1"):
        told = weald("assign", "k7", *(("--as-of", moment) if moment else ()), *home)
        asked = service.ask(f"/v1/assignments/k7{f'?as_of={moment}' if moment else ''}").json
        assert asked["items"] == json.loads(told.out)
    record = {"x": -10.0, "y": 5.0}
    (filled / "asked.jsonl").write_text(json.dumps(record) + "\n")
    (told,) = json.loads(weald("predict", str(filled / "asked.jsonl"), *home).out)
    before = service.ask("/v1/stream").json
    asked = service.post("/v1/predict", {"records": [record, {"x": "many", "y": 1.0}]}).json
    assert asked["items"] == [{key: told[key] for key in asked["items"][0]}]
    assert [(refusal["row"], refusal["reason"]) for refusal in asked["refused"]] == [
        (1, "wrong_type")
    ]
    assert service.ask("/v1/stream").json == before


def test_an_answer_is_sent_again_only_when_the_model_has_changed(service: Service) -> None:
    first = service.ask("/v1/clusters")
    again = service.ask("/v1/clusters", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    other = service.ask("/v1/clusters", headers={"If-None-Match": '"999999"'})
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize(
    ("path", "status", "names"),
    [
        ("/v1/clusters?limit=0", 400, "limit"),
        ("/v1/clusters?limit=many", 400, "limit"),
        ("/v1/clusters?limt=1", 400, "limt"),
        ("/v1/clusters?limit=1&limit=2", 400, "twice"),
        ("/v1/clusters/zero", 400, "cluster"),
        ("/v1/clusters/99999999999999999999", 400, "cluster"),
        ("/v1/clusters/999999", 404, "999999"),
        ("/v1/assignments/nobody", 404, "key"),
        ("/v1/assignments/a%00b", 404, "key"),
        ("/v1/assignments/k1?as_of=yesterday", 400, "as_of"),
        ("/v1/assignments/k1?as_of=publication:99", 404, "no publication 99, but 1 to "),
        ("/v1/assignments/nobody?as_of=publication:1", 404, "then with this key"),
        ("/v1/nothing", 404, "Not Found"),
    ],
)
def test_errors_are_problems_that_name_what_is_wrong(
    service: Service, path: str, status: int, names: str
) -> None:
    answer = service.ask(path)
    assert (answer.status, answer.headers["content-type"]) == (status, PROBLEM)
    assert answer.json["status"] == status
    assert names in answer.json["detail"]


def test_a_body_that_cannot_be_is_refused(service: Service) -> None:
    assert service.post("/v1/predict", b"{").status == 400
    assert service.post("/v1/predict", {"records": []}).status == 400
    assert service.post("/v1/predict", {"records": [{}]}, "text/plain").status == 415
    assert service.post("/v1/predict", b" " * 4_000_001).status == 413
    deleted = service.ask("/v1/clusters", "DELETE")
    assert (deleted.status, set(deleted.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})


def test_events_continue_from_where_one_left_off(service: Service) -> None:
    lineage = service.ask("/v1/lineage?limit=1000").json["items"]
    with service.open("/v1/events", headers={"Last-Event-ID": str(len(lineage) - 2)}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [stream.readline().decode().strip() for _ in range(12)]
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert told[:2] == lineage[-2:]
    assert lines[8] == "event: epoch"
    assert f"id: {len(lineage)}" in lines


def test_a_token_is_asked_for_where_there_is_one(filled: Path) -> None:
    with serving(filled, WEALD__HTTP__TOKEN=TOKEN) as address:
        for wrong in (Service(address), Service(address, "another")):
            for path in ("/v1/stream", "/v1/events", "/v1/nothing"):
                answer = wrong.ask(path)
                assert (answer.status, answer.headers["content-type"]) == (401, PROBLEM)
                assert answer.headers["www-authenticate"].startswith("Bearer")
        known = Service(address, TOKEN)
        assert known.ask("/v1/stream").status == 200
        described = Service(address).ask("/openapi.json").json
        assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_a_page_from_elsewhere_cannot_ask_under_a_name_of_its_own(filled: Path) -> None:
    """DNS rebinding: its name points to loopback, and the browser sends that name."""
    with serving(filled, WEALD__HTTP__ALLOWED_HOSTS='["weald.example"]') as address:
        service = Service(address)

        def status(host: str, path: str = "/v1/stream") -> int:
            return service.ask(path, headers={"Host": host}).status

        for path in ("/v1/stream", "/", "/openapi.json"):
            answer = service.ask(path, headers={"Host": "evil.example:8080"})
            assert (answer.status, answer.headers["content-type"]) == (421, PROBLEM)
            assert b"http.allowed_hosts" in answer.body
        assert status("127.0.0.1.evil.example") == 421
        known = ("localhost:1", "127.0.0.1", "[::1]:80", "192.168.0.7:8080", "Weald.Example:443")
        assert [status(host) for host in known] == [200] * len(known)


def test_nobody_outside_is_answered_without_a_token(filled: Path, weald: Command) -> None:
    result = weald("serve", "--host", "0.0.0.0", "--config", str(filled))  # noqa: S104 - refused
    assert result.code == ExitCode.USAGE
    assert "http.token" in result.err


def test_it_does_what_its_own_document_says(service: Service, tmp_path: Path) -> None:
    """Requests made from the OpenAPI document, good and bad, and every answer held to it."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"{service.address}openapi.json",
            # Events have no end; they have a test of their own.
            *("--exclude-path", "/v1/events", "--phases", "coverage,fuzzing"),
            *("--max-examples", "5", "--seed", "1", "--no-color", "--generation-database", "none"),
        ],
        # It leaves a folder behind.
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    found = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert found is not None
    assert int(found.group(1)) == int(found.group(2)) > 100


def rows(page: Page) -> int:
    """Rows that the page shows as selected."""
    return int(page.ask("document.querySelector('#count').textContent").split()[0].replace(",", ""))


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_shows_the_stream_in_a_real_browser(
    service: Service, chromium: Browser, *, dark: bool
) -> None:
    with driven(chromium.program) as page:
        page.open(service.address, dark=dark)
        page.until("document.documentElement.dataset.ready")
        heading = page.ask("document.querySelector('h1').textContent")
        items = service.ask("/v1/clusters").json["items"]
        n_groups = len({each["group"] for each in items})
        assert heading == headline(n_groups, len(items), N_GOOD)
        assert rows(page) == N_GOOD
        shown = "[...document.querySelectorAll('.part[data-kind={}]')].map((e) => e.dataset.id)"
        groups = {str(each["group"]) for each in items}
        assert set(page.ask(shown.format("group"))) == groups
        lines = page.ask("[...document.querySelectorAll('.lives .line text')].length")
        assert lines == len(items)
        page.ask(gzip.decompress(AXE.read_bytes()).decode() + "; null")
        broken = page.ask("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.length]))")
        assert broken == []
        assert page.console == []
        outside = "fetch('https://example.com/').then(() => 'went out', () => 'refused')"
        assert page.ask(outside) == "refused"


def test_the_page_follows_the_stream_and_leaves_people_where_they_are(
    filled: Path, weald: Command, tmp_path: Path, chromium: Browser
) -> None:
    home = tmp_path / "home"
    shutil.copytree(filled, home)
    drawn, centre = np.random.default_rng(9), np.array([-10.0, 5.0])

    def arrive(first: int, n: int = 100) -> None:
        """More of the first kind come, and are published."""
        with (home / "records.jsonl").open("a") as file:
            for at in range(first, first + n):
                x, y = centre + drawn.normal(size=2)
                file.write(json.dumps({"id": f"k{at}", "time": at, "x": x, "y": y}) + "\n")
        result = weald("run", "--config", str(home))
        assert result.code == 0, result.err

    def headed(n: int) -> str:
        return f"document.querySelector('h1').textContent.endsWith(' of {n} rows')"

    with (
        serving(home, WEALD__HTTP__POLL_SECONDS="0.1") as address,
        driven(chromium.program) as page,
    ):
        page.open(address)
        page.until("document.documentElement.dataset.ready")
        publication = Service(address).ask("/v1/stream").json["publication"]
        # The first cluster is that of the first record.
        first = Service(address).ask("/v1/assignments/k0").json["items"][0]["cluster"]
        page.ask(f"location.hash = '#cluster={first}'; null")
        page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Cluster')")
        before = rows(page)
        page.ask("document.querySelector('.lives a.line').focus()")
        focused = page.ask("document.activeElement.dataset.id")
        arrive(N_GOOD)
        page.until(headed(N_GOOD + 100))
        page.until(f"Number(document.querySelector('#count').textContent.split(' ')[0]) > {before}")
        newest = Service(address).ask("/v1/stream").json["publication"]
        assert newest > publication
        page.until(
            f"document.querySelector('#state').textContent.startsWith('Publication {newest}')"
        )
        assert page.ask("location.hash") == f"#cluster={first}"
        assert page.ask("document.activeElement.dataset.id") == focused
        # Held still, it tells numbers and moves nothing.
        page.click("#hold")
        before = rows(page)
        arrive(N_GOOD + 100)
        page.until(headed(N_GOOD + 200))
        assert rows(page) == before
        page.click("#hold")
        page.until(f"Number(document.querySelector('#count').textContent.split(' ')[0]) > {before}")
        assert page.console == []


def test_the_page_asks_for_the_token(filled: Path, chromium: Browser) -> None:
    with serving(filled, WEALD__HTTP__TOKEN=TOKEN) as address, driven(chromium.program) as page:
        page.open(address)
        page.until("!document.querySelector('#token-form').hidden")
        page.ask("document.querySelector('#token').focus()")
        page.type(TOKEN)
        page.press("Enter")
        page.until("document.documentElement.dataset.ready")
        assert rows(page) == N_GOOD
        assert page.ask("document.querySelector('#token-form').hidden")


def test_a_stream_without_observations_is_said_to_have_none(
    clean: Path, weald: Command, chromium: Browser
) -> None:
    (clean / "none.jsonl").write_text('{"x": 1, "y": 2}\n')
    (clean / "weald.toml").write_text(
        "[stream]\nname = 'young'\nsource = 'file'\npath = 'none.jsonl'\n"
        "[schema]\nfields = [{name = 'x'}, {name = 'y'}]\n[redis]\nenabled = false\n"
        "[monitoring]\nport = 0\n[storage]\nurl = 'sqlite:///weald.db'\n"
    )
    assert weald("run", "--config", str(clean)).code == 0
    with serving(clean) as address, driven(chromium.program) as page:
        page.open(address)
        page.until("document.querySelector('#state').textContent === 'Too few observations yet.'")
        assert page.console == []
