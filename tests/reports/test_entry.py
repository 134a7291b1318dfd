"""Commands whose output nobody takes any more, and Ctrl-C while they are imported."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LONG = """
import sys
from reports.entry import outlast_output
outlast_output()
outlast_output()
for number in range(20_000):
    print(number, "–")
print("done", file=sys.stderr)
sys.exit(7)
"""
"""More than a pipe holds."""


def run_without_reader(*command: str, **environ: str) -> tuple[int, str]:
    """Its exit code and standard error; standard output is a pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        return run_to(closed.fileno(), *command, **environ)


def run_to(output: int, *command: str, **environ: str) -> tuple[int, str]:
    """The same with standard output of that descriptor."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, text=True, env={**os.environ, **environ}
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_changes_nothing_else(unbuffered: str) -> None:
    told = run_without_reader(sys.executable, "-c", LONG, PYTHONUNBUFFERED=unbuffered)
    assert told == (7, "done\n")


def test_a_full_disk_is_told_once() -> None:
    with open("/dev/full", "wb") as full:
        code, errors = run_to(full.fileno(), sys.executable, "-c", LONG)
        both = subprocess.run([sys.executable, "-c", LONG], cwd=ROOT, stdout=full, stderr=full).returncode
    first, second = errors.splitlines()
    assert (code, both) == (7, 7)
    assert "/dev/full" in first
    assert second == "done"


def test_servers_end_where_their_output_is_full() -> None:
    with open("/dev/full", "wb") as full:
        code, errors = run_to(full.fileno(), sys.executable, "-m", "server", "up", "--emulate", "1+0")
    assert (code, errors.count("\n"), "No space left on device" in errors) == (2, 1, True)


def test_what_an_encoding_lacks_is_replaced() -> None:
    code = "from reports.entry import outlast_output; outlast_output(); print('a – b')"
    ascii_alone = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=ascii_alone, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"a ? b\n")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("inferswarm", "--help"), 0),
        (("inferswarm", "report", "no-such-folder"), 2),
        (("inferswarm", "history", "--help"), 0),
        (("inferswarm", "trace", "--help"), 0),
        (("inferswarm", "doctor"), 0),
        (("server", "doctor"), 0),
        (("swarm", "link", "--help"), 0),
        (("reports", "compare", "--help"), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.system
def test_commands_outlast_their_reader(command: Sequence[str], code: int) -> None:
    exit_code, errors = run_without_reader(sys.executable, "-m", *command)
    assert exit_code == code
    assert "Error" not in errors
    assert "Exception" not in errors


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("report", "."), 130),
        (("history", "."), 130),
        (("probe", "http://127.0.0.1:9"), 130),
        (("trace", "--help"), 130),
        (("doctor",), 130),
        (("run", "--help"), 3),
        (("locust", "-f", "step7", "--list"), 3),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.system
def test_an_interrupt_during_imports_is_silent(command: Sequence[str], code: int) -> None:
    """At whatever moment it comes: what has done its work by then ends as it did."""
    seen = set[int]()
    for tenths in (1, 2, 3, 5):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTIBLE, *command],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "begins\n"
        time.sleep(tenths / 20)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors
        seen.add(process.returncode)
    assert code in seen
    assert seen <= {code, 0, 2, -signal.SIGINT}


INTERRUPTIBLE = """
import sys
from inferswarm.command import main
print("begins", flush=True)
sys.exit(main(sys.argv[1:]))
"""
