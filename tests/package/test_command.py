"""`inferswarm COMMAND`: which package's, on which path, with which locustfile."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import os
import sys
import tomllib
from collections.abc import Sequence

import pytest

from inferswarm import SUITE, add_path
from inferswarm.command import COMMANDS, main
from inferswarm.with_locust import resolved

STEP7 = str(SUITE / "locustfiles/step7.py")


def test_the_suite_stands_before_others_of_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/a", "/suite", "/b"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("/b", "", "/suite")))
    add_path("/suite")
    assert sys.path == ["/suite", "", "/a", "/b"]
    assert os.environ["PYTHONPATH"] == os.pathsep.join(("/suite", "/b")), "an empty one is the current folder"


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        (["-f", "step7", "--headless"], ["-f", STEP7, "--headless"]),
        (["-u", "1", f"--locustfile=step7, {__file__}"], ["-f", f"{STEP7},{__file__}", "-u", "1"]),
        (["--worker", "-fstep7", "--cells", "*/b1"], ["-f", STEP7, "--worker", "--cells", "*/b1"]),
        (["--headless"], ["--headless"]),
    ],
)
def test_a_study_is_named_as_locusts_file_is(typed: Sequence[str], given: Sequence[str]) -> None:
    assert resolved(typed) == given


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    declared = tomllib.loads((SUITE / "pyproject.toml").read_text())["project"]["version"]
    assert (main(["--version"]), main(["-V"])) == (0, 0)
    assert capsys.readouterr().out == f"inferswarm {declared}\n" * 2


def test_what_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main([]), main(["--help"]), main(["rnu"])) == (2, 0, 2)
    said = capsys.readouterr()
    assert said.err == f"inferswarm: rnu is not a command: give one of {', '.join(COMMANDS)}\n"
    assert main(["locust", "-f", "step9", "--headless"]) == 2
    assert capsys.readouterr().err.startswith(
        "inferswarm: -f step9: no such file; give a locustfile, or one of"
    )
    assert [line.split()[0] for line in said.out.splitlines() if line.startswith("  ")] == [*COMMANDS] * 2
