"""Whether a host can run client processes: its own facts, and its clock compared with ours."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import IO, Any

from swarm.errors import SwarmError
from swarm.hosts.host import SSH_FAILED, Host
from swarm.hosts.hosts_file import HostSpec

PATIENCE_S = 15.0
EXCHANGES = 10
PREPARE = "run inferswarm hosts prepare"
LARGEST_OFFSET_NS = 500_000_000
"""Phases begin at one moment on all hosts' clocks; a start more than a second away is ignored."""
LEAST_FILES = 1024


class HostError(SwarmError):
    """Says which host cannot be used, why, and the fix."""


@dataclass(frozen=True)
class HostFacts:
    """What a host said: see `facts.py`. Empty or None where it is not known.

    Its clock is ahead of ours by `clock_offset_ns`, give or take `clock_doubt_ns`.
    """

    hostname: str = ""
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    cores: int = 0
    load: float | None = None
    files_soft: int | None = None
    files_hard: int | None = None
    ports: list[int] = field(default_factory=list)
    system: str = ""
    tcp_congestion_control: str = ""
    clock_offset_ns: int = 0
    clock_doubt_ns: int = 0

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON, without those that are not known."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", {}, [])}


@dataclass(frozen=True)
class Problem:
    """One sentence; `fatal` where no study should run on the host as it is."""

    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return self.text if self.fatal else f"{self.text} (a warning)"


def problems(facts: HostFacts, own: HostFacts, workers: int | None = None) -> list[Problem]:
    """What is wrong with a host beside `own`, this machine, which `workers` are to run on."""
    return [
        *_versions(facts, own),
        *_commits(facts.commit, own.commit),
        *_clock(facts),
        *_room(facts, workers or 0),
    ]


def _versions(facts: HostFacts, own: HostFacts) -> Iterator[Problem]:
    theirs, ours = (".".join(version.split(".")[:2]) for version in (facts.python, own.python))
    if theirs != ours:
        yield Problem(
            f"its Python is {theirs}, ours is {ours}: name one with `python`, remove .venv there, {PREPARE}"
        )
    differing = [
        f"{name} {facts.packages.get(name, 'is missing')} (here {version})"
        for name, version in own.packages.items()
        if facts.packages.get(name) != version
    ]
    if differing:
        yield Problem(f"packages differ from those here: {', '.join(differing)}: {PREPARE}")


def _commits(theirs: str, ours: str) -> Iterator[Problem]:
    """Where either is not known there is nothing to say."""
    if not theirs or not ours:
        return
    if theirs.rstrip("+") != ours.rstrip("+"):
        yield Problem(
            f"its checkout is at {theirs}, ours is at {ours}: {PREPARE}, or bring both to one commit"
        )
    elif theirs != ours:
        where = "there" if theirs.endswith("+") else "here"
        yield Problem(f"the checkout {where} has uncommitted changes, so workers may differ", fatal=False)


def _clock(facts: HostFacts) -> Iterator[Problem]:
    """Only what is beyond doubt."""
    if abs(facts.clock_offset_ns) - facts.clock_doubt_ns <= LARGEST_OFFSET_NS:
        return
    way = "ahead of" if facts.clock_offset_ns > 0 else "behind"
    offset_s = abs(facts.clock_offset_ns) / 1e9
    yield Problem(f"its clock is {offset_s:.1f} s {way} ours: synchronise both to the same time server (NTP)")


def _room(facts: HostFacts, workers: int) -> Iterator[Problem]:
    if facts.files_soft is not None and facts.files_soft < LEAST_FILES:
        yield Problem(
            f"a process there may open only {facts.files_soft} files: raise `ulimit -n` to {LEAST_FILES}"
            f" or more"
        )
    if facts.cores and workers > facts.cores:
        yield Problem(
            f"{workers} workers share {facts.cores} cores, and each can use one: they may be the bottleneck",
            fatal=False,
        )


