"""`weald demo` as a program: broker, consumer, engine, SQL, and the answers afterwards."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.chromium import Browser
from tests.servers.devtools import driven
from weald.cli.demo.streams import STREAMS
from weald.cli.errors import ExitCode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def weald(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, from a folder, without the machine's variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEALD_")}
    kept |= {k: v for k, v in os.environ.items() if k == "WEALD_KERNEL_CACHE"}
    return subprocess.run(
        [sys.executable, "-m", "weald.cli.main", *arguments],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )


def answer(folder: Path, *arguments: str) -> object:
    done = weald(folder, *arguments, "--output", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder in which the earthquakes were demonstrated, with what was printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = weald(folder, "demo")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


def test_every_record_of_the_topic_is_accounted_for(demonstrated: tuple[Path, str, str]) -> None:
    folder, _, _ = demonstrated
    status = answer(folder, "status")
    assert isinstance(status, dict)
    n_records = sum(1 for _ in STREAMS["earthquakes"].records())
    assert status["n_received"] == status["n_inserted"] == n_records
    assert status["n_duplicate"] == status["n_dead"] == 0
    assert sum(part["next_offset"] for part in status["partitions"]) == n_records


def test_the_clusters_are_those_that_seismologists_know(
    demonstrated: tuple[Path, str, str],
) -> None:
    folder, out, _ = demonstrated
    clusters = answer(folder, "clusters", "--limit", "1000")
    assert isinstance(clusters, list)
    assert sum(each["size"] for each in clusters) == 1707
    assert out.splitlines()[1].startswith(f"{len(clusters)} clusters of 1707 observations")
    # The swarm near Aguanga, the geothermal field of The Geysers, and Kilauea.
    for longitude, latitude, width in (
        (-116.79, 33.50, 0.05),
        (-122.81, 38.82, 0.05),
        (-155.4, 19.4, 0.5),
    ):
        near = [
            each["size"]
            for each in clusters
            if abs(each["features"]["longitude"]["centre"] - longitude) < width
            and abs(each["features"]["latitude"]["centre"] - latitude) < width
        ]
        assert max(near, default=0) >= 35


def test_the_printed_commands_answer_from_the_state_on_disk(
    demonstrated: tuple[Path, str, str],
) -> None:
    folder, out, _ = demonstrated
    commands = re.findall(r"^  (?:\S*weald) (.*)$", out.partition("Next, try:")[2], re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        done = weald(folder, *shlex.split(command))
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout


def test_a_key_keeps_its_answer(demonstrated: tuple[Path, str, str]) -> None:
    folder, out, _ = demonstrated
    found = re.search(r"assign (\S+)$", out, re.MULTILINE)
    assert found
    rows = answer(folder, "assign", found.group(1))
    assert isinstance(rows, list)
    sizes = answer(folder, "cluster", str(rows[0]["cluster"]))
    assert isinstance(sizes, dict)
    assert sizes["size"] > 0


def test_what_refinement_moved_is_told(demonstrated: tuple[Path, str, str]) -> None:
    _, out, err = demonstrated
    _, table = out.split("How many observations each publication put into another cluster")
    rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+)$", table, re.MULTILINE)
    assert rows
    assert sum(int(row[3]) for row in rows) > 0
    assert "metrics" in err
    assert "redis://127.0.0.1" in err


def test_the_picture_and_the_page_stand_by_themselves(
    demonstrated: tuple[Path, str, str], chromium: Browser
) -> None:
    folder, out, _ = demonstrated
    picture = (folder / "weald-demo" / "clusters.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    file = folder / "weald-demo" / "clusters.html"
    assert file.stat().st_size < 5_000_000
    with driven(chromium.program) as page:
        page.open(file.as_uri())
        page.until("document.documentElement.dataset.ready")
        found = re.search(r"(\d+) clusters of (\d+) observations", out)
        assert found
        counted = page.ask("document.querySelector('#count').textContent").replace(",", "")
        assert counted == f"{found[2]} rows"
        n_groups = page.ask("document.querySelectorAll('.part[data-kind=group]').length")
        title = page.ask("document.querySelector('h1').textContent")
        assert title == f"{n_groups} groups of {int(found[2]):,} rows"
        assert "Aguanga, California" in page.ask("document.body.textContent")
        # Publications have the dates of the events, not of the day on which they are replayed.
        table = page.ask("document.querySelector('main > .wide:nth-last-of-type(2)').innerText")
        assert "newest event by then" in table
        assert re.search(r"^1\s+2018-02-01 00:09 UTC\s+200\s", table, re.MULTILINE)
        ticks = page.ask("document.querySelector('.lives .axis').textContent")
        assert "2018-02-01" in ticks
        # What was only grouped anew is not called new.
        about = page.ask("document.querySelector('.tree .about').textContent")
        assert re.search(r"Newest: group \d+, .* \(publication 7 of 9\)", about)
        assert "Not new, but grouped anew at the latest publication: group 19." in about
        assert page.console == []
        assert not [each for each in page.requests if each.startswith("http")]


def test_running_again_replaces_the_demo_and_gives_the_same(
    demonstrated: tuple[Path, str, str],
) -> None:
    folder, out, _ = demonstrated
    again = weald(folder, "demo")
    assert again.returncode == 0, again.stderr
    assert again.stdout == out


def test_cancelled_flights_are_set_aside_with_their_reason(tmp_path: Path) -> None:
    home = tmp_path / "flights"
    done = weald(tmp_path, "demo", "--stream", "flights", "--home", str(home), "--records", "1500")
    assert done.returncode == 0, done.stderr
    status = answer(tmp_path, "status", "--config", str(home))
    assert isinstance(status, dict)
    assert status["n_received"] == 1500
    assert status["n_dead"] > 0
    assert status["n_inserted"] + status["n_dead"] == 1500
    assert status["dead_letter_reasons"] == {"missing_value": status["n_dead"]}


def test_somebody_elses_folder_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "weald.toml"
    mine.write_text("[stream]\nname = 'mine'\n")
    done = weald(tmp_path, "demo", "--home", ".")
    assert done.returncode == ExitCode.CONFLICT
    assert "--home DIR" in done.stderr
    assert mine.read_text() == "[stream]\nname = 'mine'\n"
