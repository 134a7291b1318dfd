"""Which Python the virtual environment is made with, and the shared library of it that tritonserver embeds.

`python -m server.interpreter` is what `make setup` asks before it installs anything, by whatever Python there
is: it needs nothing but the standard library, of 3.8 or later.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from server.cache import cache
from server.errors import SetUpError

SUITE = ((3, 11), (3, 12), (3, 13), (3, 14))
STUBS = SUITE[:3]
"""The Python versions for which nvidia-pytriton can run a model's Python code."""
AMONG = f"Python {STUBS[0][0]}.{STUBS[0][1]} to {STUBS[-1][0]}.{STUBS[-1][1]}"
INSTEAD = (
    "give your own servers' addresses (`make step7 ARGS='--onnx-http-url HOST:PORT'`), "
    "or test only the PyTorch service (`make step7 ARGS='--endpoints pytorch-http'`)"
)
PROBE_S, FETCH_S = 20.0, 120.0


class Interpreter(NamedTuple):
    """What one says of itself."""

    executable: str
    version: tuple[int, ...]
    """Major, minor and micro."""
    prefix: str
    """The folder of its standard library, whatever environment it runs in."""
    folders: tuple[str, ...]
    """Where its shared library may be."""
    has_venv: bool
    machine: tuple[str, str] = ("Linux", "x86_64")

    @property
    def minor(self) -> str:
        """`3.11`."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def library(self) -> str:
        """The name of its shared library."""
        return f"libpython{self.minor}.so.1.0"

    @property
    def kept(self) -> Path:
        """Where a fetched library is kept."""
        return cache("libpython") / ".".join(map(str, self.version)) / self.library


def this() -> Interpreter:
    """The interpreter that runs this."""
    lib, arch = (str(sysconfig.get_config_var(key) or "") for key in ("LIBDIR", "MULTIARCH"))
    return Interpreter(
        sys.executable,
        tuple(sys.version_info[:3]),
        sys.base_prefix,
        (lib, os.path.join(lib, arch), os.path.join(sys.base_prefix, "lib")),
        find_spec("ensurepip") is not None,
        (platform.system(), platform.machine()),
    )


def find_libpython(of: Interpreter | None = None) -> Path:
    """An interpreter's shared library, fetched where it came without; SetUpError where it cannot be."""
    of = of or this()
    for path in (*(Path(folder, of.library) for folder in of.folders), of.kept):
        if path.exists():
            return path
    return fetch(of)


