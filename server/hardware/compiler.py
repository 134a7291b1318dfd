"""What torch.compile needs of a host besides PyTorch: a C++ compiler, and Python's headers."""

import os
import shlex
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

DEFAULT = "g++"


def compiler_lack(environ: Mapping[str, str] = os.environ, headers: Path | None = None) -> str:
    """What is missing here, and the mend, as a sentence without its end; nothing where all is there."""
    compiler = (shlex.split(environ.get("CXX", "")) or [DEFAULT])[0]
    if not shutil.which(compiler, path=environ.get("PATH")):
        return f"torch.compile needs a C++ compiler, and {compiler} is not there: install g++"
    headers = headers or Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        version = sysconfig.get_python_version()
        return f"torch.compile needs Python's headers, and {headers} has none: install python{version}-dev"
    return ""
