"""A study over several workers: forked or by hand, killed, late, or with other pictures."""

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import CELLS, LOCUST, OPENED, ROOT, SHORT, Console, study
from tests.processes import free_port, wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow]

TWO_CELLS = ("--cells", "*/b1/*", "--warm-up", "2")


def distributed(
    folder: Path, service: int, workers: int, *arguments: str
) -> tuple[Console, list[Console], Callable[[], Console]]:
    """A master, its workers, and a function that adds a worker."""
    port = str(free_port())
    ways = ["--master", "--expect-workers", str(workers), "--master-bind-port", port]
    master = study(folder, "--pytorch-url", f"127.0.0.1:{service}", *ways, *arguments)

    def add() -> Console:
        return Console([*LOCUST, "--worker", "--master-port", port], folder, f"worker-{len(OPENED)}")

    return master, [add() for _ in range(workers)], add


def wait_until_measuring(master: Console) -> None:
    """Into the measure phase of the first cell."""
    master.wait_for("results in", 60)
    wait_until(lambda: '"phase":"measure"' in (master.result() / "ledger.jsonl").read_text(), 30)


def measured_by(console: Console) -> set[str]:
    """The workers with a window of the measure phase in a ledger that still grows."""
    lines = (console.result() / "ledger.jsonl").read_text().splitlines()[:-1]
    windows = [r for r in map(json.loads, lines) if r["kind"] == "window" and r["phase"] == "measure"]
    return {window["worker"] for window in windows}


def codes(console: Console) -> dict[str, set[str]]:
    """The caveats of the ledger by cell."""
    found: dict[str, set[str]] = {}
    for record in console.ledger():
        if record["kind"] == "caveat" and record["code"] != "unsteady":
            found.setdefault(record["cell"], set()).add(record["code"])
    return found


@pytest.mark.parametrize("by_hand", [False, True], ids=["processes", "by-hand"])
def test_two_workers_give_the_same_cells(start_service: StartService, tmp_path: Path, by_hand: bool) -> None:
    service, workers = start_service(), list[Console]()
    if by_hand:
        console, workers, _ = distributed(tmp_path, service, 2, *SHORT)
    else:
        console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{service}", *SHORT, "--processes", "2")
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == CELLS
    assert all(row["failures"] == "0" for row in rows.values())
    assert all(row["workers"] == "2" for row in rows.values())
    drained = [r for r in console.ledger() if r["kind"] == "drained" and r["cell"] == "pytorch-http/b1/c8"]
    assert [r["users"] for r in drained] == [4, 4]
    assert sum(r["finished"] for r in drained) == int(rows["pytorch-http/b1/c8"]["requests"])
    assert [worker.wait(20) for worker in workers] == [0] * len(workers)


def test_the_users_of_a_killed_worker_go_on_at_the_other(start_service: StartService, tmp_path: Path) -> None:
    service = start_service("--delay-ms", "60")
    arguments = ("--cells", "*/b1/c8", "--seconds", "14", "--warm-up", "2")
    master, workers, _ = distributed(tmp_path, service, 2, *arguments)
    wait_until_measuring(master)
    wait_until(lambda: measured_by(master) == {"w0", "w1"}, 10)
    killed_s = time.time()
    workers[0].signal(signal.SIGKILL)
    wait_until(lambda: "was lost" in master.text, 5, lambda: master.text)
    assert master.wait(60) == 3, master.text
    assert codes(master) == {"pytorch-http/b1/c8": {"worker-lost"}}
    (row,) = master.cells()
    found = set(row["caveats"].split(";"))
    # What its last second had is missing, in its windows and beside what the server counted.
    assert ("worker-lost" in found, found & {"cut-short", "counts-mismatch"}) == (True, set())
    measured = [r for r in master.ledger() if r.get("phase") == "measure"]
    health = [r for r in measured if r["kind"] == "health"]
    restored_s = min(r["second"] for r in health if r["users"] == 8)
    assert restored_s + 1 <= killed_s + 10
    survivor = next(r["worker"] for r in health if r["users"] == 8)
    seconds = {r["second"] for r in measured if r["kind"] == "window" and r["worker"] == survivor}
    assert seconds == set(range(min(seconds), max(seconds) + 1))
    (drained,) = [r for r in measured if r["kind"] == "drained"]
    finished = sum(r["ok"] for r in measured if r["kind"] == "window" and r["worker"] == survivor)
    assert (drained["worker"], drained["users"], drained["finished"]) == (survivor, 8, finished)
    rows = list(csv.DictReader((master.result() / "timeline.csv").read_text().splitlines()))
    assert rows[-3]["users"] == "8"


