"""What servers leave behind, and removing it: their logs, tritonserver's shared memory and folders in /tmp.

tritonserver's Python backend makes a folder there, and leaves it where it is killed. The name, `python_env_`
and six characters, does not say whose it is, and the place cannot be chosen. So those that appear while one
`up` starts its servers, under the start lock, are noted as its own. Only empty folders are ever removed: our
models bring no environment of theirs to be unpacked there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from server.cache import cache
from server.errors import SetUpError

LOGS = "logs"
PROC = Path("/proc")
KEPT = 5
NOTE = "environments-{pid}"
FOLDER = Path("/dev/shm")
MB = 1 << 20
INSTANCE_MB = 24
"""A batch of 32 images as float32, their embeddings, and the backend's initial use: 23 MB were measured."""


def is_gone(pid: str) -> bool:
    """Whether it is the number of a process that has ended."""
    return pid.isdigit() and not (PROC / pid).exists()


def log_folder() -> Path:
    """This process's folder of logs."""
    return cache(LOGS) / str(os.getpid())


def remove_old_logs() -> None:
    """Remove the folders of processes that are gone, except for the latest 5, which may still be read."""
    folders = [path for path in cache(LOGS).glob("*") if is_gone(path.name)]
    for folder in sorted(folders, key=_last_changed, reverse=True)[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def _last_changed(folder: Path) -> float:
    # Another `up` may have removed it meanwhile.
    return folder.stat().st_mtime if folder.exists() else 0.0


class Environments:
    """Those of one `up`, which are removed at its end; at its beginning, those of an `up` that was killed."""

    def __init__(self, temporary: Path = Path("/tmp"), notes: Path | None = None) -> None:
        self._temporary, self._note = temporary, (notes or cache("triton")) / NOTE.format(pid=os.getpid())
        self._before: set[Path] = set()
        self._own: set[Path] | None = None

    def __enter__(self) -> Environments:
        remove_orphaned_environments(self._note.parent)
        self._before = present(self._temporary)
        return self

    def note(self) -> None:
        """All servers are there: what has come by now is theirs, and will be found again if we are killed."""
        self._own = present(self._temporary) - self._before
        self._note.parent.mkdir(parents=True, exist_ok=True)
        self._note.write_text("\n".join(map(str, sorted(self._own))))

    def __exit__(self, *_: object) -> None:
        remove_environments(present(self._temporary) - self._before if self._own is None else self._own)
        self._note.unlink(missing_ok=True)


def present(temporary: Path) -> set[Path]:
    """This user's folders of environments, of whatever process."""
    found = set()
    for path in temporary.glob("python_env_*"):
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid():
                found.add(path)
    return found


def remove_environments(folders: Iterable[Path]) -> None:
    """Remove those that are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def remove_orphaned_environments(notes: Path) -> None:
    """Remove what the servers of supervisors that are gone have left."""
    for note in notes.glob(NOTE.format(pid="*")):
        if is_gone(note.name.rpartition("-")[2]):
            remove_environments(Path(line) for line in note.read_text().splitlines())
            note.unlink(missing_ok=True)


def needed_mb(tritonservers: int, instances: int, steps: int) -> int:
    """MB of shared memory for so many servers, each with a model's instances, its steps, the null model."""
    return tritonservers * (INSTANCE_MB * (instances + steps) + 1)


def check_shared_memory(needed_mb: int) -> None:
    """SetUpError where there is less shared memory than tritonservers will take.

    Without it a tritonserver would die of its first large batch, in the middle of a study.
    """
    free_mb = 0
    with suppress(OSError):
        found = os.statvfs(FOLDER)
        free_mb = found.f_bavail * found.f_frsize // MB if os.access(FOLDER, os.W_OK) else 0
    size = f"{1 + needed_mb // 1024}g"
    if free_mb < needed_mb:
        raise SetUpError(
            f"{FOLDER} has {free_mb} MB free, and tritonserver needs {needed_mb} there: "
            f"run `mount -o remount,size={size} {FOLDER}`, or start the container with --shm-size={size}."
        )


def prefix_for(engine: str) -> str:
    """What the names of one server's shared memory begin with; it tells whose server it is."""
    return f"inferswarm_{os.getpid()}_{engine}_"


def memory_of(prefix: str) -> Iterable[Path]:
    """One server's shared memory; none for a server without a prefix."""
    return FOLDER.glob(f"{prefix}*") if prefix else ()


def close_to_others(prefix: str) -> None:
    """Let its owner alone read it: the Python backend makes it readable for all, whatever the umask."""
    for made in memory_of(prefix):
        # It may be another user's link to one of our files.
        with suppress(OSError), open(made, "rb", opener=_of_no_link) as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                os.fchmod(file.fileno(), 0o600)


def _of_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def remove_shared_memory(prefix: str) -> None:
    """Remove what a server that has ended left behind."""
    for leftover in memory_of(prefix):
        _remove(leftover)


def remove_orphaned_memory() -> None:
    """Remove what the servers of supervisors that are gone left behind."""
    for leftover in FOLDER.glob("inferswarm_*_*"):
        if is_gone(leftover.name.split("_")[1]):
            _remove(leftover)


def _remove(leftover: Path) -> None:
    # Another user may have made one of such a name.
    with suppress(OSError):
        leftover.unlink()
