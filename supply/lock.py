"""The lock: every package that the requirements lead to, pinned, with the hashes of its files; made by uv.

`make lock` keeps the versions that the lock has, as far as the requirements still allow them; `make lock
ARGS=--upgrade` takes the newest ones.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
UV = ROOT / ".venv/bin/uv"
LOOSE = ("torch", "torchvision")
"""Pinned by version alone: see HEAD."""
MAKE = "# Made by `make lock` from {source}: change that, and not this.\n"
HEAD = """\
#
# torch and torchvision are not in it. One version of them is built many times over (with CUDA, for the CPU,
# by whoever builds their own), each build has other hashes, and which one suits is for the machine to say.
# `make setup` installs all of this by its hashes, and then those two by the versions that
# requirements-server.txt pins, with whatever else their build asks for (that of PyPI: NVIDIA's libraries). To
# pin your build too, let pip tell its hashes,
#     python -m pip download --no-deps -d wheels torch==2.13.0 torchvision==0.28.0
#     python -m pip hash wheels/*
# write `torch==2.13.0 --hash=sha256:...` and the other into a file of your own, and install that one by
# `python -m pip install --require-hashes --no-deps -r FILE` into .venv before `make setup`, which leaves them
# there.
"""
LOCKS = {
    "requirements.lock": ("requirements-dev.txt", HEAD),
    "requirements-client.lock": ("requirements-client.txt", ""),
    "requirements-supply.lock": ("requirements-supply.txt", ""),
}
"""A lock, what it is made from, and what is to be said of it. That of client hosts is a part of the first."""
COMPILE = (
    *("pip", "compile", "--quiet", "--no-header", "--universal", "--python-version", "3.11"),
    *("--generate-hashes", "--fork-strategy", "fewest", "--no-emit-index-url"),
    *(word for name in LOOSE for word in ("--no-emit-package", name)),
)
_EXCLUDED = re.compile(r"\n# The following packages were excluded from the output:\n(# .*\n)+\Z")


def main(argv: Sequence[str]) -> int:
    """Make every lock anew, `argv` being uv's own options; 0, or 2 with uv's sentence."""
    for name, (source, about) in LOCKS.items():
        same = ("--constraints", "requirements.lock") if name == "requirements-client.lock" else ()
        lock = ROOT / name
        known = lock.read_text() if lock.exists() else ""
        made = compiled(known, [*same, *argv, source])
        if made is None:
            return 2
        # One that has not changed keeps its time, so that make installs nothing again.
        if (text := whole(made, source, about)) != known:
            lock.write_text(text)
    return 0


def compiled(known: str, words: Sequence[str]) -> str | None:
    """What uv makes of its words, with the versions that are known where they fit; None where it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "made.lock")
        file.write_text(known)
        done = subprocess.run([UV, *COMPILE, *words, "--output-file", str(file)], cwd=ROOT)
        return None if done.returncode else file.read_text()


def whole(made: str, source: str, about: str) -> str:
    """What uv has made, under its head."""
    return MAKE.format(source=source) + about + "\n" + _EXCLUDED.sub("", made)
