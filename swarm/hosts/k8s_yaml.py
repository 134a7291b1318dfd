"""Kubernetes objects as YAML: on one page, or in a folder with one file each."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from swarm.errors import UsageError

MARK = "# python -m swarm hosts manifests "
"""How every file of ours begins."""
_IN_BLOCKS = str.maketrans("", "", "\n\t")
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?\d")


class Dumper(yaml.SafeDumper):
    """Texts of several lines as they are, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """What occurs twice is written twice."""
        return True


def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A text; quoted where some reader might take it for a number (`1e3`), or see a line end."""
    odd = _LIKE_A_NUMBER.match(text) or not text.translate(_IN_BLOCKS).isprintable()
    style = '"' if odd else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, represent)


def document(made: Mapping[str, Any]) -> str:
    """One object."""
    return yaml.dump(dict(made), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000)


def stream(made: Sequence[Mapping[str, Any]], origin: str) -> str:
    """All objects, under the comment that says what made them."""
    return f"{origin}\n" + "---\n".join(document(one) for one in made)


def write_folder(folder: Path, made: Sequence[Mapping[str, Any]], origin: str) -> None:
    """One file an object, numbered in their order, in place of any that we wrote before.

    Raises UsageError where the folder holds something else, or cannot be written.
    """
    folder = folder.resolve()
    try:
        if folder.exists() and not is_ours(folder):
            raise UsageError(f"--output {folder}: holds other files; name a new or empty folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".manifests-") as written:
            for number, one in enumerate(made):
                Path(written, file_name(number, one)).write_text(stream([one], origin), encoding="utf-8")
            move_into(folder, Path(written))
    except OSError as error:
        raise UsageError(f"--output {folder}: cannot be written ({error.strerror}); name another") from error


def move_into(folder: Path, written: Path) -> None:
    """The files of `written` in place of those of `folder`."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for new in written.iterdir():
        new.rename(folder / new.name)


def is_ours(folder: Path) -> bool:
    """A folder with nothing in it but files that we have written."""
    return folder.is_dir() and all(map(has_mark, folder.iterdir()))


def has_mark(file: Path) -> bool:
    """Did we write this file?"""
    mark = MARK.encode()
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(mark)) == mark


def file_name(number: int, one: Mapping[str, Any]) -> str:
    """`05-configmap-step7.yaml`: applied in the order of their names."""
    return f"{number:02d}-{one['kind'].lower()}-{one['metadata']['name']}.yaml"
