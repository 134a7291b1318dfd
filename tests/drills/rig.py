"""What a drill acts through: its server, its study, its folders; all of it gone afterwards."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from tests.drills import processes
from tests.drills.places import Apart
from tests.drills.processes import GONE_S, HTTP, Failure, Target
from tests.drills.seen import in_ledger, measured, records
from tests.locustfiles.console import LOCUST, ONCE, ROOT
from tests.processes import eventually, free_port

USERS = 8
STEP7 = "locustfiles/step7.py"
STUDY = ("--warm-up", "0.5", "--seconds", "3", "--cells", "*/b1/c8", "--request-timeout", "20", *ONCE)
IMPATIENT = ("--request-timeout", "4")
"""Of a study whose fault keeps answers away; others' requests must outlast a machine that is busy."""
LOAD_S = 60.0
"""How long a study may take to its measure phase."""
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
        self.undo = ExitStack()
        self.target: Target | None = None
        self.apart: Apart | None = None
        self.least_ok = 0
        """Successes that were in the ledger when the fault came."""
        self.held: list[BinaryIO] = []
        """Workers' outputs that the study may remove: held open, they can be read all the same."""
        self._started: list[subprocess.Popen[bytes]] = []
        self.study: subprocess.Popen[bytes] | None = None
        self.before_load = BEFORE_LOAD

    def __enter__(self) -> Rig:
        self.results.mkdir()
        self.temporary.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        with self.undo:
            processes.end_all(self.mark)
            if self.target is not None:
                self.target.kill()
            for started in self._started:
                started.wait(GONE_S)

    def environ(self) -> dict[str, str]:
        """Of every process of the drill."""
        told = {processes.MARK: self.mark, "TMPDIR": str(self.temporary), "PYTHONUNBUFFERED": "1"}
        return {**os.environ, "COLUMNS": "200", **told, **self.environment}

    def serve(self, script: str = HTTP, *options: str, prefix: Sequence[str] = ()) -> Target:
        """Start a stand-in server."""
        place = ("--host", self.host, "--delay-ms", "200")
        self.target = Target(script, self.folder / "journal", self.port, self.environ(), (*place, *options))
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
        port = free_port()
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
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def left(self) -> Path | None:
        """The study's folder, once it is there."""
        return next(iter(self.results.glob("step7-*")), None)

    def under_load(self) -> None:
        """Until the measure phase has some answers."""
        self._await(self._measuring, "measure phase")
        if self.target is None:
            self._await(lambda: bool(self._workers()), "window of the measure phase")
            return
        least = self.server.good + MEASURED
        self._await(lambda: self.server.good >= least, "answers in the measure phase")

    def both_measure(self) -> None:
        """Until two workers have windows of the measure phase in the ledger."""
        self._await(lambda: len(self._workers()) > 1, "two workers that measure")

    def keep_what_is_there(self) -> None:
        """What is in the ledger now must be in it at the end: some of it is of the measure phase."""
        self._await(lambda: bool(self._workers()), "window of the measure phase")
        if folder := self.left():
            self.least_ok, _ = in_ledger(records(folder))

    def hold_logs(self) -> None:
        """Whatever workers write from now on is read in the end, even where the study removes it."""
        for place in self.temporary.rglob("worker-*.log"):
            with suppress(FileNotFoundError):
                self.held.append(self.undo.enter_context(place.open("rb")))

    def ended(self) -> bool:
        """Whether the study's process is over."""
        return self.study is None or self.study.poll() is not None

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        """Until it holds, or the study has ended, which the judge will see. Raises Failure after a minute."""
        if not eventually(lambda: self.ended() or holds(), LOAD_S):
            raise Failure(f"no {what} within {LOAD_S:g} s")

    def _workers(self) -> set[str]:
        folder = self.left()
        return measured(folder) if folder else set()

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

    def pause(self, seconds: float) -> None:
        """A fault lasts."""
        time.sleep(seconds)
