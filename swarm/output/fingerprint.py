"""What a study ran on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from swarm.sampling.gpus import find_nvml, gpu_names

PACKAGES = ("locust", "gevent", "geventhttpclient", "grpcio", "tritonclient", "numpy", "pillow")


def fingerprint() -> dict[str, Any]:
    """Versions, processor, kernel, and the commit; what cannot be read is left out."""
    facts = {
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "system": platform.platform(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "gpus": gpu_names(find_nvml()),
        "tcp_congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "git_commit": git_commit(),
    }
    return {name: fact for name, fact in facts.items() if fact}


def cpu_model() -> str:
    """The processor's name."""
    for line in read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def git_commit() -> str:
    """The checkout's commit, with `+` where files differ from it."""
    root = Path(__file__).parents[2]
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=root, check=False)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + ("+" if changed.returncode else "")


def read(path: str) -> str:
    """A small file's text, or nothing."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
