"""Run the steps of a pack in the given time; what is done is kept, and the next call does the rest."""

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm.gpu_pack import energy
from swarm.gpu_pack.steps import RISKY, STEPS, LentHost, PackStep
from swarm.hosts.facts import commit
from swarm.hosts.host import ROOT

RESERVE_S = 20.0
"""This long before the end of a call a running study is stopped; it then writes what it has."""
TOO_LONG_S = 15.0
"""How long that may take."""
DOCTOR_S = 180.0
"""A GPU that has just woken up is slow to answer."""
MOST_BYTES = 15_000_000
KEPT = (
    "report.html",
    "summary.md",
    "cells.csv",
    "timeline.csv",
    "study.json",
    "ledger.jsonl",
    "results.parquet",
)
"""Of a study's folder, kept in this order until the size limit is reached."""
DONE, FAILED, CUT, LEFT, SKIPPED = "done", "failed", "cut", "left", "skipped"
SETTLED = (DONE, SKIPPED)
USAGE, INCONCLUSIVE = 2, 3
LOG_BYTES = 1_000_000
"""Bytes kept of the end of each server's log."""


@dataclass
class Places:
    """Where a pack lives, where results go, and when this call must have ended, in seconds of time.time()."""

    home: Path
    out: Path
    deadline_s: float

    def left_s(self, now_s: float) -> float:
        """Seconds that a step may still take."""
        return self.deadline_s - RESERVE_S - now_s


def main(argv: Sequence[str]) -> int:
    """Run what is left; 0 all done, 1 a step failed, 2 nothing can run, 3 steps are left, 130 on Ctrl-C."""
    options = parse(argv)
    places = Places(options.home, options.out, options.began + 60 * options.minutes)
    places.out.mkdir(parents=True, exist_ok=True)
    os.environ |= {"INFERSWARM_CACHE": str(options.home / "cache")}
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    wanted = [step for step in STEPS if not options.steps or step.name in options.steps]
    try:
        host = ask_doctor(options.small)
    except KeyboardInterrupt:
        return 130
    if host is None:
        return 2
    runs = sorted(name for name in host.lacks if host.runs(name))
    states = Marks(options.home / "steps", {"commit": commit(ROOT), "small": options.small, "runs": runs})
    code = 130
    with suppress(KeyboardInterrupt):
        perform(wanted, host, places, states, again=bool(options.steps))
        code = verdict([states.of(step)["state"] for step in wanted])
    write_summary(places, states)
    return code


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """What gpu-pack/run hands on."""
    parser = argparse.ArgumentParser(prog="gpu-pack/run", usage=argparse.SUPPRESS)
    for name, kind in (("home", Path), ("out", Path), ("minutes", float), ("began", float)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--steps", type=names, default=())
    parser.add_argument("--small", action="store_true")
    return parser.parse_args(argv)


def names(text: str) -> tuple[str, ...]:
    """Steps by their names, or by what these begin with."""
    given = [part.strip() for part in text.split(",") if part.strip()]
    known = [step.name for step in STEPS]
    for one in given:
        if not any(name.startswith(one) for name in known):
            raise argparse.ArgumentTypeError(f"{one!r} is not a step; the steps are {', '.join(known)}")
    return tuple(name for name in known if any(name.startswith(one) for one in given))


def ask_doctor(small: bool) -> LentHost | None:
    """What the host can run, which is printed; None where it cannot run any step."""
    command = [sys.executable, "-m", "server", "doctor", "--gpu", "--json"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=DOCTOR_S)
    except subprocess.TimeoutExpired:
        print(f"doctor --gpu has not answered within {DOCTOR_S:.0f} s: run it on its own.", file=sys.stderr)
        return None
    if done.returncode:
        return None
    told = json.loads(done.stdout)
    print("\n".join(told["lines"]), flush=True)
    return LentHost(told["lacks"], small)


class Marks:
    """The state of each step, in a file each; `of_run` is what must be the same for it to count."""

    def __init__(self, folder: Path, of_run: dict[str, Any]) -> None:
        self._folder, self._of_run = folder, of_run
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, step: PackStep) -> dict[str, Any]:
        """Its state, seconds, and what is to be said of it."""
        with suppress(OSError, ValueError):
            found = json.loads((self._folder / f"{step.name}.json").read_text())
            if found.items() >= self._of_run.items():
                return dict(found)
        return {"state": LEFT, "took_s": 0.0, "said": ""}

    def note(self, step: PackStep, state: str, took_s: float, said: str) -> None:
        """Keep it."""
        made = {**self._of_run, "state": state, "took_s": round(took_s, 1), "said": said}
        (self._folder / f"{step.name}.json").write_text(json.dumps(made))


def perform(
    steps: Sequence[PackStep],
    host: LentHost,
    places: Places,
    marks: Marks,
    now_s: Callable[[], float] = time.time,
    again: bool = False,
) -> None:
    """Run the steps that are not done, those never tried before first, each if there is time for it.

    `again`: those that are done, too. Where a step's servers do not start, it and those after it are run
    without the one that is likeliest not to.
    """
    undone = [step for step in steps if again or marks.of(step)["state"] != DONE]
    without = ""
    for step in sorted(undone, key=lambda one: marks.of(one)["state"] != LEFT):
        code = attempt(step, host, places, marks, now_s, without)
        if code == USAGE and host.runs(RISKY) and RISKY in " ".join(step.options(host)):
            without = f"Without {RISKY}, with which its servers did not start in {step.name}. "
            host = host.without(RISKY, without)
            attempt(step, host, places, marks, now_s, without)


