"""`make image`: examples/k8s/Containerfile is built by buildah, and a master and two workers run in it.

As root, with buildah and debootstrap; no container engine, no registry. The base is minimal Debian with
python3 and venv. The image's processes have its user, environment and entry point, a read-only root and a
/tmp of their own, as a hardened pod has them; the stand-in server that they measure is this checkout's. Where
the kernel has no overlay, STORAGE_DRIVER=vfs says so to buildah.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.fresh.__main__ import CERTIFICATES, run
from tests.processes import free_port
from tests.stand_ins import stand_in

ROOT = Path(__file__).parents[2]
CONTAINERFILE = "examples/k8s/Containerfile"
SUITE, PACKAGES = "bookworm", "python3,python3-venv,ca-certificates"
BASE, IMAGE = "localhost/inferswarm-base", "localhost/inferswarm-client"
WORKERS = 2
STUDY = ("--batches", "1", "--levels", "2", "--seconds", "3", "--warm-up", "1", "--repeats", "1")
DELAY_MS = "200"
"""So slow that cores which are shared with others are still fast enough for a client."""
PATIENCE_S = 120
POD = """mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" &&
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp" && mount --rbind /dev "$1/dev" &&
mount -t proc proc "$1/proc" && mount --bind "$2" "$1/results" &&
root=$1 user=$3 && shift 3 && exec chroot --userspec="$user" "$root" env -i "$@"
"""
"""A shell script: the root, the folder of the results, the user, then an environment and the command."""


def main(argv: Sequence[str]) -> int:
    """Build, run, and print a line for each; 1 where one failed, 2 where it cannot be tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.image", description=__doc__)
    add = parser.add_argument
    add("--base", metavar="DIR", type=Path, help="a system to build on (default: debootstrap makes one)")
    add("--bind", action="append", default=[], metavar="DIR", help="a folder that the build sees, too")
    options = parser.parse_args(argv)
    if os.geteuid() or not all(map(shutil.which, ("buildah", "debootstrap"))):
        lack = (
            "make image: it builds without an engine: run it as root, with buildah and debootstrap installed"
        )
        print(lack, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="inferswarm-image-") as made:
        folder = Path(made)
        timed("the base", lambda: base_in(folder, options.base))
        timed("the image", lambda: build(folder, options.bind))
        with mounted(folder) as root:
            own_mb = megabytes(root / "opt/inferswarm")
            print(f"size: {megabytes(root)} MB, of which {own_mb} MB are /opt/inferswarm", flush=True)
            codes, rows = timed("the study", lambda: study_in(root, config(folder), folder))
    print(f"exit codes: master {codes[0]}, workers {codes[1:]}; cells.csv has {len(rows)} rows")
    done = [row for row in rows if float(row["requests"]) and not int(row["failures"])]
    return int(any(codes) or len(done) != 1 or rows[0]["workers"] != str(WORKERS))


def timed(what: str, work: Callable[[], Any]) -> Any:
    """Its result; says how long it took."""
    began = time.monotonic()
    made = work()
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)
    return made


def buildah(folder: Path, *words: str | Path) -> str:
    """What a command of buildah prints, with images in the folder alone. Ends the program where it fails."""
    stored = ("--root", folder / "images", "--runroot", folder / "run")
    done = subprocess.run(["buildah", *stored, *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"buildah {words[0]} failed: {(done.stdout + done.stderr).strip()[-3000:]}")
    return done.stdout.strip()


def base_in(folder: Path, system: Path | None) -> None:
    """The image BASE, of a system that is there or is made."""
    if system is None:
        system = folder / "system"
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, system)
    container = buildah(folder, "from", "scratch")
    run("cp", "-a", f"{system}/.", buildah(folder, "mount", container))
    buildah(folder, "umount", container)
    buildah(folder, "commit", "--rm", container, BASE)


def build(folder: Path, binds: Sequence[str]) -> None:
    """The image, as `docker build` would; how packages are fetched here goes along as a secret."""
    (folder / "pip.conf").write_text(pip_conf())
    seen = [path for path in (str(CERTIFICATES), *binds) if Path(path).exists()]
    buildah(
        folder, "bud", "--isolation", "chroot", "--build-arg", f"BASE={BASE}", "-f", CONTAINERFILE,
        "-t", IMAGE, "--secret", f"id=pip.conf,src={folder / 'pip.conf'}",
        *(word for path in seen for word in ("--volume", f"{path}:{path}:ro")), ".",
    )  # fmt: skip


def pip_conf() -> str:
    """What pip is told here, by files and environment, as one file."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    names: dict[str, str] = {}
    for line in told.stdout.splitlines():
        name, _, value = line.partition("=")
        names[name.rpartition(".")[2]] = value.strip("'").replace("\\n", " ")
    return "\n".join(["[global]", *(f"{name} = {value}" for name, value in names.items()), ""])


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """The root of a container of the image."""
    container = buildah(folder, "from", IMAGE)
    yield Path(buildah(folder, "mount", container))
    buildah(folder, "umount", container)


def config(folder: Path) -> dict[str, Any]:
    """How the image says that it is run."""
    found: dict[str, Any] = json.loads(buildah(folder, "inspect", "--type", "image", IMAGE))["OCIv1"][
        "config"
    ]
    return found


def megabytes(place: Path) -> int:
    """What a folder takes on the disk."""
    told = subprocess.run(["du", "-sm", str(place)], capture_output=True, text=True, check=True)
    return int(told.stdout.split()[0])


def study_in(root: Path, how: dict[str, Any], folder: Path) -> tuple[list[int], list[dict[str, str]]]:
    """The exit codes of a master and its workers, and the rows of cells.csv."""
    results, port = folder / "results", str(free_port())
    results.mkdir()
    shutil.chown(results, *map(int, how["User"].split(":")))
    (root / "results").mkdir()
    master = ("--headless", "--master", "--master-bind-port", port, "--expect-workers", str(WORKERS))
    worker = ("--worker", "--master-host", "127.0.0.1", "--master-port", port)
    with stand_in("fake_service.py", "--delay-ms", DELAY_MS) as place, ExitStack() as stack:
        told = (*master, "--results-dir", "/results", "--pytorch-url", f"http://{place}", *STUDY)
        logs = [stack.enter_context((folder / f"{name}.log").open("w+")) for name in range(WORKERS + 1)]
        processes = [
            started(root, how, results, ("locust", "-f", "study", *words), log)
            for words, log in zip((told, *[worker] * WORKERS), logs, strict=True)
        ]
        codes = [ended(process) for process in processes]
    if any(codes):
        print((folder / "0.log").read_text(), (folder / "1.log").read_text(), sep="\n", file=sys.stderr)
    texts = [path.read_text() for path in results.glob("*/cells.csv")]
    rows = [row for text in texts for row in csv.DictReader(text.splitlines())]
    return codes, rows


def started(
    root: Path, how: dict[str, Any], results: Path, words: Sequence[str], log: Any
) -> subprocess.Popen[bytes]:
    """A process of the image, in mounts and a space of processes of its own, which end with it."""
    there = ("sh", "-c", 'cd "$0" && exec "$@"', how["WorkingDir"], *how["Entrypoint"], *words)
    enter = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", POD, "sh")
    command = [*enter, str(root), str(results), how["User"], *how["Env"], *there]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Its exit code; one that does not end is killed."""
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
