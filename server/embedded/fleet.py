"""Servers as processes, each with a log, never outliving this one; started, watched and stopped together."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from server.embedded import guard, leftovers
from server.embedded.events import Events
from server.embedded.guard import STOP_S
from server.errors import SetUpError
from server.net import get
from server.spec import ROOT

TAIL_LINES = 15
# A tritonserver's log lines begin with their kind and time: `I1121 16:58:01.344705 16135 file.cc:472] "..."`.
STAMP, CLOCK = r"^[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{6}) [^\n]*", "%Y%m%d %H:%M:%S.%f"
# A tritonserver says it of each model, and ends with no more than that some did not load. A Python error is
# followed by where it was raised, after line breaks that are written as `\n`.
FAILED = re.compile(
    r"\"failed to load '([^']+)' version \d+: (?:Internal: )?(?:RuntimeError: )?(.+?)(?:\\n|\"$)",
    re.MULTILINE,
)
# What a model of PyTorch's says of itself, and of what torch.compile compiled (triton_repo/torch).
COMPUTES = re.compile(r"\"computes on (\S+) in (\S+), weights ([0-9a-f]+)\"")
COMPILED = re.compile(r"\"compiled for (\d+) images: ([\d.]+) ms, then ([\d.]+) ms\"")
# Errors that a server does not recover from: from the shell that starts a model's process, the loader, or
# Python.
FATAL = re.compile(
    r"^(bash: (?!warning: ).+|.*error while loading shared libraries: .+|Fatal Python error: .+)$",
    re.MULTILINE,
)


class ServerProcess:
    """One process and the group it leads, which ends when we do, even if we are killed."""

    def __init__(self, name: str, command: list[str], environ: Mapping[str, str], log_dir: Path) -> None:
        self.name = name
        self.log = log_dir / f"{name}.log"
        self.spawned_ns = time.monotonic_ns()
        log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.log, "wb", opener=_for_us_alone) as log:
            # A group of its own, so that Ctrl-C reaches us alone and its helpers can be stopped with it.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                cwd=ROOT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._buried = False

    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number where a signal ended it."""
        return self._process.poll()

    def said(self) -> str:
        """Its output so far, without characters that a terminal obeys."""
        text = self.log.read_text(errors="replace")
        return "".join(char if char.isprintable() or char == "\n" else " " for char in text)

    def log_tail(self) -> str:
        """The last lines of its output."""
        # Without the tables in which tritonserver lists its options.
        lines = [line for line in self.said().splitlines() if line[:1] not in "|+"]
        return "\n".join(lines[-TAIL_LINES:])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its whole group, if anything of it is left; none after its burial."""
        # Until we close its stdin the guard keeps the group; after that its number may be another's.
        if self._buried:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def bury(self) -> None:
        """End what is left of its group once it has ended itself."""
        self.signal(signal.SIGKILL)
        self._buried = True
        if self._process.stdin:
            self._process.stdin.close()

    def wait(self, seconds: float) -> bool:
        """Whether it ends within `seconds`."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True


def _for_us_alone(path: str, flags: int) -> int:
    """A file that nobody else reads, and that is no link to another."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def stop_all(children: Iterable[ServerProcess]) -> None:
    """Ask all to stop at once, and after 4 s stop what is left, their helpers included."""
    children = list(children)
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    for child in children:
        child.wait(deadline - time.monotonic())
        child.bury()
    for child in children:
        child.wait(1.0)


@dataclass(frozen=True)
class Plan:
    """How one server is started, its addresses, and how it reports that it is ready."""

    name: str
    command: list[str]
    environ: Mapping[str, str]
    endpoint: dict[str, Any]
    is_alive: Callable[[], bool]
    """Whether it answers at all; a tritonserver only answers once its models are loaded."""
    is_ready: Callable[[], bool]
    told: Callable[[str], Mapping[str, Any]]
    """Its description once it is ready, given its log; `loaded_ns` is the time to load its model."""
    shared_memory: str = ""
    """The prefix of its shared memory's names, if it has any."""


@dataclass
class Running:
    """One started server, and the time until it answered, once it does."""

    plan: Plan
    child: ServerProcess
    started_ns: int | None = None

    def is_ready(self) -> bool:
        """Whether it is ready; notes when it answers for the first time."""
        if self.started_ns is None and self.plan.is_alive():
            self.started_ns = time.monotonic_ns() - self.child.spawned_ns
        return self.started_ns is not None and self.plan.is_ready()

    def endpoint(self) -> dict[str, Any]:
        """Where it is found, its process, what its cold start took in nanoseconds, and what else it says."""
        told = self.plan.told(self.child.log.read_text(errors="replace"))
        return {**self.plan.endpoint, "pid": self.child.pid, "started_ns": self.started_ns, **told}


