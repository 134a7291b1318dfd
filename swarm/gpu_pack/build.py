"""`make gpu-pack`: what a GPU host with Python and PyTorch, and no network, lacks for our studies, in parts.

Of torch and CUDA there is nothing in it: these are the host's own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm.errors import UsageError
from swarm.gpu_pack import run
from swarm.gpu_pack.run import MANIFEST, SOURCES, digest
from swarm.hosts.facts import COMMIT_FILE
from swarm.hosts.host import ROOT
from swarm.hosts.prepare import CheckoutArchive, gather

MOST_MB = 60
PART_MB = 56
"""Together with a checkout, a part still fits through an upload limit of 64 MiB."""
REQUIREMENTS = ("requirements-client.txt", "requirements-server.txt", "requirements-triton.txt")
OF_CUDA = ("nvidia-cu", "nvidia-n", "cuda-")
GLIBC = (35, 34, 31, 28, 27, 24, 17, 12, 5)
"""pip matches each of these by itself; 2.35 is what tritonserver asks for."""


class PackPart(NamedTuple):
    """A tar file of the pack, and what is in it."""

    name: str
    files: tuple[Path, ...]


def main(argv: Sequence[str]) -> int:
    """Make the pack; 2 and one sentence where it cannot be made."""
    parser = argparse.ArgumentParser(prog="make gpu-pack", description=__doc__)
    parser.add_argument("--python", default="3.12", help="the host's (default: %(default)s)")
    parser.add_argument(
        "--part-mb",
        type=float,
        default=PART_MB,
        help=f"most of a part, up to {MOST_MB} (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "gpu-pack", help="folder (default: gpu-pack)")
    options = parser.parse_args(argv)
    if not 0 < options.part_mb <= MOST_MB:
        parser.error(f"--part-mb takes megabytes up to {MOST_MB}")
    if options.out.exists() and not (options.out / MANIFEST).exists():
        parser.error(f"--out {options.out}: exists and is not a pack; name another folder, or remove it")
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=options.out.parent, prefix="gpu-pack-") as scratch:
            made = build(Path(scratch), options.python, round(options.part_mb * 1e6))
            shutil.rmtree(options.out, ignore_errors=True)
            made.rename(options.out)
    except (UsageError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(told(options.out))
    return 0


def build(scratch: Path, python: str, part_bytes: int) -> Path:
    """A folder with the pack, in `scratch`. Raises UsageError."""
    files, pack = scratch / "files", scratch / "pack"
    for folder in (files, pack):
        folder.mkdir()
    archive = gather(scratch)
    if archive.changed:
        print(f"uncommitted changes are not included: the pack holds {archive.commit}", flush=True)
    archive_sources(archive, files / SOURCES)
    print(f"fetching packages for Python {python}...", flush=True)
    fetch(closure(python), python, files)
    parts = binned(sorted(files.iterdir()), part_bytes)
    described = [write_part(part, pack) for part in parts]
    manifest = {"python": python, "commit": archive.commit, "parts": described}
    (pack / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.copy2(run.__file__, pack / "run")
    (pack / "run").chmod(0o755)
    return pack


def archive_sources(archive: CheckoutArchive, target: Path) -> None:
    """The commit's files, with its name among them, compressed."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive.files) as packed:
            packed.extractall(scratch, filter="data")
        Path(scratch, COMMIT_FILE).write_text(f"{archive.commit}\n")
        with tarfile.open(target, "w:gz") as packed:
            packed.add(scratch, ".")


def closure(python: str) -> str:
    """The packages by version and hash, as pip reads them, without torch and CUDA's. Raises UsageError."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as more:
        more.write("pip\n")
        more.flush()
        command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--no-header"]
        command += ["--no-annotate", "--generate-hashes", "--constraints", "requirements.lock"]
        command += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_35"]
        command += ["--no-emit-package", "torch", *REQUIREMENTS, more.name]
        return without_cuda(_output(command, "uv"))


def without_cuda(text: str) -> str:
    """Requirements, each with the lines of its hashes, less those of CUDA."""
    kept, keep = [], True
    for line in text.splitlines():
        if not line.startswith(" "):
            keep = not line.startswith(OF_CUDA)
        kept += [line] if keep else []
    return "\n".join(kept) + "\n"


def fetch(requirements: str, python: str, folder: Path) -> None:
    """Download the wheels. Raises UsageError with pip's last word."""
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in GLIBC]
    platforms += [f"--platform=manylinux{year}_x86_64" for year in (2014, 2010, 1)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--implementation=cp", f"--python-version={python}", *platforms]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        _output([*command, "--dest", str(folder), "--requirement", file.name], "pip")


def binned(files: Iterable[Path], most_bytes: int) -> list[PackPart]:
    """Files in parts, the largest first, each where it fits first. Raises UsageError for one too large."""
    bins: list[list[Path]] = []
    for file in sorted(files, key=lambda one: -taken(one)):
        if taken(file) + END_BYTES > most_bytes:
            size_mb = file.stat().st_size / 1e6
            raise UsageError(
                f"--part-mb: {file.name} alone has {size_mb:.1f} MB; give a larger size, up to {MOST_MB}"
            )
        fits = (one for one in bins if sum(map(taken, one)) + taken(file) + END_BYTES <= most_bytes)
        if (found := next(fits, None)) is None:
            bins.append(found := [])
        found.append(file)
    return [PackPart(f"part-{number}.tar", tuple(one)) for number, one in enumerate(bins, 1)]


BLOCK, END_BYTES = 512, 10_240
"""A tar file's: the block size that names and contents are padded to, and the empty record at its end."""


def taken(file: Path) -> int:
    """What a file takes in a tar file: heads, one more for a long name, and its bytes in whole blocks."""
    return 4 * BLOCK + -(-file.stat().st_size // BLOCK) * BLOCK


def write_part(part: PackPart, pack: Path) -> dict[str, Any]:
    """Write it, and describe it for the manifest."""
    with tarfile.open(pack / part.name, "w") as packed:
        for file in part.files:
            packed.add(file, file.name)
    return {
        "name": part.name,
        "bytes": (pack / part.name).stat().st_size,
        "sha256": digest(pack / part.name),
        "files": {file.name: digest(file) for file in part.files},
    }


def told(pack: Path) -> str:
    """What was made, for a person."""
    manifest = json.loads((pack / MANIFEST).read_text())
    rows = [
        f"  {part['name']}  {part['bytes'] / 1e6:5.1f} MB  {len(part['files'])} files"
        for part in manifest["parts"]
    ]
    whole = sum(part["bytes"] for part in manifest["parts"]) / 1e6
    of = f"commit {manifest['commit']}, for Python {manifest['python']}"
    head = f"{pack}: {of}, {whole:.0f} MB in {len(rows)} parts"
    return "\n".join([head, *rows, f"On the host: python3 {pack.name}/run --help"])


def _output(command: Sequence[str], name: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(f"the packages cannot be downloaded: {name} ended with {done.returncode}: {last}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
