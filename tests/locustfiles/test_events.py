"""Events in real studies: examples/timelines.py beside timeline.csv, and listeners that sleep or raise."""

import csv
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import LOCUST, ONCE, ROOT, Console, few_pictures
from tests.locustfiles.test_web_page import Page
from tests.processes import free_port, is_listening, wait_until

pytestmark = pytest.mark.system

EXAMPLE = ROOT / "examples" / "timelines.py"
SIZE = ("--iterations", "3", "--seconds", "2.5", "--warm-up", "1", "--cells", "*/b1/*", *ONCE)
WHOLE = (0, 3)
"""Exit codes of a study that came to its end: 3 where this machine had too little time for it."""
REPLAYED = ROOT / "tests/replayed"
"""A GPU for machines that have none: what it tells changes with each second (tests/replayed/README.md)."""


@pytest.fixture
def gpu() -> str:
    """The PYTHONPATH on which the stand-in for NVML is."""
    return os.pathsep.join([str(REPLAYED), os.environ.get("PYTHONPATH", "")])


def locust(
    file: Path, folder: Path, service: int, path: str, *options: str, name: str = "console"
) -> Console:
    """A process of a study with this locustfile."""
    target = ("--pytorch-url", f"127.0.0.1:{service}", *few_pictures())
    words = [LOCUST[0], "-f", str(file), "--results-dir", str(folder), *target, *SIZE, *options]
    return Console(words, folder, name, PYTHONPATH=path)


def headless(folder: Path, service: int, path: str) -> Console:
    return locust(EXAMPLE, folder, service, path, "--headless")


def forked(folder: Path, service: int, path: str) -> Console:
    port = str(free_port())
    own = ("--master-port", port, "--master-bind-port", port)
    return locust(EXAMPLE, folder, service, path, "--headless", "--processes", "2", *own)


def distributed(folder: Path, service: int, path: str) -> Console:
    port = str(free_port())
    own = ("--headless", "--master", "--expect-workers", "2", "--master-bind-port", port)
    master = locust(EXAMPLE, folder, service, path, *own)
    for name in ("one", "two"):
        words = [LOCUST[0], "-f", str(EXAMPLE), "--worker", "--master-port", port]
        Console(words, folder, name, PYTHONPATH=path)
    return master


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def in_its_columns(row: dict[str, str]) -> dict[str, str]:
    """A row of the example's file under the names and in the units of timeline.csv."""
    found = {name: value for name, value in row.items() if not name.endswith("_ns")}
    times = {name[:-3]: value for name, value in row.items() if name.endswith("_ns")}
    return found | {
        f"{name}_ms": value and str(round(float(value) / 1e6, 6)) for name, value in times.items()
    }


def told(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Those columns, of the seconds in which any but the run's name is known."""
    for row in rows:
        found = {name: row[name] for name in columns}
        if any(value for name, value in found.items() if name not in ("t_s", "cell", "repeat")):
            yield found


def assert_equal_to_the_timeline(folder: Path) -> list[dict[str, str]]:
    own = [in_its_columns(row) for row in read(folder / "timelines.csv")]
    timeline = read(folder / "timeline.csv")
    columns = list(own[0])
    assert {"latency_p50_ms", "requests_per_s", "gpu_util_pct", "gpu_power_w"} < set(columns)
    assert list(told(own, columns)) == list(told(timeline, columns))
    return list(told(own, columns))


@pytest.mark.parametrize(
    "start", [headless, *(pytest.param(start, marks=pytest.mark.slow) for start in (forked, distributed))]
)
def test_a_timeline_of_ones_own_is_the_reports(
    start: object, start_service: StartService, tmp_path: Path, gpu: str
) -> None:
    assert callable(start)
    assert len(EXAMPLE.read_text().splitlines()) <= 20
    # Half a second of one user has the 20 results that a median takes.
    console: Console = start(tmp_path, start_service("--delay-ms", "20"), gpu)
    assert console.wait(90) in WHOLE, console.text
    rows = assert_equal_to_the_timeline(console.result())
    known = [row for row in rows if row["latency_p50_ms"] and row["gpu_util_pct"]]
    assert len({row["cell"] for row in known}) == 2
    assert len(known) >= 4
    assert len({row["gpu_power_w"] for row in known}) == len({row["t_s"] for row in known})
    assert "missed events" not in console.text


@pytest.mark.slow
def test_so_it_is_from_the_web_page_study_by_study(
    start_service: StartService, tmp_path: Path, gpu: str
) -> None:
    port = free_port()
    ui = ("--web-host", "127.0.0.1", "--web-port", str(port))
    console = locust(EXAMPLE, tmp_path, start_service("--delay-ms", "40"), gpu, *ui)
    wait_until(lambda: is_listening(port), 20, lambda: console.text)
    page = Page(port)
    for number in (1, 2):
        page.start()
        wait_until(lambda n=number: console.text.count("\nReport: ") == n, 60, lambda: console.text)
        wait_until(lambda: page.state() == "stopped", 20, lambda: console.text)
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    first, second = map(assert_equal_to_the_timeline, folders)
    assert {len({row["cell"] for row in rows}) for rows in (first, second)} == {2}


LISTENERS = """
import time

from locustfiles.step7 import EmbeddingUser, Step7
from swarm import events


@events.window.add_listener
def nap(window, **_):
    time.sleep(10)


@events.run_started.add_listener
def fail(run, **_):
    raise OSError("no disk")
"""


def test_listeners_that_sleep_and_raise_cost_the_study_nothing(
    start_service: StartService, tmp_path: Path, gpu: str
) -> None:
    file = tmp_path / "listeners.py"
    file.write_text(LISTENERS)
    console = locust(file, tmp_path, start_service("--delay-ms", "40"), gpu, "--headless")
    assert console.wait(90) in WHOLE, console.text
    dropping = "inferswarm: dropping events that listeners.py listens to: it did not finish in time"
    assert dropping in console.text
    (missed,) = console.ledger()[-1]["events"]
    assert missed.startswith("listeners.py missed events: ")
    assert "raised an error, the first: OSError: no disk" in missed
    raised = "inferswarm: listeners.py, listening to events.run_started, raised OSError: no disk"
    assert raised in console.text
    about = json.loads((console.result() / "study.json").read_text())
    assert any(notice.startswith(missed) for notice in about["notices"])
    assert missed in " ".join(console.text.split())
    assert about["status"] == "complete"
    for row in console.cells():
        assert (row["failures"], row["abandoned"]) == ("0", "0")
        assert float(row["latency_p50_ms"]) < 80
        assert int(row["requests"]) >= 2.5 * 1000 / 80
    seconds = [int(row["t_s"]) for row in read(console.result() / "timeline.csv")]
    assert len(seconds) < 30, "nobody waited for ten seconds at each"
