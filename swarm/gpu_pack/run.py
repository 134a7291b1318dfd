#!/usr/bin/env python3
"""Unpack what has arrived of the pack on a GPU host, set up what that needs, and run the pack's steps.

Call it again when more parts have arrived, and where steps are left: it goes on where it ended. No network.
"""

# It runs before anything is installed: standard library alone. `make gpu-pack` copies it beside the parts.
from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

MANIFEST = "manifest.json"
SOURCES = "sources.tar.gz"
SET_UP_ERROR, NOT_ALL = 2, 3
Part = dict[str, Any]


class PackError(Exception):
    """Why the pack cannot be used: one sentence with the fix, and the exit code."""

    def __init__(self, text: str, code: int = SET_UP_ERROR) -> None:
        super().__init__(text)
        self.code = code


def main(argv: Sequence[str]) -> int:
    """Unpack, set up, and become swarm.gpu_pack.perform; 2 where pack or host is unfit, 3 if parts lack."""
    began_s = time.time()
    options = parse(argv)
    pack = Path(__file__).resolve().parent
    try:
        manifest = read_manifest(pack)
        check_host(manifest)
        options.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        arrive(pack, manifest["parts"], options.home)
        python = set_up(manifest, options.home)
    except KeyboardInterrupt:
        return 130
    except PackError as error:
        print(error, file=sys.stderr)
        return error.code
    except (OSError, ValueError) as error:
        print(f"--home {options.home} cannot be used ({error}): give another folder.", file=sys.stderr)
        return SET_UP_ERROR
    return become(python, options, began_s)


def become(python: Path, options: argparse.Namespace, began_s: float) -> NoReturn:
    """Go on by the environment's Python, as the steps' own program."""
    given = [
        f"--home={options.home}",
        f"--out={options.out}",
        f"--minutes={options.minutes}",
        f"--began={began_s}",
    ]
    given += [f"--steps={options.steps}"] if options.steps else []
    given += ["--small"] if options.small else []
    os.chdir(options.home / "sources")
    sys.stdout.flush()
    # What they name would come before the pack's own packages.
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    os.execve(python, [str(python), "-m", "swarm.gpu_pack.perform", *given], environ)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpu-pack/run", description=__doc__)
    home = Path.home() / ".cache/inferswarm/gpu-pack"
    parser.add_argument(
        "--home", type=Path, default=home, metavar="DIR", help="where it lives (default: %(default)s)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("gpu-pack-results"),
        metavar="DIR",
        help="results (default: %(default)s)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=9.0,
        help="the longest that this call may take (default: %(default)g)",
    )
    parser.add_argument(
        "--steps", default="", metavar="NAME,...", help="only these (default: all that are left)"
    )
    parser.add_argument("--small", action="store_true", help="sizes for a host without a GPU: a dry run")
    options = parser.parse_args(argv)
    options.home, options.out = options.home.resolve(), options.out.resolve()
    if any(letter in str(options.home) for letter in " '\""):
        parser.error(
            f"--home {options.home}: tritonserver cannot use a path with spaces or quotes; give another"
        )
    if not options.minutes > 0:
        parser.error("--minutes must be more than 0")
    return options


def read_manifest(pack: Path) -> dict[str, Any]:
    """What the pack consists of. Raises PackError."""
    try:
        found = json.loads((pack / MANIFEST).read_text())
        return {name: found[name] for name in ("python", "commit", "parts")}
    except (OSError, ValueError, KeyError, TypeError):
        raise PackError(f"{pack / MANIFEST} is missing or damaged: copy it again.") from None


def check_host(manifest: dict[str, Any]) -> None:
    """Raises PackError where this Python is another than the wheels are for, or has no PyTorch."""
    here = ".".join(map(str, sys.version_info[:2]))
    if here != manifest["python"]:
        raise PackError(
            f"the pack is for Python {manifest['python']}, and {sys.executable} is {here}: run it with"
            f" that, or "
            f"make a pack with `make gpu-pack ARGS='--python {here}'`."
        )
    if importlib.util.find_spec("torch") is None:
        raise PackError(
            f"{sys.executable} has no PyTorch: run it with the Python that has it, `PYTHON gpu-pack/run`."
        )


