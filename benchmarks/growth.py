"""How does cost grow with users (1 to 1,000), workers (1 to 16) and runs (1 to 100)? Against null servers.

python -m benchmarks.growth [users] [rate] [workers] [cells]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.bounds import Bounds
from benchmarks.drive import LOCUST
from benchmarks.scaling.grown import Grown, Tag, Watcher, grown
from benchmarks.studies.growth import LEVELS
from tests.locustfiles.console import ROOT, Console
from tests.processes import free_port, is_listening, wait_until

STUDY = "benchmarks/studies/growth.py"
ENDPOINTS = ("pytorch-http", "emulated-http", "emulated-grpc")
WORKERS, RATE, RUNS, EDGE = (1, 2, 4, 8, 16), 200, 100, 10
LAG_MS, OVERHEAD_S = 50.0, 3.0
MOST_S = 600
"""Longer than any of the studies takes."""
Study = Callable[..., dict[Tag, Grown]]


def main(argv: Sequence[str]) -> int:
    """Measure what is asked for, all by default, and say by the exit code whether the bounds hold."""
    parts = {"users": users, "rate": rate, "workers": workers, "cells": cells}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"what to measure: {', '.join(parts)} (default: all)")
    asked = parser.parse_args(argv).part
    if unknown := [name for name in asked if name not in parts]:
        parser.error(f"{unknown[0]}: no such part; give some of {', '.join(parts)}")
    bounds = Bounds("How the generator's cost grows; one host, null servers on the same cores")
    with tempfile.TemporaryDirectory() as folder, null_servers(Path(folder)) as study:
        for name in asked or parts:
            parts[name](bounds, study)
    return bounds.exit_code()


def users(bounds: Bounds, study: Study) -> None:
    """Closed-loop load: each user waits for its answer."""
    for endpoint, level in product(ENDPOINTS, LEVELS):
        name = f"{endpoint}, {level} users: requests"
        own = ("--cells", f"*/c{level}", "--seconds", "4", "--warm-up", "2")
        for run in runs_of(bounds, name, study("--endpoints", endpoint, "--processes", "1", *own)):
            bounds.beside(name, run.per_s, "/s")
            show(bounds, run)


def rate(bounds: Bounds, study: Study) -> None:
    """The same rate, carried by more and more users; the bounds are for 1,000 of them."""
    for endpoint, level in product(ENDPOINTS, LEVELS):
        name = f"{endpoint} at {RATE}/s, {level} users: requests"
        own = ("--rates", str(RATE), "--max-in-flight", str(level), "--seconds", "10", "--warm-up", "3")
        for run in runs_of(bounds, name, study("--endpoints", endpoint, "--processes", "1", *own)):
            bounds.beside(name, run.per_s, "/s")
            show(bounds, run, judged=level == max(LEVELS))


def runs_of(bounds: Bounds, name: str, runs: Mapping[Tag, Grown]) -> list[Grown]:
    """A study's runs; one that has none breaks its bounds, whatever they are."""
    if not runs:
        bounds.unread(name)
    return list(runs.values())


def show(bounds: Bounds, run: Grown, judged: bool = False) -> None:
    """One run of one worker; one that measured nothing breaks its bounds, whatever they are."""
    if not run.requests:
        bounds.unread("  any request of the measure phase")
        return
    bounds.beside("  processor a request", run.cpu_us, "µs")
    bounds.at_most("  loop lag p99", run.lag_p99_ms, LAG_MS if judged else None, "ms")
    bounds.beside("    its loop waited for a processor", run.waited_pct, "% of the time")
    bounds.beside("  send delay p99", run.send_delay_p99_ms, "ms")
    lost = run.failures + run.dropped + run.abandoned + run.unsent
    bounds.exactly("  failed, dropped, abandoned, never sent", lost, 0 if judged else None)
    bounds.beside("  memory of the worker", run.worker_bytes and run.worker_bytes / 1e6, "MB")
    bounds.beside("  its threads", run.threads)


def workers(bounds: Bounds, study: Study) -> None:
    """64 users of the JPEG service on more and more workers, all on the cores of this host."""
    own = ("--study", "full", "--cells", "*/c64", "--endpoints", ENDPOINTS[0], "--warm-up", "3")
    for count in WORKERS:
        name = f"{count} workers: requests"
        for run in runs_of(bounds, name, study("--processes", str(count), *own)):
            bounds.beside(name, run.per_s, "/s")
            bounds.beside("  processor a request, all workers", run.cpu_us, "µs")
            master_pct = run.master_cores and run.master_cores * 100
            bounds.beside("  processor of the master", master_pct, "% of a core")
            bounds.beside("  loop lag p99", run.lag_p99_ms, "ms")
            bounds.beside("  failed", run.failures)


def cells(bounds: Bounds, study: Study) -> None:
    """Many short runs one after the other: what each costs besides its load, at first and at last."""
    few = ("--seconds", "0.3", "--warm-up", "0.3", "--repeats", str(RUNS))
    options = ("--study", "full", "--endpoints", ENDPOINTS[0], *few)
    runs = runs_of(bounds, "any run of a study of 200", study("--processes", "1", *options))
    edges = ((f"runs 1 to {EDGE}", runs[:EDGE]), (f"runs to {len(runs)}", runs[-EDGE:]))
    for name, some in edges if runs else ():
        bounds.at_most(f"{name}: beside the load, median", median(map(overhead_s, some)), OVERHEAD_S, "s")
        bounds.beside("  ledger a run", median(run.ledger_bytes for run in some) / 1e3, "kB")
        held = [run.master_bytes for run in some if run.master_bytes]
        bounds.beside("  memory of the master", max(held) / 1e6 if held else None, "MB")


def overhead_s(run: Grown) -> float:
    """From a run's start to its end, less the time in which it sends."""
    return (run.ended_s - run.began_s) - (run.drain_s - run.warm_up_s)


@contextmanager
def null_servers(folder: Path) -> Iterator[Study]:
    """A function that runs a study against null servers with some options, and gives its runs."""
    ports = {kind: free_port() for kind in ("http", "grpc")}
    consoles = [
        Console((sys.executable, "-m", f"benchmarks.generating.null_{kind}", str(port)), folder, kind)
        for kind, port in ports.items()
    ]
    http, grpc = (f"127.0.0.1:{port}" for port in ports.values())
    urls = ("--pytorch-url", http, "--emulated-http-url", http, "--emulated-grpc-url", grpc)

    def study(*options: str) -> dict[Tag, Grown]:
        return measured(folder, (*urls, *options))

    try:
        for port in ports.values():
            wait_until(lambda port=port: is_listening(port), 20)  # type: ignore[misc]
        yield study
    finally:
        for console in consoles:
            console.end()


def measured(folder: Path, options: Sequence[str]) -> dict[Tag, Grown]:
    """The runs of one study."""
    own, port = Path(tempfile.mkdtemp(dir=folder)), str(free_port())
    # Of its own: workers of another study on this host would come to Locust's default port.
    link = ("--master-bind-port", port, "--master-port", port)
    command = (LOCUST, "-f", str(ROOT / STUDY), "--headless", *link, "--results-dir", str(own), *options)
    console = Console(command, own)
    watcher = Watcher(console.process.pid)
    try:
        console.wait(MOST_S)
    finally:
        looks = watcher.end()
        console.end()
    return grown(console.result(), looks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
