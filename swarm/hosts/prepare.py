"""`inferswarm hosts prepare`: ssh hosts made ready, by a commit, and wheels where they lack internet.

An installed inferswarm, which is of no commit, sends its own files: they are laid out there as in a checkout.
"""

import os
import shlex
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from swarm.errors import UsageError
from swarm.hosts.check import HostError, last_line, unreachable
from swarm.hosts.facts import COMMIT_FILE, version
from swarm.hosts.host import PYTHON, ROOT, SSH_FAILED, folder, ssh_command
from swarm.hosts.hosts_file import HostSpec

WHEELS = ".wheels"
LOCK = "requirements-client.lock"
SENT = ("users", "swarm", "reports", "locustfiles", LOCK)
"""What a host needs of an installed inferswarm."""
OWN_GIT = "it has its own git checkout there, which is left as it is"
"""The note on a host that has its own git checkout: its files are not overwritten."""
LOOK = """\
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    sys.exit("it is Python %d.%d" % sys.version_info[:2])
"""


@dataclass(frozen=True)
class CheckoutArchive:
    """A commit or version, its files as tar, and wheels as tar or None; `changed` where files here differ."""

    commit: str
    files: Path
    wheels: Path | None = None
    changed: bool = False


def gather(folder: Path, wheels: Path | None = None, checkout: Path = ROOT) -> CheckoutArchive:
    """Pack the checkout's last commit, and the wheels of a folder, into `folder`. Raises UsageError."""
    files, packed = folder / "checkout.tar", folder / "wheels.tar"
    sent = pack(wheels, packed, checkout / LOCK) if wheels else None
    if not (checkout / ".git").exists():
        pack_installed(checkout, files)
        return CheckoutArchive(version(), files, sent)
    commit = _git(checkout, "rev-parse", "--short=12", "HEAD")
    _git(checkout, "archive", "--format=tar", f"--output={files}", "HEAD")
    return CheckoutArchive(commit, files, sent, bool(_git(checkout, "status", "--porcelain")))


def pack_installed(suite: Path, file: Path) -> None:
    """The files of an installed inferswarm that a host needs, as tar. Raises UsageError where it is none."""
    if not (suite / LOCK).exists():
        raise UsageError(f"{suite}: has no {LOCK}: prepare hosts from a clone, or an installed inferswarm")

    def own(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if entry.name.endswith("__pycache__") else entry

    with tarfile.open(file, "w") as packed:
        for name in SENT:
            packed.add(suite / name, name, filter=own)


def pack(wheels: Path, file: Path, lock: Path = Path(LOCK)) -> Path:
    """The folder's wheels as tar, in `file`. Raises UsageError where there are none."""
    found = sorted(wheels.glob("*.whl"))
    if not found:
        raise UsageError(
            f"--wheels {wheels}: has no wheels: fill it with "
            f"`python -m pip download --no-deps -r {lock} -d {wheels}`"
        )
    with tarfile.open(file, "w") as packed:
        for wheel in found:
            packed.add(wheel, wheel.name)
    return file


def _git(checkout: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *words], stdin=subprocess.DEVNULL, capture_output=True
        )
    except OSError as error:
        raise UsageError(f"git does not start ({error.strerror}): hosts are sent a git commit") from None
    if done.returncode:
        said = last_line(done.stderr) or f"exit code {done.returncode}"
        raise UsageError(
            f"{checkout}: git says `{said}`: hosts are sent a git commit, so prepare them from a clone"
        )
    return done.stdout.decode(errors="replace").strip()


@dataclass(frozen=True)
class Step:
    """One line of the host's shell, with the file that it reads from standard input, and the fix."""

    about: str
    line: str
    sent: Path | None = None
    fix: str = ""


def steps(spec: HostSpec, source: CheckoutArchive) -> list[Step]:
    """What makes a host ready, in order; each may be done again on a host that is ready already."""
    found = [look(spec), send_checkout(spec, source), make_environment(spec)]
    if source.wheels:
        unpack = f"rm -rf {WHEELS} && mkdir {WHEELS} && tar -xf - -C {WHEELS}"
        found.append(Step(f"sending wheels ({size(source.wheels)})", within(spec, unpack), source.wheels))
    return [*found, install(spec, from_wheels=bool(source.wheels))]


def look(spec: HostSpec) -> Step:
    """Is the right Python there?"""
    return Step(
        f"looking for {spec.python}",
        f"{shlex.quote(spec.python)} -c {shlex.quote(LOOK)}",
        fix="install Python 3.11 to 3.14 there, and name it with `python` in the hosts file",
    )


def send_checkout(spec: HostSpec, source: CheckoutArchive) -> Step:
    """The files of the commit; while they are on their way they are of no commit."""
    unpack = f"rm -f {COMMIT_FILE} && tar -xf - && echo {shlex.quote(source.commit)} > {COMMIT_FILE}"
    leave = f"cat > /dev/null; echo {shlex.quote(OWN_GIT)}"
    return Step(
        f"sending the checkout at {source.commit} ({size(source.files)})",
        within(spec, f"if [ -e .git ]; then {leave}; else {unpack}; fi"),
        source.files,
        fix=f"make {spec.path} there a folder that {spec.address} can write to",
    )


def make_environment(spec: HostSpec) -> Step:
    """A virtual environment with pip, where there is none yet."""
    made = f"{PYTHON} -m pip --version > /dev/null 2>&1 || {shlex.quote(spec.python)} -m venv .venv"
    return Step(
        "making .venv",
        within(spec, made),
        fix=f"make `{spec.python} -m venv .venv` work there; on Debian that needs the package python3-venv",
    )


def install(spec: HostSpec, from_wheels: bool) -> Step:
    """What workers need, each file by its hash."""
    pip = f"{PYTHON} -m pip install --quiet --no-input --disable-pip-version-check --require-hashes --no-deps"
    line = f"{pip} -r {LOCK}"
    if from_wheels:
        line = f"{pip} --no-index --find-links {WHEELS} -r {LOCK} && rm -rf {WHEELS}"
    return Step(
        f"installing {LOCK}",
        within(spec, line),
        fix="for a host without internet, send the packages with --wheels DIR",
    )


def within(spec: HostSpec, line: str) -> str:
    """The line, in the host's folder, which is made where it is missing."""
    return f"mkdir -p {folder(spec)} && cd {folder(spec)} && {{ {line}; }}"


def size(file: Path) -> str:
    """`1.2 MB`."""
    return f"{file.stat().st_size / 1e6:.1f} MB"


def prepare(spec: HostSpec, plan: Iterable[Step], say: Callable[[str], None]) -> None:
    """Take a host through its steps, a line each. Raises HostError at the first that fails."""
    for step in plan:
        say(f"{spec.name}: {step.about}")
        if OWN_GIT in perform(spec, step):
            say(f"{spec.name}: {OWN_GIT}")


def perform(spec: HostSpec, step: Step) -> str:
    """What the host said to a step. Raises HostError with its last line."""
    # Not every user's own shell is a Bourne shell.
    command = ssh_command(spec, f"exec sh -c {shlex.quote(step.line)}")
    try:
        with open(step.sent or os.devnull, "rb") as sent:
            done = subprocess.run(command, stdin=sent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise HostError(f"ssh does not start here ({error.strerror}): install openssh-client") from None
    said = last_line(done.stdout) or f"exit code {done.returncode}"
    if done.returncode == SSH_FAILED:
        raise HostError(f"host {spec.name} {unreachable(spec, said)}")
    if done.returncode:
        raise HostError(f"host {spec.name}: {step.about} failed (`{said}`): {step.fix}")
    return done.stdout.decode(errors="replace")
