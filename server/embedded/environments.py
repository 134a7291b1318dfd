"""tritonserver's folders in /tmp: its Python backend makes one, and leaves it where it is killed.

The name, `python_env_` and six characters, does not say whose it is, and the place cannot be chosen. So those
that appear while one `up` starts its servers, in its turn, are noted as its own. Only empty folders are ever
removed: our models bring no environment of theirs to be unpacked there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from server.cache import cache

TEMPORARY, PATTERN = Path("/tmp"), "python_env_*"
NOTES = "triton"
NOTE = "environments-{pid}"
PROC = Path("/proc")


class Environments:
    """Those of one `up`, which are removed at its end; at its beginning, those of an `up` that was killed."""

    def __init__(self, temporary: Path = TEMPORARY, notes: Path | None = None) -> None:
        self._temporary, self._note = temporary, (notes or cache(NOTES)) / NOTE.format(pid=os.getpid())
        self._before: set[Path] = set()
        self._own: set[Path] | None = None

    def __enter__(self) -> Environments:
        remove_orphans(self._note.parent)
        self._before = present(self._temporary)
        return self

    def note(self) -> None:
        """All servers are there: what has come by now is theirs, and will be found again if we are killed."""
        self._own = present(self._temporary) - self._before
        self._note.parent.mkdir(parents=True, exist_ok=True)
        self._note.write_text("\n".join(map(str, sorted(self._own))))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove(present(self._temporary) - self._before if self._own is None else self._own)
        self._note.unlink(missing_ok=True)


def present(temporary: Path) -> set[Path]:
    """This user's, of whatever process."""
    found = set()
    for path in temporary.glob(PATTERN):
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid():
                found.add(path)
    return found


def remove(folders: Iterable[Path]) -> None:
    """Those that are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def remove_orphans(notes: Path) -> None:
    """Remove what the servers of supervisors that are gone have left."""
    for note in notes.glob(NOTE.format(pid="*")):
        pid = note.name.rpartition("-")[2]
        if pid.isdigit() and not (PROC / pid).exists():
            remove(Path(line) for line in note.read_text().splitlines())
            note.unlink(missing_ok=True)
