"""What the tests of locks and licences share: what requirements files ask for, and what a lock holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOOSE = ("torch", "torchvision")
"""Pinned by version alone: docs/supply.md says why."""


class Locked(NamedTuple):
    """One entry of a lock."""

    requirement: Requirement
    hashes: tuple[str, ...]


def asked(path: Path) -> Iterator[Requirement]:
    """The requirements of a file, and of those that it names by `-r`."""
    for line in path.read_text().splitlines():
        text = line.partition(" #")[0].strip()
        if text.startswith("-r "):
            yield from asked(path.parent / text.removeprefix("-r ").strip())
        elif text and not text.startswith("#"):
            yield Requirement(text)


def locked(path: Path) -> Iterator[Locked]:
    """The entries of a lock."""
    for entry in path.read_text().replace("\\\n", " ").splitlines():
        text, *hashes = entry.split(" --hash=")
        if text.strip() and not text.lstrip().startswith("#"):
            yield Locked(Requirement(text.strip()), tuple(one.strip() for one in hashes))