class Fleet:
    """The processes of one `up`. `pause` waits a moment; it raises StopRequested once nobody wants them."""

    def __init__(self, log_dir: Path, events: Events, pause: Callable[[], None]) -> None:
        self.log_dir = log_dir
        self._events = events
        self._pause = pause
        self._children: list[ServerProcess] = []
        self._running: dict[str, Running] = {}
        self.endpoints: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        # From here on a second Ctrl-C must not leave half of them behind.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        stop_all(self._children)
        for server in self._running.values():
            leftovers.remove_shared_memory(server.plan.shared_memory)

    def run(self, name: str, command: list[str], environ: Mapping[str, str]) -> None:
        """Run a command to its end; SetUpError gives its last line where it fails."""
        child = self._spawn(name, command, environ)
        while (code := child.exit_code()) is None:
            self._check_starting()
            self._pause()
        child.bury()
        if code:
            raise SetUpError((child.log_tail().splitlines() or [f"{name} failed with exit code {code}"])[-1])

    def start(self, plan: Plan) -> None:
        """Start a server without waiting for it."""
        self._events.progress(f"starting {plan.name}...")
        self._running[plan.name] = Running(plan, self._spawn(plan.name, plan.command, plan.environ))

    def wait_until_ready(self, timeout_s: float) -> None:
        """Return when every server answers; SetUpError where one dies or is not ready in time."""
        waiting = set(self._running)
        deadline = time.monotonic() + timeout_s
        while waiting:
            self._check_starting()
            self._close_to_others()
            for name in sorted(waiting):
                server = self._running[name]
                if server.is_ready():
                    waiting.remove(name)
                    self.endpoints[name] = server.endpoint()
                    took_s = (time.monotonic_ns() - server.child.spawned_ns) / 1e9
                    self._events.progress(f"{name} is ready after {took_s:.1f} s")
            if waiting and time.monotonic() > deadline:
                raise SetUpError(
                    f"{' and '.join(sorted(waiting))} not ready after {timeout_s:.0f} s: see the logs in "
                    f"{self.log_dir}, or wait longer with --start-timeout-s."
                )
            self._pause()

    def watch(self) -> None:
        """Report each server that dies; return when none is left."""
        while self._running:
            self._close_to_others()
            for name, server in list(self._running.items()):
                child = server.child
                if (code := child.exit_code()) is not None:
                    child.bury()
                    leftovers.remove_shared_memory(server.plan.shared_memory)
                    del self._running[name]
                    self._events.died(name, code, str(child.log), child.log_tail())
            self._pause()

    def _spawn(self, name: str, command: list[str], environ: Mapping[str, str]) -> ServerProcess:
        child = ServerProcess(name, command, environ, self.log_dir)
        self._children.append(child)
        return child

    def _close_to_others(self) -> None:
        for server in self._running.values():
            leftovers.close_to_others(server.plan.shared_memory)

    def _check_starting(self) -> None:
        for name, server in self._running.items():
            child = server.child
            ended, log = child.exit_code() is not None, child.said()
            if ended:
                tail = child.log_tail()
                raise SetUpError(f"{name} ended while starting; {child.log} {reason_of(log, tail)}", tail)
            # A tritonserver whose model has no process goes on waiting for it.
            if line := fatal(log):
                raise SetUpError(f"{name} cannot start; {child.log} says: {line}", child.log_tail())


def triton_loading_ns(log: str, model: str) -> int | None:
    """Nanoseconds from `loading` to `successfully loaded` in a tritonserver's log; None without both."""
    name = re.escape(model)
    began = re.search(rf'{STAMP}"loading: {name}:1"', log, re.MULTILINE)
    ended = re.search(rf"{STAMP}\"successfully loaded '{name}'\"", log, re.MULTILINE)
    if not began or not ended:
        return None
    # The log tells no year: any that has a 29 February will do, and a load over New Year's Eve is not told.
    first, last = (datetime.strptime(f"2000{stamp[1]}", CLOCK) for stamp in (began, ended))
    return (last - first) // timedelta(microseconds=1) * 1000 if last >= first else None


def triton_told(log: str, model: str) -> dict[str, Any]:
    """What a tritonserver's log says of its model: its load, and of PyTorch's what it is and was compiled."""
    compiled = [
        {"batch": int(images), "first_ns": round(float(first) * 1e6), "second_ns": round(float(then) * 1e6)}
        for images, first, then in COMPILED.findall(log)
    ]
    told: dict[str, Any] = {"loaded_ns": triton_loading_ns(log, model)}
    if of := COMPUTES.search(log):
        told |= {"provider": f"PyTorch on {of[1]}", "precision": of[2], "weights_sha256": of[3]}
    return told | ({"compiled": compiled} if compiled else {})


def service_told(address: str) -> dict[str, Any]:
    """What the PyTorch service says of its load, and of what it computes on and in."""
    reply = get(address, "/readyz")
    try:
        told = json.loads(reply[1]) if reply else {}
        loaded = {"loaded_ns": round(told["load_s"] * 1e9)}
        about = {name: told[name] for name in ("precision", "weights_sha256")}
        return {**loaded, "provider": f"PyTorch on {told['device']}", **about}
    except (ValueError, KeyError, TypeError):
        return {"loaded_ns": None}


def fatal(log: str) -> str:
    """The line of a log that says that its server will never be ready; nothing where none does."""
    found = FATAL.search(log)
    return found[1] if found else ""


def reason_of(log: str, tail: str) -> str:
    """What its log says of a model that could not be loaded, else what the log ends with."""
    if failed := FAILED.search(log):
        return f"says: {failed[1]} could not be loaded: {failed[2]}"
    return f"ends with: {(tail.splitlines() or ['nothing'])[-1]}"
