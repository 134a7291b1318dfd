"""Whether a host is fit for client processes: what it says of itself, and its clock beside ours."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from typing import IO, Any

from swarm.errors import SwarmError
from swarm.hosts.host import Host
from swarm.hosts.hosts_file import HostSpec
from swarm.hosts.ssh import FAILED

__all__ = ["Checked", "HostError", "HostFacts", "Problem", "check", "check_all", "problems"]
PATIENCE_S = 15.0
EXCHANGES = 10
PREPARE = "run python -m swarm hosts prepare"
LARGEST_OFFSET_NS = 500_000_000
"""Phases begin at one moment by all hosts' clocks; a start more than a second away is not heeded at all."""
LEAST_FILES = 1024


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
    theirs, ours = _minor(facts.python), _minor(own.python)
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
        yield Problem(f"other packages than here: {', '.join(differing)}: {PREPARE}")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


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
        yield Problem(
            f"the checkout {where} has changes that are not committed, so workers may differ", fatal=False
        )


def _clock(facts: HostFacts) -> Iterator[Problem]:
    """Only what is beyond doubt."""
    if abs(facts.clock_offset_ns) - facts.clock_doubt_ns <= LARGEST_OFFSET_NS:
        return
    way = "ahead of" if facts.clock_offset_ns > 0 else "behind"
    offset_s = abs(facts.clock_offset_ns) / 1e9
    yield Problem(f"its clock is {offset_s:.1f} s {way} ours: let both follow the same time server (NTP)")


def _room(facts: HostFacts, workers: int) -> Iterator[Problem]:
    if facts.files_soft is not None and facts.files_soft < LEAST_FILES:
        yield Problem(
            f"a process there may open {facts.files_soft} files: raise `ulimit -n` to {LEAST_FILES} or more"
        )
    if facts.cores and workers > facts.cores:
        yield Problem(
            f"{workers} workers share {facts.cores} cores, and each can use one: they may be the limit",
            fatal=False,
        )


class HostError(SwarmError):
    """Says which host cannot be used, why, and the mend."""


class _Silence(Exception):
    """The host's answers ended, or none came in time."""


class _Talk:
    """Questions to a process that answers each with one line, all of them until a deadline."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        self._deadline = deadline
        self._heard = b""

    def facts(self) -> dict[str, Any]:
        """The host's facts; a shell there may greet us before they come."""
        self._ask(b"facts\n")
        while True:
            try:
                told = json.loads(self._line())
            except ValueError:
                continue
            if isinstance(told, dict):
                return told

    def exchange(self) -> tuple[int, int, int]:
        """Wall clocks in ns: ours before, the host's, ours after."""
        before_ns = time.time_ns()
        self._ask(b"time\n")
        theirs_ns = int(self._line())
        return before_ns, theirs_ns, time.time_ns()

    def _ask(self, question: bytes) -> None:
        try:
            os.write(self._in, question)
        except OSError:
            raise _Silence from None

    def _line(self) -> bytes:
        while b"\n" not in self._heard:
            left_s = max(0.0, self._deadline - time.monotonic())
            if not select.select([self._out], [], [], left_s)[0]:
                raise _Silence
            said = os.read(self._out, 65536)
            if not said:
                raise _Silence
            self._heard += said
        line, _, self._heard = self._heard.partition(b"\n")
        return line


def check(host: Host, patience_s: float = PATIENCE_S) -> HostFacts:
    """What a host says of itself, within the patience. Raises HostError, and UsageError for kind k8s."""
    deadline = time.monotonic() + patience_s
    with tempfile.TemporaryFile() as errors, _start(host, errors) as process:
        talk = _Talk(process, deadline)
        try:
            told = talk.facts()
            offset_ns, doubt_ns = clock_of([talk.exchange() for _ in range(EXCHANGES)])
        except (_Silence, ValueError):
            raise HostError(_why_silent(host.spec, process, deadline, errors, patience_s)) from None
        finally:
            process.kill()
    known = {name: told[name] for name in (f.name for f in fields(HostFacts)) if name in told}
    return HostFacts(**{**known, "clock_offset_ns": offset_ns, "clock_doubt_ns": doubt_ns})


def _start(host: Host, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    command = host.facts_command()
    try:
        # A session of its own: ssh must not ask the terminal, nor hear its Ctrl-C.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
    except OSError as error:
        raise HostError(
            f"host {host.spec.name} cannot be asked: {command[0]} does not start here ({error.strerror})"
        ) from None


def _why_silent(
    spec: HostSpec, process: subprocess.Popen[bytes], deadline: float, errors: IO[bytes], patience_s: float
) -> str:
    try:
        code = process.wait(max(0.5, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"host {spec.name} does not answer within {patience_s:g} s: look whether it is overloaded"
    errors.seek(0)
    said = last_line(errors.read())
    if spec.kind == "ssh" and code == FAILED:
        return (
            f"host {spec.name} cannot be reached: ssh says `{said}`: "
            f"mend that until `ssh {spec.address}` logs in without a question"
        )
    return f"host {spec.name} has no inferswarm that runs (`{said or f'exit code {code}'}`): {PREPARE}"


def last_line(said: bytes) -> str:
    """The last line that says anything."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def clock_of(exchanges: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """How far the other clock is ahead, and the doubt in it, both in ns, of (before, theirs, after).

    The exchange with the shortest round trip knows best: theirs was read at some moment within it.
    """
    before, theirs, after = min(exchanges, key=lambda exchange: exchange[2] - exchange[0])
    return theirs - (before + after) // 2, (after - before + 1) // 2


@dataclass(frozen=True)
class Checked:
    """A host that was asked: its facts, or None where there are none and `why` says why."""

    spec: HostSpec
    facts: HostFacts | None
    why: str = ""


def check_all(hosts: Sequence[Host], patience_s: float = PATIENCE_S) -> list[Checked]:
    """Ask all hosts at once; pods, which are not there before their job, are not asked."""

    def ask(host: Host) -> Checked:
        if host.spec.kind == "k8s":
            return Checked(host.spec, None)
        try:
            return Checked(host.spec, check(host, patience_s))
        except HostError as error:
            return Checked(host.spec, None, str(error))

    with ThreadPoolExecutor(max_workers=max(1, min(len(hosts), 32))) as pool:
        return list(pool.map(ask, hosts))
