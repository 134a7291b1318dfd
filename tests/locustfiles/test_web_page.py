"""A study from Locust's web page: started, stopped, started again, interrupted, and seen in a browser."""

from locust.web import WebUI

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from swarm.web.page import open_page
from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import CELLS, LOCUST, ONCE, SHORT, Console, all_gone, few_pictures
from tests.processes import free_port, is_listening, wait_until
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, phase_line, readings, triton
from tests.swarm.followed import Followed
from tests.swarm.web_stand import MS, begun, second_of, web_ui
from tests.swarm.wsgi import serving

BROWSER = Path(__file__).with_name("browser.py")
INJECTED = "<img src=x onerror=alert(1)><b>bold</b>"
needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on the path")

pytestmark = [pytest.mark.system, pytest.mark.slow]


class Page:
    """Locust's web page, by the requests that its buttons send."""

    def __init__(self, port: int, base: str = "") -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}{base}"

    def start(self, **fields: str) -> str:
        """Press Start; why nothing was started, or what Locust says."""
        form = {"user_count": "1", "spawn_rate": "1", **fields}
        told = requests.post(f"{self.url}/swarm", form, timeout=5).json()
        assert told["success"] == told["message"].startswith("Swarming started")
        return str(told["message"])

    def stop(self) -> None:
        assert requests.post(f"{self.url}/stop", timeout=20).json()["success"]

    def state(self) -> str:
        return str(requests.get(f"{self.url}/stats/requests", timeout=5).json()["state"])


def opened(folder: Path, service: int, base: str = "", *options: str) -> tuple[Console, Page]:
    """Locust with its web page, and the page."""
    port = free_port()
    arguments = ["--web-host", "127.0.0.1", "--web-port", str(port), "--results-dir", str(folder), *ONCE]
    arguments += [*options, *(("--web-base-path", base) if base else ())]
    target = ("--pytorch-url", f"127.0.0.1:{service}", *few_pictures())
    console = Console([*LOCUST, *arguments, *target], folder)
    wait_until(lambda: is_listening(port), 20, lambda: console.text)
    return console, Page(port, base)


def seen(url: str, selector: str, count: int, *options: str) -> Iterator[dict[str, Any]]:
    """What a browser sees there at either width; nothing may be wrong with the page as such."""
    for look in browsed(url, selector, str(count), *options).values():
        assert look["said"] == []
        assert look["asked"] == ["/".join(url.split("/")[:3])]
        assert not look["wide"]
        assert look["first"] == look["again"]
        yield look


