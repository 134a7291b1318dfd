"""What ssh hosts are sent: a commit of this checkout, and wheels where they have no internet."""

from __future__ import annotations

import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from swarm.errors import UsageError
from swarm.hosts.host import ROOT


@dataclass(frozen=True)
class Source:
    """A commit, its files as tar, and wheels as tar or None; `changed` where files here differ from it."""

    commit: str
    files: Path
    wheels: Path | None = None
    changed: bool = False


def gather(folder: Path, wheels: Path | None = None, checkout: Path = ROOT) -> Source:
    """Pack the checkout's last commit, and the wheels of a folder, into `folder`. Raises UsageError."""
    files = folder / "checkout.tar"
    commit = _git(checkout, "rev-parse", "--short=12", "HEAD")
    _git(checkout, "archive", "--format=tar", f"--output={files}", "HEAD")
    changed = bool(_git(checkout, "status", "--porcelain"))
    return Source(commit, files, pack(wheels, folder / "wheels.tar") if wheels else None, changed)


def pack(wheels: Path, file: Path) -> Path:
    """The folder's wheels as tar, in `file`. Raises UsageError where there are none."""
    found = sorted(wheels.glob("*.whl"))
    if not found:
        raise UsageError(
            f"--wheels {wheels}: no wheels are there: fill it with "
            f"`python -m pip download --no-deps -r requirements-client.lock -d {wheels}`"
        )
    with tarfile.open(file, "w") as packed:
        for wheel in found:
            packed.add(wheel, wheel.name)
    return file


def _git(checkout: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError as error:
        raise UsageError(f"git does not start ({error.strerror}): hosts are sent what git keeps") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(
            f"{checkout}: git says `{said}`: hosts are sent a commit, so prepare them from a clone"
        )
    return done.stdout.strip()
