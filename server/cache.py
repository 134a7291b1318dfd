"""Where servers keep what they build: one folder of the user's, whichever checkout they are started from.

tritonserver starts its Python stubs through a shell that takes a path with a space for two, so this one has
none, whatever the checkout's.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from server.errors import SetUpError

VARIABLE = "INFERSWARM_CACHE"
HOMES = (("XDG_CACHE_HOME", "inferswarm"), ("HOME", ".cache", "inferswarm"))
FIT = re.compile(r"/[A-Za-z0-9_./+@-]*")
"""What neither a shell nor the loader's path splits."""


def cache(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The place of `name` in the cache; SetUpError where no folder for it can be had."""
    return cache_folder(environ) / name


def made_once(name: str, contents: bytes, fill: Callable[[Path], None]) -> Path:
    """The folder of what is made of `contents`, named after `name` and them; `fill` is given an empty one."""
    target = cache(f"{name}-{hashlib.sha256(contents).hexdigest()[:12]}")
    # Two commands may make the same folder at once: each fills its own, and the first rename wins.
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        fill(made)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


FIX = f"set {VARIABLE} to a writable folder, as an absolute path without spaces or quotes."


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """INFERSWARM_CACHE, the user's caches, or one in the temporary folder, whichever will do; it is made."""
    if given := environ.get(VARIABLE):
        if fits(Path(given)):
            return Path(given)
        raise SetUpError(f"{VARIABLE}={given} cannot be used: {FIX}")
    homes = [Path(environ[name], *more) for name, *more in HOMES if environ.get(name)]
    for folder in homes:
        if fits(folder):
            return folder
    for folder in temporary():
        if fits(folder, private=False):
            return folder
    raise SetUpError(f"no writable folder for what servers build: {FIX}")


def temporary() -> list[Path]:
    """The last resort: folders where others write, too."""
    return [
        Path(one, f"inferswarm-{os.getuid()}")
        for one in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp"))
    ]


def fits(folder: Path, private: bool = True) -> bool:
    """Whether tritonserver can take its path, and it is ours to write to; it is made, its owner's alone.

    `private`: nobody else may write to where it lies.
    """
    if not FIT.fullmatch(str(folder)):
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat() if private else folder.lstat()
    except OSError:
        return False
    # In /tmp another user may have put it there, or a link to elsewhere.
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and os.access(folder, os.W_OK | os.X_OK)
    )


if __name__ == "__main__":
    try:
        print(cache_folder())
    except SetUpError as error:
        sys.exit(str(error))