def browsed(*arguments: str) -> dict[str, Any]:
    """What browser.py found."""
    command = [sys.executable, str(BROWSER), str(shutil.which("chromium")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=80, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_sigterm_under_the_web_page_keeps_what_was_measured(
    start_service: StartService, tmp_path: Path
) -> None:
    console, page = opened(tmp_path, start_service("--delay-ms", "60"))
    page.start(seconds="3")
    console.wait_for("[1/3]", 30)
    console.signal(signal.SIGTERM)
    assert console.wait(10) == 3, console.text
    assert console.ledger()[-1]["status"] == "interrupted"
    assert (console.result() / "report.html").exists()
    assert not console.left_behind()


def test_the_web_page_starts_stops_and_starts_again(start_service: StartService, tmp_path: Path) -> None:
    console, page = opened(tmp_path, start_service())
    assert "no host attribute" not in requests.get(page.url, timeout=5).text
    page.start(seconds="30")
    console.wait_for("results in", 20)
    page.stop()
    wait_until(lambda: page.state() == "stopped", 20, lambda: console.text)
    assert page.start(iterations="nope") == "--iterations nope: must be at least 1"
    console.wait_for("--iterations nope: must be at least 1", 10)
    page.start(iterations="3", seconds="0.2", warm_up="0.3")
    console.wait_for("[3/3]", 30)
    wait_until(lambda: console.text.count("report.html") == 2, 20, lambda: console.text)
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    footers = [(path / "ledger.jsonl").read_text().splitlines()[-1] for path in folders]
    assert ["interrupted" in footer for footer in footers] == [True, False]
    assert all((path / "report.html").exists() for path in folders)
    family = console.family()
    console.signal(signal.SIGINT)
    console.wait(10)
    assert all_gone(family)
    assert not is_listening(page.port)


@needs_browser
def test_cells_arrive_in_the_live_page_and_in_locusts_tab(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service("--delay-ms", "20")
    console, page = opened(tmp_path, service, "/load", *SHORT)
    wide, narrow = seen(f"{page.url}/inferswarm", "#cells tr", 3, "--start")
    assert (wide["at once"], wide["plan"]) == (0, "3 runs, at least 10 s.")
    assert wide["faults"] == [
        "The server answers with an error (503).",
        "The server does not answer: it may have ended.",
    ]
    assert wide["refused"].startswith("--levels 0: give whole numbers of users")
    assert (wide["may start"], wide["form in sight"]) == (False, False)
    assert {text.split()[0] for text in wide["first"]} == CELLS
    assert all("few-samples" in text for text in wide["first"])
    assert narrow["first"] == wide["first"]
    assert wide["canvases"] == 0, "cells of a third of a second have no whole one"
    assert "No whole second" in wide["text"]
    wait_until(lambda: page.state() == "stopped", 20, lambda: console.text)
    for look in seen(f"{page.url}/?tab=inferswarm", "table tbody tr", 3):
        assert {text.split()[0] for text in look["first"]} == CELLS
    data = requests.get(f"{page.url}/inferswarm/data", timeout=5).json()
    assert (data["study"]["status"], data["study"]["report"]) == ("complete", True)
    report = requests.get(f"{page.url}/inferswarm/report/{data['study']['id']}", timeout=5)
    assert report.text == (console.result() / "report.html").read_text()
    shown = {cell["cell"]: cell["images_per_s"] for cell in data["cells"]}
    own = {row["name"]: row for row in requests.get(f"{page.url}/stats/requests", timeout=5).json()["stats"]}
    aside = {f"{cell} (warm-up)" for cell in CELLS}
    # A user whose last measured request has come back may send once more until the others' have.
    assert set(own) - {f"{cell} (drain)" for cell in CELLS} == {*CELLS, *aside, "Aggregated"}
    assert own["Aggregated"]["num_requests"] == sum(int(row["requests"]) for row in console.cells())
    for row in console.cells():
        assert own[row["cell"]]["total_rps"] == pytest.approx(float(row["requests_per_s"]), rel=1e-3)
        images_per_s = float(shown[row["cell"]].replace(",", ""))
        assert images_per_s == pytest.approx(float(row["images_per_s"]), rel=5e-3)


@needs_browser
def test_markup_from_outside_shows_as_text_and_a_gpu_has_its_charts(tmp_path: Path) -> None:
    ui = web_ui()
    live = open_page(ui)
    book = Book(title=f"Of {INJECTED}")
    tag = book.plan("onnx-grpc", 1, 2)
    hostile: Record = {**tag, "cell": f"{INJECTED}/b1/c2"}
    book.header["plan"][0]["cell"] = hostile["cell"]
    folder = tmp_path / INJECTED.replace("/", "")
    Followed(book.header, live.begun(folder, book.header)).tell(*whole_run(hostile))
    live.ended("failed", INJECTED, 3)
    live.refused(INJECTED)
    with serving(ui.app) as address:
        for look in seen(f"http://{address}/inferswarm", "#cells tr", 1):
            assert look["first"][0].startswith(f"{INJECTED}/b1/c2 (failed)")
            for text in (f"Of {INJECTED}", f"The study failed after 1 of 1 run: {INJECTED}."):
                assert text in look["text"]
            assert all(name in look["text"] for name in ("GPU utilisation", "GPU power", "Pending requests"))
            assert look["canvases"] == 11
            assert f"{INJECTED}/b1/c2, repeat 1" in look["text"], "the names of the numbered bands"


def followed(folder: Path) -> WebUI:
    """The page of a study that tells of one whole run."""
    ui, book = web_ui(), Book()
    live = open_page(ui)
    tag = book.plan("onnx-grpc", 1, 2)
    Followed(book.header, live.begun(folder, book.header)).tell(*whole_run(tag))
    return ui


@needs_browser
def test_seconds_that_are_partly_of_a_phase_are_not_drawn(tmp_path: Path) -> None:
    ui = followed(tmp_path)
    with serving(ui.app) as address:
        for look in seen(f"http://{address}/inferswarm", "#cells tr", 1):
            images, failures = look["drawn"]["Throughput per second"]
            drawn = {round(at_ms / 1000) - FIRST_SECOND: value for at_ms, value in images["points"]}
            whole = {at: value for at, value in drawn.items() if value is not None}
            assert whole == dict.fromkeys([*range(1, 5), *range(6, 20)], 50)
            assert (images["name"], images["bands"]) == ("images", ["warm-up", "measure"])
            assert {value for _, value in failures["points"]} == {0, None}


@needs_browser
def test_runs_at_the_same_time_are_drawn_side_by_side(tmp_path: Path) -> None:
    ui, book = web_ui(), Book()
    live = open_page(ui)
    runs = [list(whole_run(book.plan(name, 1, 2))) for name in ("onnx-grpc", "onnx-http")]
    study = Followed(book.header, live.begun(tmp_path, book.header))
    for at_once in zip(*runs, strict=True):
        study.tell(*at_once)
    live.ended("complete", "", 0)
    with serving(ui.app) as address:
        for look in seen(f"http://{address}/inferswarm", "#cells tr", 2):
            images, _ = look["drawn"]["Throughput per second"]
            drawn = [value for _, value in images["points"]]
            assert [value for value in drawn if value is not None] == [50] * 2 * 18
            assert images["bands"][0] == "1, 2"


@needs_browser
def test_a_page_that_cannot_draw_says_so_and_asks_on_while_it_is_in_sight(tmp_path: Path) -> None:
    ui = followed(tmp_path)
    with serving(ui.app) as address:
        found = browsed(f"http://{address}/inferswarm", "#cells tr", "1", "--blocked", "echarts.min.js")
    assert "This page cannot draw its data: reload it." in found["text"]
    assert found["in sight"] > 0
    assert found["out of sight"] == 0
    assert found["in sight again"] > 0
    assert len(found["rows"]) == 1


def whole_run(tag: Record) -> Iterator[Record]:
    """A run of twenty seconds with a GPU, and a part of one, which then fails."""
    yield begun(tag)
    yield phase_line(tag, "warm-up", "2026-11-21T11:00:00Z")
    yield phase_line(tag, "measure", "2026-11-21T11:00:05Z")
    for at in range(20):
        gpu = {"id": "a", "util_pct": 40.0 + at, "memory_bytes": (2 + at % 3) << 30}
        gpu["power_w"] = 150.0 + 3 * at
        server = triton(50 * (at + 1), 1, 18 * MS)
        latencies = [(20 + at % 5) * MS] * 50
        yield from second_of(tag, at, latencies, server=server, gpus=[gpu], pending_requests=at % 4)
    yield phase_line(tag, "drain", "2026-11-21T11:00:20.100Z")
    yield from second_of(tag, 20, [20 * MS] * 5)
    yield from readings(tag, triton(750, 1, 18 * MS))
    yield {"kind": "run", **tag, "event": "end", "utc": "then", "status": "failed", "note": INJECTED}
