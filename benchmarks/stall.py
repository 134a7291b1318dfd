"""A server that stalls for 2 s every 20 s at 50 arrivals/s: an open loop shows it, a closed loop hides it.

python -m benchmarks.stall
"""

from __future__ import annotations

import math
import sys
from datetime import datetime

from benchmarks.bounds import Bounds
from benchmarks.drive import STEP7, Drive, drive, records
from swarm.study.run_phases import LEAD_S
from tests.fake_service import stall_left_s
from tests.locustfiles.console import Console
from users.endpoint import Endpoint

STALL_S, EVERY_S = 2.0, 20.0
RATE, MEASURE_S, DELAY_MS = 50, 60, 20
TOLERANCE_PCT = 2.0
AMOUNTS = ("--seconds", str(MEASURE_S), "--warm-up", "3", "--iterations", "1")
OPEN = ("--rates", str(RATE), "--max-in-flight", "200")


def main() -> int:
    """Measure both; the exit code says whether open-loop load shows the stall."""
    bounds = Bounds(f"p99 with a {STALL_S:g} s stall every {EVERY_S:g} s, {MEASURE_S} s measured")
    stalls = ("--delay-ms", str(DELAY_MS), "--stall-s", str(STALL_S), "--stall-every-s", str(EVERY_S))
    with drive() as made:
        service = made.service("service", *stalls)
        console = study(made, "open", service, *OPEN)
        row = console.cells()[0]
        found_ms, expected_ms = float(row["latency_p99_ms"]), scheduled_p99_ms(console, row)
        bounds.beside(f"from the schedule of {RATE} arrivals/s", expected_ms, "ms")
        bounds.beside("open-loop load, measured", found_ms, "ms")
        bounds.at_most("  off by", 100 * abs(found_ms / expected_ms - 1), TOLERANCE_PCT, "%")
        bounds.exactly("  arrivals dropped", sum(dropped(console)), 0)
        closed = study(made, "closed", service, "--cells", "*/b1/c1").cells()[0]
        bounds.beside("closed-loop load, one user, measured", float(closed["latency_p99_ms"]), "ms")
        bounds.beside("  requests a second meanwhile", float(closed["requests_per_s"]), "/s")
    return bounds.exit_code()


def study(made: Drive, name: str, service: Endpoint, *options: str) -> Console:
    """A study that has ended; failures would make the comparison void."""
    console = made.study(name, STEP7, service, *AMOUNTS, *options)
    console.wait(MEASURE_S + 90)
    assert console.cells()[0]["failures"] == "0", console.text
    return console


def scheduled_p99_ms(console: Console, row: dict[str, str]) -> float:
    """The 99th percentile (nearest rank) of what each arrival waits for: the stall's rest, then an answer."""
    (phase,) = [r for r in records(console) if r["kind"] == "phase" and r["phase"] == "measure"]
    began_s = datetime.fromisoformat(phase["utc"]).timestamp() + LEAD_S
    answers_s = (began_s + number / RATE + DELAY_MS / 1_000 for number in range(int(row["requests"])))
    waits_ms = sorted(1_000 * stall_left_s(at_s, STALL_S, EVERY_S) for at_s in answers_s)
    return waits_ms[math.ceil(0.99 * len(waits_ms)) - 1] + float(row["latency_p50_ms"])


def dropped(console: Console) -> list[int]:
    """Arrivals that each worker never sent."""
    return [r["dropped"] for r in records(console) if r["kind"] == "drained"]


if __name__ == "__main__":
    sys.exit(main())