def fetch(of: Interpreter, run: Callable[[Sequence[str], Path], str | None] | None = None) -> Path:
    """Take the library out of the distribution's package, not installed; SetUpError where there is none.

    It needs no root: the package is downloaded with lists of its own, and unpacked into the cache.
    """
    run = run or _output
    missing = f"{of.executable} was built without {of.library}, which tritonserver needs"
    if of.prefix != "/usr" or not shutil.which("apt-get"):
        raise SetUpError(
            f"{missing}: use a Python that has it, such as uv's, or pyenv's with --enable-shared."
        )
    installed = run(["dpkg-query", "-W", "-f", "${Version}", f"python{of.minor}-minimal"], Path("/"))
    names = [f"libpython{of.minor}", f"libpython{of.minor}t64"]
    # Of the interpreter's own version where the archive still has it.
    wanted = [*(f"{name}={installed}" for name in names if installed), *names]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "lists").mkdir()
        known = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root"]
        own = [*known, "-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]

        def downloaded(apt: Sequence[str]) -> bool:
            return any(run([*apt, "download", name], folder) is not None for name in wanted)

        if not downloaded(known):
            # Its exit code tells of other archives, too, that nobody needs here.
            run([*own, "update"], folder)
            downloaded(own)
        for package in folder.glob("*.deb"):
            run(["dpkg", "-x", str(package), str(folder / "unpacked")], folder)
        for found in folder.glob(f"unpacked/usr/lib/*/{of.library}"):
            return _keep(found.resolve(), of.kept)
    raise SetUpError(f"{missing}: run `apt-get install libpython{of.minor}`.")


def _keep(found: Path, kept: Path) -> Path:
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Copied aside and renamed: another `make setup` finds all of it or nothing.
    partial = kept.with_name(f".{kept.name}.{os.getpid()}")
    shutil.copyfile(found, partial)
    partial.replace(kept)
    return kept


def lack(of: Interpreter) -> str:
    """Why tritonserver cannot run its models with it, as a sentence; nothing where it can."""
    if of.machine != ("Linux", "x86_64"):
        return f"tritonserver's wheel runs on Linux x86-64 only: {INSTEAD}."
    if of.version[:2] not in STUBS:
        return (
            f"tritonserver's wheel has no stub for Python {of.minor}: "
            f"install {AMONG} and remove .venv, {INSTEAD}."
        )
    try:
        find_libpython(of)
    except SetUpError as error:
        return str(error)
    return ""


def others() -> Iterator[Interpreter]:
    """The interpreters that are there besides: on the path, of uv, of pyenv."""
    yield from filter(None, map(asked, dict.fromkeys(executables())))


def executables() -> Iterator[str]:
    """Where others may be."""
    minors = [f"{major}.{minor}" for major, minor in reversed(STUBS)]
    yield from filter(None, (shutil.which(f"python{minor}") for minor in minors))
    if uv := shutil.which("uv"):
        yield from filter(None, (_output([uv, "python", "find", minor], Path.cwd()) for minor in minors))
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for minor in minors:
        yield from sorted(str(path) for path in root.glob(f"versions/{minor}.*/bin/python3"))


def asked(executable: str) -> Interpreter | None:
    """What another says of itself; None where it does not answer."""
    code = "import json; from server.interpreter import this; print(json.dumps(this()))"
    said = _output([executable, "-c", code], Path(__file__).parent.parent)
    if not said:
        return None
    name, version, prefix, folders, has_venv, machine = json.loads(said)
    return Interpreter(name, tuple(version), prefix, tuple(folders), has_venv, tuple(machine))


def choose(
    first: Interpreter, embedded: bool, alone: bool, rest: Callable[[], Iterable[Interpreter]] = others
) -> tuple[Interpreter, str]:
    """The interpreter for the environment, and what it cannot do, if anything; SetUpError without one.

    `embedded`: tritonserver must run here. `alone`: no other is looked for, as `first` was named.
    """
    missing = unfit(first) or lack(first)
    if not missing:
        return first, ""
    for other in () if alone else rest():
        if not (unfit(other) or lack(other)):
            return other, ""
    # Nobody can do all, and this one may do the rest.
    if embedded or unfit(first):
        raise SetUpError(missing)
    return first, missing


def unfit(of: Interpreter) -> str:
    """Why no environment can be made with it, as a sentence; nothing where one can."""
    if of.version[:2] not in SUITE:
        return (
            f"inferswarm needs {AMONG}, and {of.executable} is {of.minor}: "
            "install one, or run `make PYTHON=/path/to/python3.12`."
        )
    if not of.has_venv:
        return f"{of.executable} cannot make virtual environments: run `apt-get install python3-venv`."
    return ""


def needs_triton(arguments: Sequence[str]) -> bool:
    """Whether a study with these options starts tritonserver here."""
    if any(word.startswith("--") and word.partition("=")[0].endswith("-url") for word in arguments):
        return False
    words = " ".join(arguments).replace("=", " ").split()
    named = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--endpoints"]
    return named != ["pytorch-http"]


def main(argv: list[str]) -> int:
    """Print the interpreter to use, and to stderr what it lacks; 2 and one sentence where none will do."""
    parser = argparse.ArgumentParser(prog="python -m server.interpreter", description=__doc__)
    parser.add_argument("--alone", action="store_true", help="do not look for another interpreter")
    parser.add_argument("--embedded", action="store_true", help="tritonserver must run here")
    parser.add_argument("study", nargs=argparse.REMAINDER, help="-- and the options of the study")
    options = parser.parse_args(argv)
    try:
        chosen, missing = choose(this(), options.embedded and needs_triton(options.study), options.alone)
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 2
    if missing:
        print(f"Only studies of servers by URL: {missing}", file=sys.stderr)
    print(chosen.executable)
    return 0


def _output(command: Sequence[str], folder: Path) -> str | None:
    """What a command prints, None where it fails or takes too long."""
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, timeout=FETCH_S if command[0] == "apt-get" else PROBE_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
