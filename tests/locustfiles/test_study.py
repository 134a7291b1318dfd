"""A study from the console against a stand-in service: whole, distributed, failing, interrupted."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from PIL import Image

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import LOCUST, Console, all_gone, free_port, is_listening, study, wait_until

pytestmark = pytest.mark.system

CELLS = {"pytorch-http/b1/c1", "pytorch-http/b4/c1", "pytorch-http/b8/c1", "pytorch-http/b1/c8"}
TWO_CELLS = ("--cells", "*/b1/*")
SHORT = ("--iterations", "3", "--seconds", "0.3")


def test_a_whole_study(start_service: StartService, consoles: list[Console], tmp_path: Path) -> None:
    port = start_service("--delay-ms", "20")
    console = study(tmp_path, "--pytorch-url", f"http://127.0.0.1:{port}", *SHORT)
    consoles.append(console)
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == CELLS
    for row in rows.values():
        assert int(row["requests"]) >= 3
        assert row["failures"] == row["abandoned"] == "0"
        assert float(row["latency_p50_ms"]) >= 20
        assert float(row["server_compute_ms"]) == pytest.approx(20, rel=0.01)
        assert int(row["images"]) == int(row["requests"]) * int(row["batch"])
        assert "counts-mismatch" not in row["caveats"]
    assert float(rows["pytorch-http/b1/c1"]["images_per_s"]) <= 50
    assert float(rows["pytorch-http/b1/c8"]["images_per_s"]) > 100
    assert console.ledger()[-1]["status"] == "complete"
    names = {path.name for path in console.result().iterdir()}
    assert names >= {"study.json", "cells.csv", "ledger.jsonl", "summary.md", "report.html"}
    assert "[4/4]" in console.text
    assert console.text.index("Serial latency, p50") > console.text.index("[4/4]")


@pytest.mark.parametrize("by_hand", [False, True], ids=["processes", "by-hand"])
def test_two_workers_give_the_same_cells(
    start_service: StartService, consoles: list[Console], tmp_path: Path, by_hand: bool
) -> None:
    url = ("--pytorch-url", f"http://127.0.0.1:{start_service()}")
    port = str(free_port())
    ways = (
        ["--master", "--expect-workers", "2", "--master-bind-port", port] if by_hand else ["--processes", "2"]
    )
    console = study(tmp_path, *url, *SHORT, *ways)
    consoles.append(console)
    for number in range(2 if by_hand else 0):
        worker = [*LOCUST, "--worker", "--master-port", port]
        consoles.append(Console(worker, tmp_path, f"worker-{number}"))
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == CELLS
    assert all(row["failures"] == "0" for row in rows.values())
    assert all(row["workers"] == "2" for row in rows.values())
    drained = [r for r in console.ledger() if r["kind"] == "drained" and r["cell"] == "pytorch-http/b1/c8"]
    assert [r["users"] for r in drained] == [4, 4]
    assert sum(r["finished"] for r in drained) == int(rows["pytorch-http/b1/c8"]["requests"])
    for other in consoles[-2:] if by_hand else []:
        assert other.wait(20) == 0


def test_failures_give_exit_code_1(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    port = start_service("--wrong-after", "70")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT)
    consoles.append(console)
    assert console.wait(60) == 1, console.text
    assert "wrong-embedding" in (console.result() / "summary.md").read_text()
    assert sum(int(row["failures"]) for row in console.cells()) > 0


def test_a_service_that_dies_leaves_an_inconclusive_study_that_ends(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    port = start_service("--die-after", "60")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT)
    consoles.append(console)
    assert console.wait(60) == 3, console.text
    ends = [r for r in console.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert len(ends) == 4
    assert ends[-1]["status"] == "failed"
    kinds = {kind for r in console.ledger() if r["kind"] == "window" for kind in r["failures"]}
    assert kinds == {"refused", "reset"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("processes", [(), ("--processes", "2")], ids=["local", "processes"])
def test_a_signal_ends_it_in_order(
    start_service: StartService,
    consoles: list[Console],
    tmp_path: Path,
    number: signal.Signals,
    processes: tuple[str, ...],
) -> None:
    port = start_service("--delay-ms", "200")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT, *processes)
    consoles.append(console)
    console.wait_for("[2/4]", 40)
    family = console.family()
    console.signal(number)
    assert console.wait(10) == 3, console.text
    assert all_gone(family)
    records = console.ledger()
    assert records[-1]["status"] == "interrupted"
    done = [r["cell"] for r in records if r["kind"] == "run" and r.get("status") == "done"]
    assert len(done) >= 2
    assert {row["cell"] for row in console.cells()} >= set(done)
    assert "report.html" in console.text


def distributed(
    consoles: list[Console], folder: Path, service: int, workers: int, *arguments: str
) -> tuple[Console, list[Console], Callable[[], Console]]:
    """A master, its workers, and a function that adds a worker."""
    port = str(free_port())
    ways = ["--master", "--expect-workers", str(workers), "--master-bind-port", port]
    master = study(folder, "--pytorch-url", f"127.0.0.1:{service}", *ways, *arguments)
    consoles.append(master)

    def add() -> Console:
        made = Console([*LOCUST, "--worker", "--master-port", port], folder, f"worker-{len(consoles)}")
        consoles.append(made)
        return made

    return master, [add() for _ in range(workers)], add


def codes(console: Console) -> dict[str, set[str]]:
    """The caveats of the ledger by cell."""
    found: dict[str, set[str]] = {}
    for record in console.ledger():
        if record["kind"] == "caveat":
            found.setdefault(record["cell"], set()).add(record["code"])
    return found


def test_a_killed_worker_is_noticed_and_the_study_goes_on_without_it(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    master, workers, _ = distributed(
        consoles, tmp_path, start_service("--delay-ms", "20"), 2, "--seconds", "7", *TWO_CELLS
    )
    master.wait_for("results in", 40)
    wait_until(lambda: '"phase":"measure"' in (master.result() / "ledger.jsonl").read_text(), 30)
    workers[0].signal(signal.SIGKILL)
    assert master.wait(90) == 3, master.text
    first = master.ledger()[0]["plan"][0]["cell"]
    assert "worker-lost" in codes(master)[first]
    assert set(codes(master)) == {first}
    rows = {row["cell"]: row for row in master.cells()}
    assert [row["workers"] for cell, row in rows.items() if cell != first] == ["1"]


def test_a_late_worker_makes_its_run_doubtful_and_carries_the_next(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    service = start_service("--delay-ms", "20")
    master, _, add = distributed(consoles, tmp_path, service, 1, "--seconds", "4", *TWO_CELLS)
    master.wait_for("results in", 40)
    wait_until(lambda: '"phase":"measure"' in (master.result() / "ledger.jsonl").read_text(), 30)
    add()
    assert master.wait(90) == 3, master.text
    first = master.ledger()[0]["plan"][0]["cell"]
    assert "worker-joined" in codes(master)[first]
    assert set(codes(master)) == {first}
    rows = {row["cell"]: row for row in master.cells()}
    assert [row["workers"] for cell, row in rows.items() if cell != first] == ["2"]


def test_a_late_worker_with_other_pictures_is_sent_home(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    Image.new("RGB", (224, 224), (200, 0, 0)).save(pictures / "a.png")
    results = tmp_path / "results"
    results.mkdir()
    service = start_service("--delay-ms", "20")
    arguments = ("--seconds", "4", "--images", str(pictures), *TWO_CELLS)
    master, _, add = distributed(consoles, results, service, 1, *arguments)
    master.wait_for("results in", 40)
    wait_until(lambda: '"phase":"measure"' in (master.result() / "ledger.jsonl").read_text(), 30)
    Image.new("RGB", (224, 224), (0, 200, 0)).save(pictures / "a.png")
    late = add()
    assert late.wait(60) == 0
    assert master.wait(90) == 3, master.text
    assert "cannot take part and is sent home: its pictures are not the master's" in master.text
    ends = [r["status"] for r in master.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert ends == ["done", "done"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--pytorch-url", "127.0.0.1:1"),
            "--pytorch-url 127.0.0.1:1: cannot be reached (connection refused)",
        ),
        (("--onnx-http-url", "127.0.0.1:1"), "--onnx-http-url 127.0.0.1:1: cannot be reached"),
        (("--onnx-grpc-url", "127.0.0.1:1"), "--onnx-grpc-url 127.0.0.1:1: cannot be reached"),
        (("--pytorch-url", "nowhere.invalid:80"), "cannot be reached (unknown host name)"),
        (
            ("--onnx-http-url", "127.0.0.1:{port}"),
            "answers, but not as a Triton server; give Triton's HTTP port",
        ),
        (
            ("--onnx-grpc-url", "127.0.0.1:{port}"),
            "answers, but not as a Triton server; give Triton's gRPC port",
        ),
        (("--pytorch-url", "gpu-host"), "--pytorch-url 'gpu-host': give host:port or http://host:port"),
        (("--images", "{empty}"), "no .jpg, .jpeg or .png file in it"),
        (("--images", "{texts}"), "is not a readable JPEG or PNG picture; remove it"),
        (("--images", "{empty}/none"), "no such folder"),
        (("--iterations", "0"), "--iterations 0: give 1 or more"),
        (("--iterations", "0", "--processes", "2"), "--iterations 0: give 1 or more"),
        (("--pytorch-url", "127.0.0.1:1", "--processes", "2"), "cannot be reached (connection refused)"),
        (("--results-dir", "/proc/none"), "--results-dir: cannot make /proc/none"),
    ],
)
def test_each_mistake_is_one_sentence_and_exit_code_2(
    start_service: StartService,
    consoles: list[Console],
    tmp_path: Path,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    empty, texts = tmp_path / "empty", tmp_path / "texts"
    empty.mkdir()
    texts.mkdir()
    (texts / "a.jpg").write_text("this is text")
    port = start_service()
    filled = [value.format(port=port, empty=empty, texts=texts) for value in arguments]
    results = tmp_path / "results"
    results.mkdir()
    console = study(results, *filled)
    consoles.append(console)
    assert console.wait(15) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert sentence in line
    assert "Traceback" not in console.text
    assert [path for path in results.iterdir() if path.is_dir()] == []
    wait_until(lambda: not console.left_behind(), 12, lambda: console.text)


def test_a_machine_without_tritonserver_is_told_so_before_anything_starts(
    consoles: list[Console], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shim" / "pytriton").mkdir(parents=True)
    (tmp_path / "shim" / "pytriton" / "__init__.py").write_text("# a wheel without its server")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shim"))
    console = study(tmp_path / "shim")
    consoles.append(console)
    assert console.wait(15) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert "nvidia-pytriton has no tritonserver for Python 3.1" in line
    assert "servers: starting" not in console.text


def test_a_busy_master_port_is_said(consoles: list[Console], tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = str(held.getsockname()[1])
        console = study(tmp_path, "--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port)
        consoles.append(console)
        assert console.wait(15) != 0
    assert "Address already in use" in console.text
    assert port in console.text


class Page:
    """Locust's web page, by the requests that its buttons send."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def start(self, **fields: str) -> None:
        form = {"user_count": "1", "spawn_rate": "1", **fields}
        assert requests.post(f"{self.url}/swarm", form, timeout=5).json()["success"]

    def stop(self) -> None:
        assert requests.post(f"{self.url}/stop", timeout=20).json()["success"]

    def state(self) -> str:
        return str(requests.get(f"{self.url}/stats/requests", timeout=5).json()["state"])


