"""Gates from the console: the exit code is the verdicts', and a study that fails for certain is stopped."""

import json
import xml.etree.ElementTree as ET
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import SHORT, Console, study

pytestmark = pytest.mark.system

SLOW = "[[threshold]]\nrequire = 'latency_p50_ms <= 50'\nabort_after_s = 2\n"
SERIAL = ("--cells", "pytorch-http/b1/c1")


def gated(folder: Path, thresholds: str, *arguments: str) -> Console:
    """A study with these thresholds."""
    (folder / "thresholds.toml").write_text(thresholds)
    return study(folder, "--gate", str(folder / "thresholds.toml"), *arguments)


def verdicts(console: Console) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((console.result() / "gates.json").read_text())["verdicts"]
    return found


def test_a_study_that_keeps_its_bounds_passes(tmp_path: Path) -> None:
    text = "[[threshold]]\nrequire = 'latency_max_ms <= 20000'\nendpoint = 'emulated-*'\n"
    emulated = ("--emulate", "4+0.5", "--cells", "emulated-*/b1/c1")
    console = gated(tmp_path, text, *emulated, *SHORT)
    assert console.wait(60) == 0, console.text
    names = {path.name for path in console.result().iterdir()}
    assert {"thresholds.toml", "gates.json", "gates.md", "junit.xml", "report.html"} <= names
    assert (console.result() / "thresholds.toml").read_text() == text
    options = console.ledger()[0]["options"]
    assert (options["gate"], options["baseline"]) == (str(tmp_path / "thresholds.toml"), "")
    assert [one["outcome"] for one in verdicts(console)] == ["pass"] * 4
    assert len(list(ET.parse(console.result() / "junit.xml").iter("testcase"))) == 4
    assert console.text.index("Verdicts: ") > console.text.index("[2/2]")


def test_a_bad_run_is_stopped_and_fails(start_service: StartService, tmp_path: Path) -> None:
    """Certain as soon as there are five seconds with results; ten more are the bound."""
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '200')}")
    console = gated(tmp_path, SLOW, *target, "--seconds", "120", "--warm-up", "1")
    assert console.wait(60) == 1, console.text
    (said,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert said.startswith("inferswarm: gate: pytorch-http/b")
    ledger = console.ledger()
    first, *_ = [record for record in ledger if record["kind"] == "window" and record["phase"] == "measure"]
    ended = next(record for record in ledger if record.get("event") == "end")
    assert (ended["status"], ended["note"]) == ("aborted", said.removeprefix("inferswarm: "))
    assert datetime.fromisoformat(ended["utc"]).timestamp() - first["second"] < 5 + 10
    footer = ledger[-1]
    assert footer["status"] == "failed"
    stop = footer["gate"]
    assert (stop["threshold"], stop["cell"], stop["repeat"]) == (1, ended["cell"], 1)
    failed = [one for one in verdicts(console) if one["outcome"] == "fail"]
    assert [(one["cell"], one["require"]) for one in failed] == [(ended["cell"], "latency_p50_ms <= 50")]


def test_a_typo_is_told_before_any_load(start_service: StartService, tmp_path: Path) -> None:
    console = gated(
        tmp_path,
        f"{SLOW}endpoint = 'pytorch-htp'\n",
        *("--pytorch-url", f"127.0.0.1:{start_service()}", "--results-dir", str(tmp_path / "results")),
    )
    assert console.wait(20) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert "threshold 1: endpoint 'pytorch-htp'" in line
    assert "did you mean pytorch-http" in line
    assert list((tmp_path / "results").iterdir()) == []


def test_a_study_without_any_request_is_no_pass(start_service: StartService, tmp_path: Path) -> None:
    # What comes before the load is answered.
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--status-after', '9')}", *SERIAL)
    console = gated(tmp_path, f"{SLOW}[[threshold]]\nrequire = 'failures <= 0'\n", *target, *SHORT)
    assert console.wait(60) == 3, console.text
    assert "no request succeeded in the warm-up, so nothing was measured" in console.text
    assert {one["outcome"] for one in verdicts(console)} == {"inconclusive"}


def test_repeats_are_added_until_verdicts_are_decided(start_service: StartService, tmp_path: Path) -> None:
    """A rate takes three repeats to be judged; one was asked for, and there may be five."""
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '20')}", *SERIAL)
    more = ("--repeat-until-decided", "5")
    console = gated(tmp_path, "[[threshold]]\nrequire = 'images_per_s >= 1'\n", *target, *SHORT, *more)
    assert console.wait(60) == 0, console.text
    assert "repeat 2: 1 verdict is open" in console.text
    assert "repeat 3: 1 verdict is open" in console.text
    assert "[3/3]" in console.text
    assert "repeat 4" not in console.text
    assert [row["repeat"] for row in console.cells()] == ["1", "2", "3"]
    assert [one["outcome"] for one in verdicts(console)] == ["pass", "pass"]
