"""The embedded servers, a process of their own, never imported; the operator profile of their ONNX engine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gevent
from gevent.event import AsyncResult

from swarm.errors import UsageError
from swarm.launcher.orphans import new_folder, remove_folders
from swarm.options.model import Options
from swarm.plan.matrix import Size, StudyDefinition
from swarm.redaction import copy_escaped
from swarm.targets.endpoints import servers_for
from users.backends.registry import backends
from users.endpoint import Endpoint
from users.redact import CONTROL
from users.tls import control_secret

STOP_S = 8.0
TRACING = (
    "; some tritonservers crash while tracing many users' requests: try fewer users, or leave --trace out"
)
OPERATORS = "operators"
CUDA = "CUDAExecutionProvider"
PROFILE_S = 600.0
PROFILE_SHARE, LEAST_ITERATIONS = 3, 3
"""Iterations are divided by this: a batch of 32 takes seconds without a GPU."""


def arguments(options: Options, asked: Iterable[Endpoint], model_control: bool = False) -> list[str]:
    """Which servers to start for these endpoints, and how, as `up` takes it. Raises UsageError.

    `model_control`: cells set servers otherwise.
    """
    emulated = bool(options.emulate)
    servers, payloads = servers_for(asked, emulated)
    if not servers:
        can = ", ".join(f"{one.facts.stands_for}-*" for one in backends().values() if one.facts.emulated)
        raise UsageError(
            f"--endpoints: none of these can be emulated; choose from {can}, or give --emulate none"
            if emulated
            else "--endpoints: these need an emulated model; give --emulate, e.g. a100, or their URLs"
        )
    made = ["--pretrained", options.pretrained] if options.pretrained else []
    made += ["--emulate", options.emulate] if options.emulate else []
    made += ["--payloads", ",".join(payloads)] if payloads[1:] else []
    made += ["--precision", options.precision] if options.given("precision") else []
    made += ["--model-control"] if model_control else []
    # Triton traces in one way alone.
    joined = options.otlp_url and options.traceparent and not options.trace
    made += ["--spans-url", f"{options.otlp_url}/v1/traces"] if joined else []
    return [*made, "--only", ",".join(servers)]


class EmbeddedServers:
    """`inferswarm up` as a child: it lives until our end of its standard input closes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._process: subprocess.Popen[str] | None = None
        self._ready: AsyncResult = AsyncResult()
        self._logs: Path | None = None
        self._traces: Path | None = None
        self._deaths: set[str] = set()
        self._ended = ""

    def start(self, arguments: list[str], trace: bool = False, prefix: Sequence[str] = ()) -> dict[str, Any]:
        """Start them and wait for their `ready` event. Raises UsageError with the supervisor's sentence.

        `trace`: Triton writes what it does for each request to files that are removed with the logs, a
        kilobyte a request.
        `prefix` goes before the command: it runs them in a network namespace, whose every address they then
        listen on, as each link has one of its own.
        """
        remove_folders()
        command = [*prefix, sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes"]
        command += ["--host", "0.0.0.0"] if prefix else []
        command += arguments
        if trace:
            self._traces = new_folder("traces")
            command += ["--trace-dir", str(self._traces)]
        # A session of its own: Ctrl-C in the terminal must reach the study first, and the servers last.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, CONTROL: control_secret()},
            cwd=Path(__file__).parents[2],
        )
        gevent.spawn(self._listen, self._process)
        ready: dict[str, Any] = self._ready.get()
        return ready

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                self._hear(json.loads(line))
            except (ValueError, KeyError):
                self._say(f"servers: {line.rstrip()}")
        text = f"the embedded servers ended unexpectedly (exit code {process.wait()})"
        if not self._ready.ready():
            self._ready.set_exception(UsageError(text))
        elif self._ready.successful() and self._process is process:
            self._ended = text
            self._say(f"servers: {text}")

    def _hear(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "progress":
                self._say(f"servers: {event['text']}")
            case "ready":
                self._logs = Path(event.pop("logs"))
                self._ready.set(event)
            case "error":
                if event.get("log_tail"):
                    self._say(f"servers: the log ends:\n{event['log_tail']}")
                if not self._ready.ready():
                    self._ready.set_exception(UsageError(event["text"]))
            case "died":
                tail = event.get("log_tail", "")
                self._deaths.add(event["server"])
                self._say(
                    f"servers: {event['server']} died (exit {event.get('exit')}); its log ends:\n{tail}"
                )

    def fault(self, backend: str) -> str:
        """What is wrong with the server behind `backend`, or nothing."""
        if backend in self._deaths:
            hint = TRACING if self._traces else ""
            return f"the embedded {backend} server died; see the end of its log above{hint}"
        return self._ended

    def copy_logs(self, folder: Path) -> None:
        """The servers' logs so far, into `folder`."""
        if self._logs is not None:
            shutil.copytree(self._logs, folder, copy_function=copy_escaped, dirs_exist_ok=True)

    def stop(self) -> None:
        """Close its standard input, wait, and kill it if it does not end. Safe to call twice.

        Servers that never were ready leave their logs where their last words say.
        """
        try:
            self._end_process()
        finally:
            for folder in filter(None, (self._logs, self._traces)):
                shutil.rmtree(folder, ignore_errors=True)

    def _end_process(self) -> None:
        process = self._process
        if process is None:
            return
        self._process = None
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wants_profile(study: StudyDefinition, options: Options, ready: Mapping[str, Any]) -> bool:
    """Whether a study asks for the profile, and runs on the embedded engine that it would be of."""
    return study.operators and options.embedded and bool(profiled(ready))


def profiled(ready: Mapping[str, Any]) -> Mapping[str, Any]:
    """The embedded server whose file's operators are profiled; empty without one."""
    servers: Mapping[str, Any] = ready.get("endpoints", {})
    return next((servers[name] for name, one in backends().items() if one.profiled and name in servers), {})


def profile_argv(options: Options, size: Size, ready: Mapping[str, Any]) -> list[str]:
    """What profiles the file that the embedded server runs, where it runs it, at the study's own batches."""
    made = [sys.executable, "-m", "server", "profile", "--json"]
    made += ["--batches", ",".join(map(str, size.batches))]
    made += ["--iterations", str(max(LEAST_ITERATIONS, size.iterations // PROFILE_SHARE))]
    made += ["--providers", "cuda"] if profiled(ready).get("provider") == CUDA else []
    return made + (["--pretrained", options.pretrained] if options.pretrained else [])


def profile_operators(command: Sequence[str], patience_s: float = PROFILE_S) -> dict[str, Any]:
    """The ledger's record of it; of one that failed it has the `error`, a sentence without a full stop."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            # As the servers: Ctrl-C in the terminal is for the study, which ends this one itself.
            start_new_session=True,
            timeout=patience_s,
            cwd=Path(__file__).parents[2],
        )
    except subprocess.TimeoutExpired:
        return {"kind": OPERATORS, "error": f"it did not finish within {patience_s:g} s"}
    if code := done.returncode:
        last = (done.stderr.strip().splitlines() or ["without output"])[-1]
        return {"kind": OPERATORS, "error": f"inferswarm profile ended with {code}: {last.rstrip('.')}"}
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"kind": OPERATORS, "error": "inferswarm profile printed no JSON"}
    return {**{name: value for name, value in found.items() if name != "event"}, "kind": OPERATORS}