def arrive(pack: Path, parts: Iterable[Part], home: Path) -> None:
    """Unpack the parts that are here and new. Raises PackError for a broken one, or while others lack."""
    (home / "parts").mkdir(parents=True, exist_ok=True)
    lacking = []
    for part in parts:
        marker = home / "parts" / part["name"]
        kept = all((home / "files" / name).exists() for name in part["files"])
        if kept and marker.exists() and marker.read_text() == part["sha256"]:
            continue
        if not (pack / part["name"]).exists():
            lacking.append(part["name"])
            continue
        unpack(pack / part["name"], part, home)
        marker.write_text(part["sha256"])
        print(f"{part['name']} has been unpacked", flush=True)
    if lacking:
        have, them = ("have", "them") if lacking[1:] else ("has", "it")
        *some, last = lacking
        names = f"{', '.join(some)} and {last}" if some else last
        text = f"{names} {have} not arrived: put {them} beside gpu-pack/run, and call it again."
        raise PackError(text, NOT_ALL)


def unpack(file: Path, part: Part, home: Path) -> None:
    """One part's files into `home`/files, all or none of them. Raises PackError."""
    again = f"copy it again: {file} is broken"
    if digest(file) != part["sha256"]:
        raise PackError(f"{part['name']} is not what was packed (its SHA-256 differs): copy it again.")
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        try:
            with tarfile.open(file) as packed:
                packed.extractall(scratch, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise PackError(
                f"{part['name']} cannot be unpacked ({error}): free some space, or {again}."
            ) from None
        for name, sha256 in part["files"].items():
            if not Path(scratch, name).is_file() or digest(Path(scratch, name)) != sha256:
                raise PackError(f"{part['name']} has no {name} as it was packed: rebuild the pack.")
        (home / "files").mkdir(exist_ok=True)
        for name in part["files"]:
            Path(scratch, name).replace(home / "files" / name)


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def set_up(manifest: dict[str, Any], home: Path) -> Path:
    """The Python of an environment with the pack's packages before the host's own, made once for a pack.

    A real environment, no PYTHONPATH: tritonserver's models take the packages of the first python3 on PATH.
    Raises PackError.
    """
    python, marker = home / "venv/bin/python3", home / "set-up.json"
    if marker.exists() and json.loads(marker.read_text()) == manifest:
        return python
    print("setting up...", flush=True)
    marker.unlink(missing_ok=True)
    for folder in ("venv", "sources"):
        shutil.rmtree(home / folder, ignore_errors=True)
    with tarfile.open(home / "files" / SOURCES) as packed:
        packed.extractall(home / "sources", filter="data")
    names = [name for part in manifest["parts"] for name in part["files"] if name.endswith(".whl")]
    wheels = [str(home / "files" / name) for name in names]
    (pip,) = (wheel for wheel in wheels if Path(wheel).name.startswith("pip-"))
    make = [sys.executable, "-m", "venv", "--without-pip", str(home / "venv")]
    install = ["install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    for command in (make, [sys.executable, f"{pip}/pip", "--python", str(python), *install, *wheels]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            last = (done.stdout.strip().splitlines() or ["without output"])[-1]
            raise PackError(
                f"the environment cannot be made: `{' '.join(command[:4])} ...` ended with: {last}"
            )
    packages = home / f"venv/lib/python{manifest['python']}/site-packages"
    # Behind our own: the host's PyTorch, and what it needs.
    (packages / "of_the_host.pth").write_text("".join(f"{folder}\n" for folder in host_packages()))
    partial = marker.with_suffix(".partial")
    partial.write_text(json.dumps(manifest))
    partial.replace(marker)
    return python


def host_packages() -> list[str]:
    """Where this Python's packages lie, PyTorch's own folder first."""
    torch = importlib.util.find_spec("torch")
    assert torch is not None  # check_host has seen it
    folders = [str(Path(str(torch.origin)).parents[1]), *site.getsitepackages(), site.getusersitepackages()]
    return [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
