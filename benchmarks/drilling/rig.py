"""What a drill acts through: its server, its study, its folders; all of it gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.drilling import processes
from benchmarks.drilling.commanded import GOOD
from benchmarks.drilling.places import Apart
from benchmarks.drilling.processes import ROOT, free_port, marked, until
from benchmarks.drilling.seen import UNFINISHED, Seen, in_ledger, measured, reach, records, reported
from benchmarks.drilling.target import HTTP, Target

USERS = 8
STEP7 = "locustfiles/step7.py"
STUDY = ("--warm-up", "0.5", "--seconds", "3", "--cells", "*/b1/c8", "--request-timeout", "20")
IMPATIENT = ("--request-timeout", "4")
"""Of a study whose fault keeps answers away; others' requests must outlast a machine that is busy."""
LOCUST = (str(Path(sys.executable).with_name("locust")), "-f", STEP7)
LOAD_S, GONE_S = 60.0, 30.0
"""How long a study may take to its measure phase, and its processes after its end to be gone."""
MEASURED = 8
"""Answers of the measure phase before a fault is planted."""
BEFORE_LOAD = 4
"""Requests that a study sends before any load: two of the batch size, to compare first and second, and one
for each of two pictures."""


class Rig:
    """One drill's world. Use it as a context; `prefix` goes before the study's command, as `nsenter` does."""

    def __init__(self, folder: Path, pictures: Path) -> None:
        self.folder, self._pictures = folder, pictures
        self.mark = uuid.uuid4().hex
        self.results, self.temporary = folder / "results", folder / "tmp"
        self.log = folder / "terminal.log"
        self.host, self.port = "127.0.0.1", free_port()
        self.prefix: list[str] = []
        self.environment: dict[str, str] = {}
        self.notes: list[str] = []
        self.undo = ExitStack()
        self.target: Target | None = None
        self.apart: Apart | None = None
        self.least_ok = 0
        """Successes that were in the ledger when the fault came."""
        self._started: list[subprocess.Popen[bytes]] = []
        self.study: subprocess.Popen[bytes] | None = None
        self.before_load = BEFORE_LOAD

    def __enter__(self) -> Rig:
        self.results.mkdir()
        self.temporary.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        if self.target is not None:
            self.target.kill()
        processes.end_all(self.mark)
        for started in self._started:
            started.wait()
        self.undo.close()

    def environ(self) -> dict[str, str]:
        """Of every process of the drill."""
        told = {processes.MARK: self.mark, "TMPDIR": str(self.temporary), "PYTHONUNBUFFERED": "1"}
        return {**os.environ, "COLUMNS": "200", **told, **self.environment}

    def serve(self, module: str = HTTP, *options: str, prefix: Sequence[str] = ()) -> Target:
        """Start a stand-in server."""
        place = ("--host", self.host)
        self.target = Target(module, self.folder / "journal", self.port, self.environ(), (*place, *options))
        self.target.start(prefix)
        return self.target

    def run(self, *options: str, way: Sequence[str] = ()) -> None:
        """Start the study, as a user would from the console."""
        command = [*(way or (*LOCUST, "--headless")), *options]
        command += ["--results-dir", str(self.results), "--images", str(self._pictures)]
        self.study = self._start([*self.prefix, *command], self.log)

    def _start(self, command: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
        with output.open("w") as log:
            started = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True, env=self.environ(),
            )  # fmt: skip
        self._started.append(started)
        return started

    def ordinary(self, *options: str, way: Sequence[str] = ()) -> None:
        """The study of the stand-in service: eight users for some seconds; `options` come last and win."""
        self.run("--pytorch-url", f"http://{self.host}:{self.port}", *self.sizes(*options), way=way)

    def master_and_workers(self, *places: Sequence[str], seconds: float) -> None:
        """The same with a worker in each place, which is the prefix of its command."""
        port = free_port(self.host)
        bound = ("--master-bind-host", self.host, "--master-bind-port", str(port))
        master = (*LOCUST, "--headless", "--master", "--expect-workers", str(len(places)), *bound)
        self.ordinary("--seconds", f"{seconds:g}", *IMPATIENT, way=master)
        worker = (*LOCUST, "--worker", "--master-host", self.host, "--master-port", str(port))
        for number, place in enumerate(places):
            self._start([*place, *worker], self.folder / f"worker-{number}.log")

    def sizes(self, *options: str) -> tuple[str, ...]:
        """How much is measured; `options` come last and win."""
        return (*STUDY, *options)

    def over_grpc(self, *options: str) -> None:
        """The same of the stand-in for Triton."""
        self.run("--onnx-grpc-url", f"{self.host}:{self.port}", *STUDY, *options)

    @property
    def server(self) -> Target:
        """The stand-in that was started."""
        assert self.target is not None, "serve() comes first"
        return self.target

    @property
    def text(self) -> str:
        """What the study has printed."""
        return self.log.read_text(errors="replace")

    def left(self) -> Path | None:
        """The study's folder, once it is there."""
        return next(iter(self.results.glob("step7-*")), None)

    def under_load(self) -> None:
        """Until the measure phase has some answers, or the study has ended, which the judge will see."""
        if not until(lambda: self.ended() or self._measuring(), LOAD_S):
            raise Failure(f"no measure phase within {LOAD_S:g} s; the study printed:\n{self.text}")
        if self.target is None:
            until(lambda: self.ended() or self._window(), LOAD_S)
            return
        least = self.server.good + MEASURED
        until(lambda: self.ended() or self.server.good >= least, LOAD_S)

    def both_measure(self) -> None:
        """Until two workers have windows of the measure phase in the ledger."""

        def measuring() -> bool:
            folder = self.left()
            return folder is not None and len(measured(folder)) > 1

        if not until(lambda: self.ended() or measuring(), LOAD_S):
            raise Failure(f"no two workers measured within {LOAD_S:g} s; the study printed:\n{self.text}")

    def keep_what_is_there(self) -> None:
        """What is in the ledger now must be in it at the end: some of it is of the measure phase."""
        folder = self.left()
        assert folder is not None
        until(lambda: self.ended() or bool(measured(folder)), LOAD_S)
        self.least_ok, _ = in_ledger(records(folder))

    def ended(self) -> bool:
        """Whether the study's process is over."""
        return self.study is None or self.study.poll() is not None

    def _window(self) -> bool:
        folder = self.left()
        return folder is not None and bool(measured(folder))

    def _measuring(self) -> bool:
        folder = self.left()
        return folder is not None and any(r.get("phase") == "measure" for r in records(folder))

    def wait(self, seconds: float) -> int | None:
        """The study's exit code; None where it has not ended by then, and it is killed."""
        assert self.study is not None
        try:
            return self.study.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def seen(self, exit_code: int | None) -> Seen:
        """Look at all that is left."""
        noted = self.target.noted() if self.target else Counter[str]()
        if self.target is not None:
            self.target.kill()
        until(lambda: not marked(self.mark), GONE_S)
        folder = self.left()
        made = Seen(
            exit_code,
            self.text + self._logs(folder),
            answered=max(0, noted.pop(GOOD, 0) - self.before_load) if self.target else None,
            least_ok=self.least_ok,
            spoilt=noted,
            processes=tuple(marked(self.mark).values()),
            temporary=tuple(sorted(entry.name for entry in self.temporary.iterdir())),
            notes=tuple(self.notes),
        )
        return made if folder is None else self._with_results(made, folder)

    def _with_results(self, made: Seen, folder: Path) -> Seen:
        files = frozenset(entry.name for entry in folder.iterdir())
        code, said, copy = self._shown(folder)
        found = records(copy)
        ok, failures = in_ledger(found)
        caveats, limit = reported(copy)
        ended = bool(found) and found[-1]["kind"] == "footer"
        return replace(
            made, status=found[-1]["status"] if ended else UNFINISHED, ok=ok, failures=failures,
            caveats=caveats, limit=limit, seconds=reach(copy), shown=code, shown_text=said, files=files,
        )  # fmt: skip

    def _logs(self, folder: Path | None) -> str:
        return "".join(
            place.read_text(errors="replace") for place in (folder.rglob("logs/*.log") if folder else ())
        )

    def _shown(self, folder: Path) -> tuple[int, str, Path]:
        """The report made again from a copy of what was left."""
        copy = self.folder / "copy"
        shutil.copytree(folder, copy)
        done = subprocess.run(
            [sys.executable, "-m", "reports", "show", str(copy)],
            cwd=ROOT, capture_output=True, text=True, timeout=LOAD_S, env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr, copy

    def pause(self, seconds: float) -> None:
        """A fault lasts."""
        time.sleep(seconds)


class Failure(Exception):
    """A drill that could not be carried out."""
