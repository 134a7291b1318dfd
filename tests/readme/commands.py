"""The commands of the README and its pages, as they stand there but for host names; how tests run them."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import re
import shlex
from pathlib import Path

from tests.locustfiles.console import ONCE, ROOT, Console, few_pictures

NAMES = ("studies", "traffic", "run", "exporters", "results", "history", "report", "development")
PAGES = tuple(f"docs/{name}.md" for name in NAMES)
"""Where the README leads: a command stands on one of these pages or in the README, and only once."""
SHORT = ["--iterations", "2", "--seconds", "0.1", "--warm-up", "0.5", *ONCE, *few_pictures()]
EIGHT = ["--cells", "*/b1/c8"]


def commands() -> list[str]:
    """The lines after `$` in the console blocks."""
    lines = [line for text in blocks("console") for line in text.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


def command(*parts: str) -> list[str]:
    """The one command that has all these parts, its host names replaced by this machine's."""
    (found,) = [line for line in commands() if all(part in line for part in parts)]
    return shlex.split(found.replace("gpu-host", "127.0.0.1").replace("10.0.0.5", "127.0.0.1"))


def toml_block(start: str) -> str:
    """The one TOML file that begins so."""
    (found,) = [text for text in blocks("toml") if text.startswith(start)]
    return found


def blocks(kind: str) -> list[str]:
    """The blocks of a kind, page by page."""
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", *PAGES)]
    return [text for page in pages for text in re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)]


def run(arguments: list[str], folder: Path, seconds: float = 240) -> Console:
    """To its end, which must be a good one."""
    with Console(arguments, folder) as console:
        assert console.wait(seconds) == 0, console.text
    return console
