"""Triton's own tracing: where a server writes it, and the options that turn it on."""

from __future__ import annotations

from pathlib import Path

REQUESTS_A_FILE = 100
"""A file for each request would cost the server half a millisecond of each; in hundreds it is not seen.

A file that is not full is written when the server is told its trace settings, even the same ones again.
"""


def trace_file(folder: Path, engine: str) -> Path:
    """What the names of one server's trace files begin with, before `.0`, `.1`, …; old ones are removed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{engine}.json"
    for old in folder.glob(f"{file.name}.*"):
        if old.suffix[1:].isdigit():
            old.unlink()
    return file


def trace_options(file: Path) -> list[str]:
    """tritonserver's options to trace when each request was received, queued, computed and answered."""
    own = (f"triton,file={file}", f"triton,log-frequency={REQUESTS_A_FILE}")
    return [f"--trace-config={setting}" for setting in (*own, "rate=1", "level=TIMESTAMPS", "count=-1")]
