"""`make test-fresh`: what a newcomer does, in bare systems: clones, `make step7`, and the tests.

As root, with debootstrap. Each system is minimal Debian with PACKAGES and nothing else, in a chroot; each
case is a fresh clone of this checkout at HEAD, without a virtual environment. `--keep DIR` leaves the systems
there, and what pip has downloaded in them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PACKAGES = "python3,python3-venv,make,git"
SUITES = ("bookworm", "trixie")
USERS = ("root", "newcomer")
PLACES = ("work", "my work/it's here")
STUDY = """ARGS=--cells '*/b1/c1' --seconds 3 --warm-up 10 --repeats 1"""
TESTS = {"none": "", "unit": "quick", "all": "test"}
HANDED = re.compile(r"(?i)(PIP|UV)_\w+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|https?_proxy|no_proxy")
"""What of our environment says how packages are fetched."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
COUNT = re.compile(r"^=* ?(\d.*(?:passed|failed).*) in [\d.]+s", re.MULTILINE)


class Case(NamedTuple):
    """A system, who works there, and where."""

    suite: str
    user: str
    place: str


class Outcome(NamedTuple):
    """What came of a command: its exit code, seconds, and what the tests counted."""

    code: int
    took_s: float
    counts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"exit {self.code}, {self.took_s:.0f} s" + "".join(f"; {count}" for count in self.counts)


def main(argv: Sequence[str]) -> int:
    """Run every case and print a line for each command; 1 where one failed, 2 where it cannot be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fresh", description=__doc__)
    parser.add_argument("--suites", default=",".join(SUITES), help="Debian's releases (default: %(default)s)")
    parser.add_argument("--users", default=",".join(USERS), help="who (default: %(default)s)")
    add = parser.add_argument
    add("--places", default=",".join(PLACES), help="paths of the clone (default: %(default)s)")
    add("--tests", choices=TESTS, default="unit", help="what to run after step 7 (default: unit)")
    add("--keep", type=Path, metavar="DIR", help="keep the systems there (default: removed)")
    add("--bind", action="append", default=[], metavar="DIR", help="a folder that systems see, too")
    options = parser.parse_args(argv)
    if os.geteuid() or not shutil.which("debootstrap"):
        lack = "make test-fresh: it makes systems in chroots: run it as root, with debootstrap installed"
        print(lack, file=sys.stderr)
        return 2
    failed = False
    with systems(options.keep) as folder:
        wanted = (getattr(options, name).split(",") for name in ("suites", "users", "places"))
        for case in map(Case._make, product(*wanted)):
            system = made(folder, case.suite)
            for name, outcome in tried(system, case, options.bind, TESTS[options.tests]):
                print(f"{case.suite:9} {case.user:9} {case.place:18} {name:26} {outcome}", flush=True)
                failed |= outcome.code != 0
    return int(failed)


@contextmanager
def systems(keep: Path | None) -> Iterator[Path]:
    """The folder of the systems."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="inferswarm-fresh-") as folder:
        yield Path(folder)


def made(folder: Path, suite: str) -> Path:
    """A minimal system, with a user who may do nothing special."""
    system = folder / suite
    if not (system / "ready").exists():
        shutil.rmtree(system, ignore_errors=True)
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, system)
        run("chroot", system, "useradd", "--create-home", USERS[1])
        # What an installer writes, and debootstrap does not.
        (system / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        (system / "ready").touch()
    for name in ("/etc/resolv.conf", CERTIFICATES):
        if Path(name).exists():
            (system / f".{name}").parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, system / f".{name}")
    return system


def run(*command: str | Path) -> None:
    """Run a command that must not fail."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-2000:]}")


def tried(system: Path, case: Case, binds: Sequence[str], tests: str) -> Iterator[tuple[str, Outcome]]:
    """Clone, and do what the README says; each command with what came of it."""
    home = Path("/root" if case.user == "root" else f"/home/{case.user}")
    clone = home / case.place
    for left in (clone, home / ".cache"):
        shutil.rmtree(system / f".{left}", ignore_errors=True)
    (system / f".{clone.parent}").mkdir(parents=True, exist_ok=True)
    run("git", "clone", "--quiet", ROOT, system / f".{clone}")
    run("chroot", system, "chown", "-R", case.user, home)
    log = system.parent / f"{case.suite}-{case.user}-{'space' if ' ' in case.place else 'plain'}.log"
    log.unlink(missing_ok=True)
    try:
        for goal in filter(None, ("step7", tests)):
            command = ["make", *goal.split(), STUDY]
            yield f"make {goal}", inside(system, case.user, home, clone, binds, command, log)
    finally:
        shutil.rmtree(system / f".{clone}", ignore_errors=True)


def inside(
    system: Path, user: str, home: Path, folder: Path, binds: Sequence[str], command: Sequence[str], log: Path
) -> Outcome:
    """Run a command in the system as a user, in processes and mounts of its own, which go with it."""
    mounts = ["mount -t proc proc proc", "mount --rbind /dev dev", "mount --rbind /sys sys"]
    for bind in binds:
        (system / f".{bind}").mkdir(parents=True, exist_ok=True)
        mounts.append(f"mount --bind {bind} .{bind}")
    script = f'cd "$1" && {" && ".join(mounts)} && shift && exec "$@"'
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", str(system)]
    into = ["chroot", f"--userspec={user}:{user}", str(system), "env", "-i", *environment(user, home)]
    there = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder)]
    began = time.monotonic()
    with log.open("a") as file:
        words = [*enter, *into, *there, *command]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    counts = tuple(COUNT.findall(log.read_text(errors="replace")))
    return Outcome(done.returncode, time.monotonic() - began, counts)


def environment(user: str, home: Path) -> list[str]:
    """What a login has, and how packages are fetched here."""
    own = {"HOME": str(home), "USER": user, "LANG": "C", "PATH": PATH}
    handed = {name: value for name, value in os.environ.items() if HANDED.fullmatch(name)}
    return [f"{name}={value}" for name, value in (own | handed).items()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
