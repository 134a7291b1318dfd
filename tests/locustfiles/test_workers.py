"""A study over several workers: forked or by hand, killed, late, or with other pictures."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import CELLS, LOCUST, SHORT, Console, free_port, study, wait_until

pytestmark = pytest.mark.system

TWO_CELLS = ("--cells", "*/b1/*")


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


def wait_until_measuring(master: Console) -> None:
    """Into the measure phase of the first cell."""
    master.wait_for("results in", 40)
    wait_until(lambda: '"phase":"measure"' in (master.result() / "ledger.jsonl").read_text(), 30)


def codes(console: Console) -> dict[str, set[str]]:
    """The caveats of the ledger by cell."""
    found: dict[str, set[str]] = {}
    for record in console.ledger():
        if record["kind"] == "caveat":
            found.setdefault(record["cell"], set()).add(record["code"])
    return found


@pytest.mark.parametrize("by_hand", [False, True], ids=["processes", "by-hand"])
def test_two_workers_give_the_same_cells(
    start_service: StartService, consoles: list[Console], tmp_path: Path, by_hand: bool
) -> None:
    service, workers = start_service(), list[Console]()
    if by_hand:
        console, workers, _ = distributed(consoles, tmp_path, service, 2, *SHORT)
    else:
        console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{service}", *SHORT, "--processes", "2")
        consoles.append(console)
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == CELLS
    assert all(row["failures"] == "0" for row in rows.values())
    assert all(row["workers"] == "2" for row in rows.values())
    drained = [r for r in console.ledger() if r["kind"] == "drained" and r["cell"] == "pytorch-http/b1/c8"]
    assert [r["users"] for r in drained] == [4, 4]
    assert sum(r["finished"] for r in drained) == int(rows["pytorch-http/b1/c8"]["requests"])
    assert [worker.wait(20) for worker in workers] == [0] * len(workers)


def test_a_killed_worker_is_noticed_and_the_study_goes_on_without_it(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    master, workers, _ = distributed(
        consoles, tmp_path, start_service("--delay-ms", "20"), 2, "--seconds", "7", *TWO_CELLS
    )
    wait_until_measuring(master)
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
    wait_until_measuring(master)
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
    wait_until_measuring(master)
    Image.new("RGB", (224, 224), (0, 200, 0)).save(pictures / "a.png")
    late = add()
    assert late.wait(60) == 0
    assert master.wait(90) == 3, master.text
    assert "cannot take part and is sent home: its pictures are not the master's" in master.text
    ends = [r["status"] for r in master.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert ends == ["done", "done"]