def test_the_arrivals_of_a_killed_worker_go_on_at_the_other(
    start_service: StartService, tmp_path: Path
) -> None:
    rates = ("--rates", "40", "--max-in-flight", "8", "--seconds", "14", "--warm-up", "2")
    master, workers, _ = distributed(tmp_path, start_service("--delay-ms", "5"), 2, *rates)
    wait_until_measuring(master)
    workers[1].signal(signal.SIGKILL)
    assert master.wait(60) == 3, master.text
    windows = [r for r in master.ledger() if r["kind"] == "window" and r["phase"] == "measure"]
    last = max(r["second"] for r in windows)
    by_second = {s: sum(r["ok"] for r in windows if r["second"] == s) for s in range(last - 3, last)}
    assert by_second == pytest.approx(dict.fromkeys(by_second, 40), abs=4)


def test_a_ledger_whose_master_was_killed_is_whole_to_its_last_second(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service("--delay-ms", "20")
    master, workers, _ = distributed(tmp_path, service, 2, "--seconds", "60", *TWO_CELLS)
    wait_until_measuring(master)
    ledger = master.result() / "ledger.jsonl"
    wait_until(lambda: ledger.read_text().count('"kind":"window"') > 12, 30)
    master.signal(signal.SIGKILL)
    killed_s = int(time.time())
    reports_main = [sys.executable, "-m", "reports", "show", str(master.result())]
    shown = subprocess.run(reports_main, cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "The ledger has no footer" in shown.stdout
    (row,) = master.cells()
    assert "unfinished" in row["caveats"].split(";")
    windows = [r for r in master.ledger() if r["kind"] == "window"]
    assert max(r["second"] for r in windows) >= killed_s - 2
    assert int(row["requests"]) == sum(r["ok"] for r in windows if r["phase"] == "measure")
    # Nobody tells the workers; they notice, and end.
    assert all(worker.wait(30) in (0, 1) for worker in workers)


def test_a_late_worker_makes_its_run_doubtful_and_carries_the_next(
    start_service: StartService, tmp_path: Path
) -> None:
    service = start_service("--delay-ms", "60")
    master, _, add = distributed(tmp_path, service, 1, "--seconds", "4", *TWO_CELLS)
    wait_until_measuring(master)
    add()
    assert master.wait(90) == 3, master.text
    first = master.ledger()[0]["plan"][0]["cell"]
    assert "worker-joined" in codes(master)[first]
    assert set(codes(master)) == {first}
    rows = {row["cell"]: row for row in master.cells()}
    assert [row["workers"] for cell, row in rows.items() if cell != first] == ["2"]


def test_a_late_worker_with_other_pictures_is_sent_home(start_service: StartService, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    Image.new("RGB", (224, 224), (200, 0, 0)).save(pictures / "a.png")
    results = tmp_path / "results"
    results.mkdir()
    service = start_service("--delay-ms", "20")
    arguments = ("--seconds", "4", "--images", str(pictures), *TWO_CELLS)
    master, _, add = distributed(results, service, 1, *arguments)
    wait_until_measuring(master)
    Image.new("RGB", (224, 224), (0, 200, 0)).save(pictures / "a.png")
    late = add()
    assert late.wait(60) == 0
    assert master.wait(90) == 3, master.text
    assert "cannot take part and is dismissed: its pictures or texts are not the master's" in master.text
    ends = [r["status"] for r in master.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert ends == ["done", "done"]