def test_sigterm_under_the_web_page_keeps_what_was_measured(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    port, service = free_port(), start_service("--delay-ms", "200")
    arguments = ["--web-host", "127.0.0.1", "--web-port", str(port), "--results-dir", str(tmp_path)]
    console = Console([*LOCUST, *arguments, "--pytorch-url", f"127.0.0.1:{service}"], tmp_path)
    consoles.append(console)
    wait_until(lambda: is_listening(port), 20, lambda: console.text)
    Page(port).start(seconds="3")
    console.wait_for("[1/4]", 30)
    console.signal(signal.SIGTERM)
    assert console.wait(10) == 3, console.text
    assert console.ledger()[-1]["status"] == "interrupted"
    assert (console.result() / "report.html").exists()
    assert not console.left_behind()


def test_the_web_page_starts_stops_and_starts_again(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    port, service = free_port(), start_service()
    arguments = ["--web-host", "127.0.0.1", "--web-port", str(port), "--results-dir", str(tmp_path)]
    console = Console([*LOCUST, *arguments, "--pytorch-url", f"127.0.0.1:{service}"], tmp_path)
    consoles.append(console)
    wait_until(lambda: is_listening(port), 20, lambda: console.text)
    page = Page(port)
    assert "no host attribute" not in requests.get(page.url, timeout=5).text
    page.start(seconds="30")
    console.wait_for("results in", 20)
    page.stop()
    wait_until(lambda: page.state() == "stopped", 20, lambda: console.text)
    page.start(iterations="nope")
    console.wait_for("--iterations nope: give 1 or more", 10)
    page.start(iterations="3", seconds="0.2")
    console.wait_for("[4/4]", 30)
    wait_until(lambda: console.text.count("The whole report:") == 2, 20, lambda: console.text)
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    footers = [(path / "ledger.jsonl").read_text().splitlines()[-1] for path in folders]
    assert ["interrupted" in footer for footer in footers] == [True, False]
    assert all((path / "report.html").exists() for path in folders)
    family = console.family()
    console.signal(signal.SIGINT)
    console.wait(10)
    assert all_gone(family)
    assert not is_listening(port)
