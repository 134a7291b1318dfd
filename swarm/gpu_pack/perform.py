"""Run the steps of a pack in the time there is; what is done is kept, and the next call does the others."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm.gpu_pack import energy
from swarm.gpu_pack.steps import STEPS, LentHost, PackStep
from swarm.hosts.facts import commit
from swarm.hosts.host import ROOT

RESERVE_S = 20.0
"""Before the end of a call a running study is told to end, which then writes what it has."""
TOO_LONG_S = 15.0
"""How long it may take for that."""
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
"""Of a study's folder, in the order they are kept until there is no more room."""
DONE, FAILED, CUT, LEFT, SKIPPED = "done", "failed", "cut", "left", "skipped"
SETTLED = (DONE, SKIPPED)
INCONCLUSIVE = 3


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
    host = ask_doctor(options.small)
    if host is None:
        return 2
    wanted = [step for step in STEPS if not options.steps or step.name in options.steps]
    states = Marks(options.home / "steps", {"commit": commit(ROOT), "small": options.small})
    code = 130
    with suppress(KeyboardInterrupt):
        perform(wanted, host, places, states)
        code = verdict([states.of(step)["state"] for step in wanted])
    write_summary(places, states)
    return code


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """What gpu-pack/run hands on."""
    parser = argparse.ArgumentParser(prog="python -m swarm.gpu_pack.perform", description=__doc__)
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
            raise argparse.ArgumentTypeError(f"{one!r} is no step; they are {', '.join(known)}")
    return tuple(name for name in known if any(name.startswith(one) for one in given))


def ask_doctor(small: bool) -> LentHost | None:
    """What the host can run, which is printed; None where it cannot run any step."""
    command = [sys.executable, "-m", "server", "doctor", "--gpu", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode:
        return None
    told = json.loads(done.stdout)
    print("\n".join(told["lines"]), flush=True)
    return LentHost(told["lacks"], small)


class Marks:
    """What has become of each step, a file each; `of_run` is what must be the same for it to count."""

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
) -> None:
    """Run the steps that are not settled, those never tried before first, each if there is time for it."""
    unsettled = [step for step in steps if marks.of(step)["state"] not in SETTLED]
    for step in sorted(unsettled, key=lambda one: marks.of(one)["state"] != LEFT):
        command = step.options(host)
        if isinstance(command, str):
            marks.note(step, SKIPPED, 0.0, command)
            say(f"{step.name}: skipped, {command}")
        elif places.left_s(now_s()) < step.least_s:
            say(f"{step.name}: left for the next call, it needs {step.least_s:.0f} s")
        else:
            say(f"{step.name}: {step.what}...")
            run_step(step, command, places, marks, now_s)


def run_step(
    step: PackStep, command: Sequence[str], places: Places, marks: Marks, now_s: Callable[[], float]
) -> None:
    """Run one, and keep its results whatever becomes of it."""
    results = places.home / "results" / step.name
    # Of a run that failed or was cut, which this one takes the place of.
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    began_s = now_s()
    code: int | None = None
    try:
        log = places.home / f"{step.name}.log"
        code = run_for([*command, "--results-dir", str(results)], log, places.left_s(began_s))
    finally:
        state = state_of(code, results)
        said = pack_results(step.name, results, log, places.out)
        marks.note(step, state, now_s() - began_s, said)
        say(f"{step.name}: {state} after {now_s() - began_s:.0f} s. {said}")


def state_of(code: int | None, results: Path) -> str:
    """What has become of a step, by its exit code; without a report nothing is done."""
    if code is None:
        return CUT
    return DONE if code in (0, INCONCLUSIVE) and any(results.glob("*/report.html")) else FAILED


def run_for(command: Sequence[str], log: Path, seconds: float) -> int | None:
    """The exit code of a command, or None where it was not done after so many seconds and was told to end."""
    with log.open("wb") as output:
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
    """Have a study end as by Ctrl-C, and what is left of it after a while be killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TOO_LONG_S)
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
        for file in (folder / kept for kept in KEPT) if folder else ():
            if file.exists() and partial.stat().st_size + file.stat().st_size <= MOST_BYTES:
                packed.add(file, f"{name}/{file.name}")
    partial.replace(out / f"{name}.tar.gz")
    return first_finding(folder) or last_line(log)


def first_finding(folder: Path | None) -> str:
    """What a study's report says first; nothing where there is none."""
    with suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        return str(json.loads((folder / "study.json").read_text())["findings"][0]) if folder else ""
    return ""


def last_line(log: Path) -> str:
    """What a log ends with."""
    return (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1][:300]


def verdict(states: Sequence[str]) -> int:
    """The exit code for these states."""
    if FAILED in states:
        return 1
    return 0 if all(state in SETTLED for state in states) else 3


def write_summary(places: Places, marks: Marks) -> None:
    """The table of steps, and energy, clocks and memory, in `out`/summary.txt and on the terminal."""
    lines = ["", *table_of_steps(marks)]
    folders = (
        (step.name, folder) for step in STEPS for folder in (places.home / "results" / step.name).glob("*/")
    )
    found = [row for name, folder in folders for row in energy.rows(name, folder)]
    lines += ["", "e-energy: energy, clocks and memory, by cell", energy.table(found)]
    (places.out / "summary.txt").write_text("\n".join(lines) + "\n")
    print("\n".join([*lines[:-2], "", f"Results: {places.out}"]), flush=True)


def table_of_steps(marks: Marks) -> Iterator[str]:
    """A line for each step."""
    for step in STEPS:
        mark = marks.of(step)
        yield f"{step.name:13} {mark['state']:8} {mark['took_s']:6.1f} s  {mark['said']}".rstrip()


def say(text: str) -> None:
    """Tell a person, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
