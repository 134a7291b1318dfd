"""What becomes of requests in flight when a run is stopped: 2 s requests, 4 users, 2 workers, stopped at 7 s.

python -m benchmarks.tail
"""

from __future__ import annotations

import re
import signal
import sys
import time
from typing import Any

from benchmarks.bounds import Bounds
from benchmarks.drive import LOCUST, Drive, drive, records, served
from tests.locustfiles.console import Console
from tests.processes import wait_until

STOP_AFTER_S = 7.0
WORKERS = ("--processes", "2")


def main() -> int:
    """Stop both in the middle, and count."""
    bounds = Bounds(
        "Finished requests that reach the report after a stop at 7 s, 2 s each, 4 users, 2 workers"
    )
    with drive() as made:
        finished, reported = stopped_study(made)
        bounds.exactly("this suite: in cells.csv, of those finished", reported, finished)
        finished, reported = stopped_stock(made)
        bounds.beside("Locust as it comes: in its report", reported)
        bounds.beside("  of those that its users finished", finished)
    return bounds.exit_code()


def stopped_study(made: Drive) -> tuple[int, int]:
    """Requests of the measure phase that the service finished, and those in cells.csv."""
    service = made.service("service", "--delay-ms", "2000")
    console = made.study("study", "benchmarks/studies/four_users.py", service, *WORKERS)
    wait_until(lambda: bool(measuring(console)), 60, lambda: console.text)
    time.sleep(STOP_AFTER_S)
    console.signal(signal.SIGINT)
    console.wait(30)
    (before,) = [r["counters"]["requests"] for r in measuring(console) if r["kind"] == "server"]
    (row,) = console.cells()
    return served(service) - before, int(row["requests"])


def measuring(console: Console) -> list[dict[str, Any]]:
    """The ledger of its only run, once that has come to the measure phase."""
    try:
        found = records(console)
    except (OSError, ValueError):  # its folder or its ledger is not there yet
        return []
    begun = any(r["kind"] == "phase" and r["phase"] == "measure" for r in found)
    return [r for r in found if r.get("when") != "after"] if begun else []


def stopped_stock(made: Drive) -> tuple[int, int]:
    """Requests that the service finished, and those in Locust's last table."""
    service = made.service("stock-service", "--delay-ms", "2000")
    users = ("-u", "4", "-r", "4", "-t", f"{STOP_AFTER_S:g}s", "--stop-timeout", "10", "--only-summary")
    file = ("-f", "benchmarks/studies/stock.py", "--host", f"http://{service.address}")
    console = made.start("stock", LOCUST, *file, "--headless", *users, *WORKERS)
    console.wait(60)
    found = re.search(r"Aggregated\s+(\d+)", console.text)
    assert found, console.text
    wait_until(lambda: not console.left_behind(), 70)
    return served(service), int(found[1])


if __name__ == "__main__":
    sys.exit(main())