def attempt(
    step: PackStep, host: LentHost, places: Places, marks: Marks, now_s: Callable[[], float], without: str
) -> int | None:
    """Run a step if it can run here, and there is time for it; its exit code, None where there is none."""
    command, needed_s = step.options(host), step.needed_s(host.small)
    if isinstance(command, str):
        marks.note(step, SKIPPED, 0.0, command)
        say(f"{step.name}: skipped, {command}")
    elif places.left_s(now_s()) < needed_s:
        say(f"{step.name}: left for the next call, it needs {needed_s:.0f} s")
    else:
        say(f"{step.name}: {step.what}...")
        return run_step(step, command, places, marks, now_s, without)
    return None


def run_step(
    step: PackStep,
    command: Sequence[str],
    places: Places,
    marks: Marks,
    now_s: Callable[[], float],
    without: str = "",
) -> int | None:
    """Run one, and keep its results however it ends; its exit code, None if it was cut short."""
    results = places.home / "results" / step.name
    # Of a run that failed or was cut, which this one takes the place of.
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    began_s = now_s()
    code: int | None = None
    log = places.home / f"{step.name}.log"
    try:
        code = run_for([*command, "--results-dir", str(results)], log, places.left_s(began_s))
    finally:
        state = state_of(code, results)
        said = without * (code not in (None, USAGE)) + pack_results(step.name, results, log, places.out)
        marks.note(step, state, now_s() - began_s, said)
        say(f"{step.name}: {state} after {now_s() - began_s:.0f} s. {said}")
    return code


def state_of(code: int | None, results: Path) -> str:
    """The state of a step, by its exit code; it is not done without a report."""
    if code is None:
        return CUT
    return DONE if code in (0, INCONCLUSIVE) and any(results.glob("*/report.html")) else FAILED


def run_for(command: Sequence[str], log: Path, seconds: float) -> int | None:
    """The exit code of a command, or None where it was not done after so many seconds and was told to end."""
    # Behind what it said the last time, which may be why it is run again.
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a study as by Ctrl-C, and kill what is left of it after a while."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(TOO_LONG_S)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def pack_results(name: str, results: Path, log: Path, out: Path) -> str:
    """A step's results as one file in `out`, and the first thing that they say."""
    folder = next((one.parent for one in sorted(results.glob("*/study.json"))), None)
    folder = folder or next(iter(sorted(results.glob("*/"))), None)
    partial = out / f".{name}.partial"
    with tarfile.open(partial, "w:gz") as packed:
        packed.add(log, f"{name}/{log.name}")
        for of_server in sorted((folder / "logs").glob("**/*.log")) if folder else ():
            add_end(packed, of_server, f"{name}/logs/{of_server.name}")
        for file in (folder / kept for kept in KEPT) if folder else ():
            if file.exists() and partial.stat().st_size + file.stat().st_size <= MOST_BYTES:
                packed.add(file, f"{name}/{file.name}")
    partial.replace(out / f"{name}.tar.gz")
    return first_finding(folder) or last_line(log)


def add_end(packed: tarfile.TarFile, log: Path, name: str) -> None:
    """Add the last LOG_BYTES of a log."""
    end_of = log.read_bytes()[-LOG_BYTES:]
    about = tarfile.TarInfo(name)
    about.size = len(end_of)
    packed.addfile(about, io.BytesIO(end_of))


def first_finding(folder: Path | None) -> str:
    """What a study's report says first; nothing where there is none."""
    with suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        return str(json.loads((folder / "study.json").read_text())["findings"][0]) if folder else ""
    return ""


def last_line(log: Path) -> str:
    """What a log ends with."""
    return (log.read_text(errors="replace").strip().splitlines() or ["no output"])[-1][:300]


def verdict(states: Sequence[str]) -> int:
    """The exit code for these states."""
    if FAILED in states:
        return 1
    return 0 if all(state in SETTLED for state in states) else 3


def write_summary(places: Places, marks: Marks) -> None:
    """The table of steps, which is printed too, and energy, clocks and memory, in `out`/summary.txt."""
    lines = table_of_steps(marks)
    folders = (
        (step.name, folder)
        for step in STEPS
        if marks.of(step)["state"] in (DONE, FAILED, CUT)
        for folder in (places.home / "results" / step.name).glob("*/")
    )
    found = [row for name, folder in folders for row in energy.rows(name, folder)]
    of_energy = ["", "e: energy, clocks and memory, by cell", energy.table(found)]
    (places.out / "summary.txt").write_text("\n".join([*lines, *of_energy]) + "\n")
    print("\n".join(["", *lines, "", f"Results: {places.out}"]), flush=True)


def table_of_steps(marks: Marks) -> list[str]:
    """A line for each step."""
    found = [(step.name, marks.of(step)) for step in STEPS]
    return [
        f"{name:13} {mark['state']:8} {mark['took_s']:6.1f} s  {mark['said']}".rstrip()
        for name, mark in found
    ]


def say(text: str) -> None:
    """Tell a person, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
