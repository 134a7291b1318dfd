"""`make quick`, `test` and `test-slow`: every part is run, and those that failed are named."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = '#!/bin/sh\necho "$*" >> ran\ncase "$*" in ${FAILS}) exit 1;; esac\n'


def make(folder: Path, target: str, fails: str) -> tuple[int, list[str], int]:
    """Its exit code, the parts that it says have failed, and how many processes it started."""
    (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "Makefile", folder)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    for name in ("requirements.lock", "requirements-server.txt", "pyproject.toml", "ran", ".venv/.set-up"):
        (folder / name).write_text("")
    own = {name: text for name, text in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "SLOW")}
    done = subprocess.run(
        ["make", target], cwd=folder, env={**own, "FAILS": fails}, capture_output=True, text=True, timeout=30
    )
    failed = re.findall(r"^failed: (.*) \(see above\)$", done.stderr, re.M)
    return done.returncode, sorted(" ".join(failed).split()), len((folder / "ran").read_text().splitlines())


@pytest.mark.parametrize(
    ("target", "fails", "failed", "processes"),
    [
        ("quick", "* tests/reports", ["quick-reports"], 3),
        ("test", "* tests/reports", ["test-reports"], 4),
        ("test", "*", ["test-patched", "test-reports", "test-studies", "test-unpatched"], 4),
        ("test-slow", "*benchmarks.soak*", ["slow-soak"], 7),
        ("test-slow", "*confcutdir*", ["slow-links"], 7),
        ("test-slow", "*slow tests/readme *", ["slow-readme"], 7),
    ],
)
def test_a_part_that_fails_stops_no_other_and_is_named(
    tmp_path: Path, target: str, fails: str, failed: list[str], processes: int
) -> None:
    code, named, started = make(tmp_path, target, fails)
    assert (code, named, started) == (2, failed, processes)
    assert make(tmp_path, target, "nothing") == (0, [], processes), "also after a failure"