def check(host: Host, patience_s: float = PATIENCE_S) -> HostFacts:
    """What a host says of itself, within the patience. Raises HostError."""
    late = threading.Event()
    with tempfile.TemporaryFile() as errors, _start(host, errors) as process:
        timer = threading.Timer(patience_s, _end, (process, late))
        timer.start()
        try:
            told = _facts(process)
            offset_ns, doubt_ns = clock_of([_exchange(process) for _ in range(EXCHANGES)])
        except (OSError, ValueError):
            said = _why_silent(host.spec, process, errors)
            if late.is_set():
                said = f"does not answer within {patience_s:g} s: check whether it is overloaded"
            raise HostError(f"host {host.spec.name} {said}") from None
        finally:
            timer.cancel()
            process.kill()
    known = {fact.name: told[fact.name] for fact in fields(HostFacts) if fact.name in told}
    return HostFacts(**{**known, "clock_offset_ns": offset_ns, "clock_doubt_ns": doubt_ns})


def _start(host: Host, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """A process that answers each question with one line; neither waits in one of our buffers."""
    command = host.facts_command()
    pipe = subprocess.PIPE
    try:
        # A session of its own: ssh must not ask the terminal, nor hear its Ctrl-C.
        return subprocess.Popen(
            command, bufsize=0, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True
        )
    except OSError as error:
        raise HostError(
            f"host {host.spec.name} cannot be checked: {command[0]} does not start here ({error.strerror})"
        ) from None


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    """Kill it and what it started, so that nobody is left who could answer."""
    late.set()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _ask(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """The line that answers, empty where there is none. Raises OSError."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question)
    return process.stdout.readline()


def _facts(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The host's facts; a shell there may greet us before they come. Raises ValueError where none do."""
    assert process.stdout is not None
    line = _ask(process, b"facts\n")
    while line:
        with suppress(ValueError):
            if isinstance(told := json.loads(line), dict):
                return told
        line = process.stdout.readline()
    raise ValueError


def _exchange(process: subprocess.Popen[bytes]) -> tuple[int, int, int]:
    """Wall clocks in ns: ours before, the host's, ours after. Raises ValueError where it tells no time."""
    return time.time_ns(), int(_ask(process, b"time\n")), time.time_ns()


def _why_silent(spec: HostSpec, process: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    """By what it said last, once it has ended."""
    code = process.wait()
    errors.seek(0)
    said = last_line(errors.read())
    if spec.kind == "ssh" and code == SSH_FAILED:
        return unreachable(spec, said)
    return f"has no working inferswarm (`{said or f'exit code {code}'}`): {PREPARE}"


def unreachable(spec: HostSpec, said: str) -> str:
    """What is wrong with an ssh host where ssh itself fails, and says this."""
    fix = f"fix that until `ssh {spec.address}` logs in without a question"
    return f"cannot be reached: ssh says `{said}`: {fix}"


def last_line(said: bytes) -> str:
    """The last line that says anything."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def clock_of(exchanges: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """How far the other clock is ahead, and the doubt in it, both in ns, of (before, theirs, after).

    The exchange with the shortest round trip is the most precise: theirs was read during it.
    """
    before, theirs, after = min(exchanges, key=lambda exchange: exchange[2] - exchange[0])
    return theirs - (before + after) // 2, (after - before + 1) // 2


@dataclass(frozen=True)
class Checked:
    """A host that was asked: its facts, or None where it gave none; then `why` says why."""

    spec: HostSpec
    facts: HostFacts | None
    why: str = ""


def check_all(hosts: Sequence[Host], patience_s: float = PATIENCE_S) -> list[Checked]:
    """Ask all hosts at once."""

    def ask(host: Host) -> Checked:
        try:
            return Checked(host.spec, check(host, patience_s))
        except HostError as error:
            return Checked(host.spec, None, str(error))

    with ThreadPoolExecutor(max_workers=max(1, min(len(hosts), 32))) as pool:
        return list(pool.map(ask, hosts))
