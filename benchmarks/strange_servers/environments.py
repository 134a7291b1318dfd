"""A virtual environment for each server, kept in the cache; nothing of this project is installed in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from server.cache import made_once
from server.errors import SetUpError

FOLDER = Path(__file__).parent
UV = str(Path(sys.executable).with_name("uv"))
INSTALL_S = 1_200.0


def python_of(server: str) -> Path:
    """The Python with what `server`.txt pins, installed where it is not there yet. Raises SetUpError."""
    requirements = FOLDER / f"{server}.txt"
    made_of = requirements.read_bytes() + sys.version.encode()
    made = made_once(f"strangers/{server}", made_of, lambda folder: install(folder, requirements))
    return made / "bin" / "python"


def install(folder: Path, requirements: Path) -> None:
    """Make an environment in an empty folder; it may be renamed, as its scripts are not used."""
    print(f"installing {requirements.name} in an environment of its own...", flush=True)
    run([UV, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)])
    python = str(folder / "bin" / "python")
    run([UV, "pip", "install", "--quiet", "--python", python, "--requirements", str(requirements)])


def run(command: list[str]) -> None:
    """Run to the end, at a low priority. Raises SetUpError with the last line of what went wrong."""
    done = subprocess.run(["nice", *command], capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SetUpError(f"`{' '.join(command[1:3])}` failed: {said}")
