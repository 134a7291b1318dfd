"""A study that is interrupted at any moment never passes, shows no traceback, leaves nothing half-written."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.locustfiles.console import LOCUST, ROOT, Console, few_pictures
from tests.processes import wait_until

EMULATED = ("--emulate", "1+0", "--endpoints", "onnx-http", "--repeats", "1", "--warm-up", "0.5")
OWN_LOCUST = (sys.executable, "-m", "inferswarm", "locust", "-f", "step7", "--headless")
RUN = (sys.executable, "-m", "inferswarm", "run", "-f", "step7", "--workers", "1")
MOMENTS = random.Random(1)
MOMENTS_S = sorted(MOMENTS.uniform(0.8, 6) for _ in range(20))
"""Before them a busy machine may not have begun with us: Python itself prints a traceback."""


def interrupt(
    way: tuple[str, ...], folder: Path, moment_s: float, number: signal.Signals = signal.SIGINT
) -> None:
    """Start it, interrupt it, and look at what it leaves."""
    results = folder / "results"
    console = Console([*way, *EMULATED, *few_pictures(), "--results-dir", str(results)], folder)
    time.sleep(moment_s)
    console.signal(number)
    assert console.wait(60) == 3, console.text
    assert "Traceback" not in console.text
    wait_until(lambda: console.left_behind() == [], 10, lambda: console.text)
    for result in results.iterdir() if results.exists() else ():
        report = [sys.executable, "-m", "reports", "show", str(result)]
        done = subprocess.run(report, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("moment_s", MOMENTS_S)
def test_at_any_moment(tmp_path: Path, moment_s: float) -> None:
    interrupt(OWN_LOCUST, tmp_path, moment_s)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment_s", [1.5, 4])
def test_by_any_signal_of_the_launcher(tmp_path: Path, number: signal.Signals, moment_s: float) -> None:
    interrupt(RUN, tmp_path, moment_s, number)


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_as_soon_as_it_has_a_folder(tmp_path: Path, number: signal.Signals) -> None:
    """In the first tenths of a second of a study, by Locust's own command."""
    results = tmp_path / "results"
    arguments = ("--headless", *EMULATED, *few_pictures(), "--results-dir", str(results))
    console = Console([*LOCUST, *arguments], tmp_path)
    wait_until(lambda: results.exists() and any(results.iterdir()), 40, lambda: console.text)
    console.signal(number)
    assert console.wait(60) == 3, console.text
    assert "Traceback" not in console.text
    (result,) = results.iterdir()
    report = [sys.executable, "-m", "reports", "show", str(result)]
    assert subprocess.run(report, cwd=ROOT, capture_output=True).returncode in (0, 3)
