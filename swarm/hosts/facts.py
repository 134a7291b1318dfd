"""Says what a host is: answers `facts` and `time`, a line each on standard input, until that closes.

Started by its file's name, by the Python that runs the host's workers: standard library only.
"""

import importlib.metadata
import json
import os
import platform
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PACKAGES = ("locust", "gevent", "geventhttpclient", "grpcio", "tritonclient", "numpy", "pillow")
"""What a worker runs on."""
COMMIT_FILE = ".inferswarm-commit"
"""Written by `swarm hosts prepare`, which sends the files of a commit without its history."""
NET = Path("/proc/sys/net/ipv4")


def facts(checkout: Path, net: Path = NET) -> dict[str, Any]:
    """Plain values for JSON; what cannot be read is left out."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (None if limit == resource.RLIM_INFINITY else limit for limit in limits)
    found = {
        "hostname": socket.gethostname(),
        "python": platform.python_version(),
        "packages": packages(),
        "commit": commit(checkout) or version(),
        "cores": cores(),
        "load": round(os.getloadavg()[0], 2),
        "files_soft": soft,
        "files_hard": hard,
        "ports": [int(word) for word in read(net / "ip_local_port_range").split()],
        "system": platform.platform(),
        "tcp_congestion_control": read(net / "tcp_congestion_control"),
    }
    return {name: fact for name, fact in found.items() if fact not in (None, "", [])}


def packages(names: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Their versions; what is not installed is left out."""
    found = {}
    for name in names:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def commit(checkout: Path) -> str:
    """The checkout's commit, with `+` where files differ from it; empty where it is not known."""
    if not (checkout / ".git").exists():
        return read(checkout / COMMIT_FILE)
    git = ["git", "-C", str(checkout)]
    try:
        asked = [*git, "rev-parse", "--short=12", "HEAD"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found + ("+" if changed.returncode else "")


def version() -> str:
    """Of the installed inferswarm; empty where it is not installed."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("inferswarm")
    return ""


def cores() -> int:
    """The processors that a process started here may use."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read(path: Path) -> str:
    """A small file's text, or nothing."""
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def main() -> int:
    """Answer until standard input closes."""
    for line in sys.stdin:
        match line.strip():
            case "time":
                print(time.time_ns(), flush=True)
            case "facts":
                print(json.dumps(facts(Path(__file__).resolve().parents[2])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
