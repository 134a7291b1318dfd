"""Processes pinned to a core: null servers, arms and peers, none of which outlives the benchmark."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from tests.processes import eventually, free_port, is_listening

ROOT = Path(__file__).parent.parent.parent
LISTENING_S = 20.0
UNTIL_STDIN_CLOSES = "--until-stdin-closes"


@dataclass(frozen=True)
class Done:
    """A process that has ended: what it printed, its exit code, its seconds by the wall and on processors."""

    text: str
    code: int
    wall_s: float
    cpu_s: float


class Hung(Exception):
    """A process that had to be killed."""


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Processes that are started in this block run on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(command: Sequence[str], core: int, limit_s: float, tree: Path = ROOT) -> Done:
    """Run to the end, in a checkout. Raises Hung where it takes longer than `limit_s`."""
    began, before_s = time.perf_counter(), _children_cpu_s()
    with tempfile.TemporaryFile("w+") as output:
        with pinned(core):
            process = subprocess.Popen(
                command, cwd=tree, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise Hung from error
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        wall_s, cpu_s = time.perf_counter() - began, _children_cpu_s() - before_s
        output.seek(0)
        return Done(output.read(), code, wall_s, cpu_s)


def _children_cpu_s() -> float:
    """User and system seconds of all our processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def server_options(what: str | None) -> int:
    """The port that a null server was asked for; on demand the process ends with the one that started it."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("port", type=int)
    parser.add_argument(UNTIL_STDIN_CLOSES, action="store_true", help="end when standard input does")
    options = parser.parse_args()
    if options.until_stdin_closes:
        Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    port: int = options.port
    return port


@contextmanager
def null_server(module: str, core: int) -> Iterator[int]:
    """The port of a null server of benchmarks.generating, once it listens."""
    port = free_port()
    with pinned(core):
        process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.generating.{module}", str(port), UNTIL_STDIN_CLOSES],
            cwd=ROOT, stdin=subprocess.PIPE,
        )  # fmt: skip
    try:
        eventually(lambda: process.poll() is not None or is_listening(port), LISTENING_S)
        if process.poll() is not None or not is_listening(port):
            raise SystemExit("a null server did not start; what it printed stands above")
        yield port
    finally:
        process.kill()
        process.communicate()
