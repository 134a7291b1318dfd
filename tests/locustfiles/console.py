"""Run locust as a person does, in a process of its own, and look at what it leaves."""

from __future__ import annotations

import atexit
import csv
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from swarm.launcher.orphans import new_folder, remove_folders
from tests.processes import free_port, wait_until
from users.inputs.images import load_images

ROOT = Path(__file__).parent.parent.parent
LOCUST = [str(Path(sys.executable).with_name("locust")), "-f", "locustfiles/step7.py"]
SHORT = ("--iterations", "3", "--seconds", "0.3", "--warm-up", "0.3")
"""A warm-up cut so short is `unsteady`, which is a caveat and no more."""
ONCE = ("--repeats", "1")
"""Each cell once: a quick study repeats it, which most tests need not wait for."""
ENDPOINTS = ("pytorch-http", "onnx-http", "onnx-grpc", "openvino-http", "openvino-grpc")
CELLS = {"pytorch-http/b1/c1", "pytorch-http/b8/c1", "pytorch-http/b1/c8"}
"""The cells of a quick study of the PyTorch service alone."""


OPENED: list[Console] = []
"""All of this process, in order."""


class Console:
    """A command with its output in a file; `folder` is where its results go, `environ` what it is told."""

    def __init__(self, arguments: Sequence[str], folder: Path, name: str = "console", **environ: str) -> None:
        OPENED.append(self)
        self.folder = folder
        self.log = folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                arguments, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1", **environ},
            )  # fmt: skip

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def text(self) -> str:
        return self.log.read_text()

    def wait(self, seconds: float) -> int:
        """The exit code; past `seconds` the test fails with what was printed."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s; it printed:\n{self.text}") from None

    def wait_for(self, what: str, seconds: float) -> None:
        """Until it has printed `what`."""
        wait_until(lambda: what in self.text or self.process.poll() is not None, seconds, lambda: self.text)
        assert what in self.text, self.text

    def family(self) -> list[psutil.Process]:
        """It and all its descendants."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def left_behind(self) -> list[int]:
        """Processes of its session that still run, forked workers included."""
        return [process.pid for process in psutil.process_iter() if self._in_session(process)]

    def _in_session(self, process: psutil.Process) -> bool:
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            return alive and os.getsid(process.pid) == self.process.pid
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        """Kill what is left of it, by id."""
        if self.process.poll() is None:
            for process in self.family():
                process.kill()
            self.process.wait()

    def result(self) -> Path:
        """The one folder its study made."""
        (folder,) = [path for path in self.folder.iterdir() if path.is_dir() and path.name != "__pycache__"]
        return folder

    def cells(self) -> list[dict[str, str]]:
        """The rows of cells.csv."""
        with (self.result() / "cells.csv").open() as lines:
            return list(csv.DictReader(lines))

    def ledger(self) -> list[dict[str, Any]]:
        """The records of the ledger, none of them cut."""
        return [json.loads(line) for line in (self.result() / "ledger.jsonl").read_text().splitlines()]


@functools.cache
def few_pictures() -> tuple[str, str]:
    """The option for eight pictures, not 64: before its load a study asks for a golden embedding of each."""
    remove_folders()
    folder = str(new_folder("pictures"))
    atexit.register(shutil.rmtree, folder)
    for number, jpeg in enumerate(load_images("").jpegs[:8]):
        Path(folder, f"{number}.jpg").write_bytes(jpeg)
    return "--images", folder


def study(folder: Path, *arguments: str) -> Console:
    """A headless study, each cell once, whose forked workers come to a port of its own: others may run at the
    same time.
    """
    port = str(free_port())
    own = ("--master-port", port, "--master-bind-port", port) if "--processes" in arguments else ()
    options = ("--headless", *ONCE, "--results-dir", str(folder), *few_pictures(), *own, *arguments)
    return Console([*LOCUST, *options], folder)


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs any more; a zombie does not run."""
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)
