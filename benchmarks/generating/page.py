"""benchmarks/README.md: what the figures were taken on, and the table between its markers."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from reports.format import plural

PAGE = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- generator: begin -->", "<!-- generator: end -->"
PACKAGES = ("locust", "gevent", "geventhttpclient", "grpcio", "tritonclient", "orjson", "numpy")
ALL_PEERS = ("perf_analyzer", "wrk", "hey", "h2load", "ghz")


def about(machine: Mapping[str, str], versions: Mapping[str, str], options: argparse.Namespace) -> str:
    """The fingerprint, and what was run and what was not, as a list in Markdown."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    quick = ", --quick" if options.quick else ""
    run = [f"{name} ({versions[name]})" for name in ALL_PEERS if name in versions]
    absent = [name for name in ALL_PEERS if name not in versions]
    return "\n".join((
        f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {machine['commit'] or 'unknown'}",
        f"- {machine['cpu']}, {os.cpu_count()} cores, one for the client and one for the server",
        f"- {platform.platform()}, Python {platform.python_version()}",
        f"- {packages}",
        f"- {plural(options.repeats, 'repeat')} of {options.seconds:g} s each{quick}",
        f"- peers found: {', '.join(run) or 'no peer'}",
        f"- peers not found, and not run: {', '.join(absent) or 'none'}",
    ))  # fmt: skip


def version(package: str) -> str:
    """Of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def between(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with a text between its markers. Raises ValueError where it lacks one."""
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"benchmarks/README.md lacks the line {begin} or {end}; put both back")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def write_page(facts: str, table: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace what an earlier run left."""
    PAGE.write_text(between(PAGE.read_text(), f"{facts}\n\n{table}", begin, end))
