"""What torch.compile needs on a host: a PyTorch new enough, a C++ compiler, and Python's headers."""

import os
import re
import shlex
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from server.hardware.packages import version_of

DEFAULT = "g++"
LEAST = (2, 6)
"""The first PyTorch that can be told to fail instead of recompiling."""


def compiler_lack(environ: Mapping[str, str] = os.environ, headers: Path | None = None) -> str:
    """What is missing here, and the fix, as a sentence without its end; nothing where all is there."""
    found = version_of("torch")
    if tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < LEAST:
        return f"torch.compile needs PyTorch {'.'.join(map(str, LEAST))} or later, not {found or 'none'}"
    compiler = (shlex.split(environ.get("CXX", "")) or [DEFAULT])[0]
    if not shutil.which(compiler, path=environ.get("PATH")):
        return f"torch.compile needs a C++ compiler, and {compiler} is not there: install g++"
    headers = headers or Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        python = sysconfig.get_python_version()
        return f"torch.compile needs Python's headers, and {headers} has none: install python{python}-dev"
    return ""
