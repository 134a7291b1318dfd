"""Is the rate that is offered the rate that was asked for? 300 JPEG requests a second from one worker.

python -m benchmarks.rate
"""

from __future__ import annotations

import sys

from benchmarks.bounds import Bounds
from benchmarks.drive import STEP7, Drive, drive
from users.endpoint import Endpoint

RATE, MEASURE_S = 300, 20
OFF_PCT, DELAY_MS = 1.0, 5.0
AMOUNTS = ("--seconds", str(MEASURE_S), "--iterations", "1", "--processes", "1")


def main() -> int:
    """Offer, and say by the exit code whether it was kept."""
    bounds = Bounds(f"{RATE} JPEG requests a second, one worker, {MEASURE_S} s")
    with drive() as made:
        service = made.service("service", "--delay-ms", "10")
        for arrivals in ("constant", "poisson"):
            row = offered(made, service, arrivals)
            off_pct = 100 * abs(float(row["offered_per_s"]) / RATE - 1)
            bounds.beside(f"{arrivals}: offered a second", float(row["offered_per_s"]), "/s")
            if arrivals == "constant":
                bounds.at_most("  off by", off_pct, OFF_PCT, "%")
            else:
                bounds.beside("  off by (chance alone: 1.3 %)", off_pct, "%")
            bounds.at_most("  send delay p99", float(row["send_delay_p99_ms"]), DELAY_MS, "ms")
            bounds.exactly("  failures", int(row["failures"]), 0)
            bounds.beside("  processor of the worker", float(row["worker_cpu_pct"]), "% of a core")
    return bounds.exit_code()


def offered(made: Drive, service: Endpoint, arrivals: str) -> dict[str, str]:
    """The row of the one cell."""
    console = made.study(arrivals, STEP7, service, *AMOUNTS, "--rates", str(RATE), "--arrivals", arrivals)
    console.wait(MEASURE_S + 60)
    (row,) = console.cells()
    return row


if __name__ == "__main__":
    sys.exit(main())
