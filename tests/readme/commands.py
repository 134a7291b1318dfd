"""The commands of the README, as they stand there but for host names, and how tests run them."""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import re
import shlex
from pathlib import Path

from tests.locustfiles.console import ROOT, Console, few_pictures

SHORT = ["--iterations", "2", "--seconds", "0.1", "--warm-up", "0.5", *few_pictures()]
EIGHT = ["--cells", "*/b1/c8"]


def commands() -> list[str]:
    """The lines after `$` in the README's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def command(*parts: str) -> list[str]:
    """The one README command that has all these parts, its host names replaced by this machine's."""
    (found,) = [line for line in commands() if all(part in line for part in parts)]
    return shlex.split(found.replace("gpu-host", "127.0.0.1").replace("10.0.0.5", "127.0.0.1"))


def toml_block(start: str) -> str:
    """The README's one TOML file that begins so."""
    return block("toml", start)


def text_block(start: str) -> str:
    """The README's one excerpt of what a program prints that begins so."""
    return block("text", start)


def block(kind: str, start: str) -> str:
    """The one block of a kind that begins so."""
    blocks = re.findall(rf"```{kind}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (found,) = [text for text in blocks if text.startswith(start)]
    return str(found)


def run(arguments: list[str], folder: Path, seconds: float = 240) -> Console:
    """To its end, which must be a good one."""
    with Console(arguments, folder) as console:
        assert console.wait(seconds) == 0, console.text
    return console
