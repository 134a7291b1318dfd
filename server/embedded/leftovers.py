"""Where the servers of one `up` log: a folder named after its process, so that no other writes there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from server.cache import cache

LOGS = "logs"
PROC = Path("/proc")
KEPT = 5


def own_folder() -> Path:
    """This process's folder of logs."""
    return cache(LOGS) / str(os.getpid())


def remove_old() -> None:
    """Remove the folders of processes that are gone, except for the latest 5, which may still be read."""
    folders = [
        path for path in cache(LOGS).glob("*") if path.name.isdigit() and not (PROC / path.name).exists()
    ]
    for folder in sorted(folders, key=_last_changed, reverse=True)[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def _last_changed(folder: Path) -> float:
    # Another `up` may have removed it meanwhile.
    return folder.stat().st_mtime if folder.exists() else 0.0
