"""Servers started together, watched while they run and stopped together."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from server.embedded import leftovers
from server.embedded.child import ServerProcess, stop_all
from server.embedded.events import Events
from server.embedded.triton_log import fatal, reason_of
from server.errors import SetUpError


@dataclass(frozen=True)
class Plan:
    """How one server is started, where it will be found, and how it says that it is ready."""

    name: str
    command: list[str]
    environ: Mapping[str, str]
    endpoint: dict[str, Any]
    is_alive: Callable[[], bool]
    """Whether it answers at all; a tritonserver does so only once its models are loaded."""
    is_ready: Callable[[], bool]
    loading_ns: Callable[[str], int | None]
    """What loading its model took, given its log; None where that cannot be told."""
    shared_memory: str = ""
    """What the names of its shared memory begin with, if it has any."""


@dataclass
class Running:
    """One server that was started, and the monotonic time of that; what it took to answer, once it does."""

    plan: Plan
    child: ServerProcess
    spawned_ns: int
    started_ns: int | None = None

    def is_ready(self) -> bool:
        """Whether it can be used; notes when it answers for the first time."""
        if self.started_ns is None and self.plan.is_alive():
            self.started_ns = time.monotonic_ns() - self.spawned_ns
        return self.started_ns is not None and self.plan.is_ready()

    def endpoint(self) -> dict[str, Any]:
        """Where it is found, its process, and what its cold start took in nanoseconds."""
        loaded_ns = self.plan.loading_ns(self.child.log.read_text(errors="replace"))
        cold = {"started_ns": self.started_ns, "loaded_ns": loaded_ns}
        return {**self.plan.endpoint, "pid": self.child.pid, **cold}


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # From here on a second Ctrl-C must not leave half of them behind.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        stop_all(self._children)
        for server in self._running.values():
            self._clean(server.plan)

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
        spawned_ns = time.monotonic_ns()
        child = self._spawn(plan.name, plan.command, plan.environ)
        self._running[plan.name] = Running(plan, child, spawned_ns)

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
                    took_s = (time.monotonic_ns() - server.spawned_ns) / 1e9
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
                code = child.exit_code()
                if code is not None:
                    child.bury()
                    self._clean(server.plan)
                    del self._running[name]
                    self._events.died(name, code, str(child.log), child.log_tail())
            self._pause()

    def _spawn(self, name: str, command: list[str], environ: Mapping[str, str]) -> ServerProcess:
        child = ServerProcess(name, command, environ, self.log_dir)
        self._children.append(child)
        return child

    def _close_to_others(self) -> None:
        for server in self._running.values():
            if server.plan.shared_memory:
                leftovers.close_to_others(server.plan.shared_memory)

    def _clean(self, plan: Plan) -> None:
        if plan.shared_memory:
            leftovers.remove_shared_memory(plan.shared_memory)

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
