"""The end of a study: who decides on its exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from swarm.output import report_process
from swarm.study.finish import StudyEnd
from tests.reading import read_ledger
from tests.swarm.stand import Stand

STOP = {"threshold": 1, "require": "latency_p50_ms <= 50", "cell": "c", "repeat": 1, "why": "it is slow"}


def ended(
    stand: Stand,
    folder: Path,
    verdict: tuple[str, int | None] | None,
    fault: str = "",
    failures: int = 0,
    missed: Sequence[str] = (),
) -> tuple[str, int]:
    """Close a study of ten requests whose gate says this; None is no gate."""
    (folder / "study.json").write_text(json.dumps({"inconclusive": False}))
    collector: Any = SimpleNamespace(
        fault=fault, requests=10, failures=failures, end_study=lambda: None, raw=SimpleNamespace(write=id)
    )
    gate: Any = SimpleNamespace(
        given=verdict is not None,
        facts=lambda: {"gate": STOP} if verdict else {},
        judge=lambda tables: verdict,
    )
    conductor: Any = SimpleNamespace(abort=lambda note: None)
    servers: Any = SimpleNamespace(copy_logs=lambda folder: None)
    events: Any = SimpleNamespace(finish=lambda: list(missed))
    finish = StudyEnd(
        conductor, collector, stand.ledger, folder, servers, stand.said.append, 0.0, gate, events
    )
    return finish.close("complete", "")


@pytest.fixture(autouse=True)
def report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_process, "show", lambda folder, tables: ("the report", 0))


@pytest.mark.parametrize(("failures", "code"), [(0, 0), (1, 1)])
def test_without_a_gate_failures_decide(stand: Stand, tmp_path: Path, failures: int, code: int) -> None:
    assert ended(stand, tmp_path, None, failures=failures) == ("the report", code)
    assert "gate" not in list(read_ledger(stand.path).records)[-1]


@pytest.mark.parametrize("missed", [[], ["timelines.py missed events: 2 of 9 events dropped."]])
def test_what_listeners_missed_is_in_the_footer(stand: Stand, tmp_path: Path, missed: list[str]) -> None:
    assert ended(stand, tmp_path, None, missed=missed) == ("the report", 0)
    footer = list(read_ledger(stand.path).records)[-1]
    assert footer.get("events", []) == missed


@pytest.mark.parametrize("code", [0, 1, 3])
def test_with_a_gate_verdicts_decide(stand: Stand, tmp_path: Path, code: int) -> None:
    assert ended(stand, tmp_path, ("verdicts", code), failures=1) == ("verdicts", code)
    assert list(read_ledger(stand.path).records)[-1]["gate"] == STOP


@pytest.mark.parametrize("verdict", [None, ("verdicts", 0), ("verdicts", 1)])
def test_a_ledger_that_lacks_something_decides_nothing(
    stand: Stand, tmp_path: Path, verdict: tuple[str, int] | None
) -> None:
    assert ended(stand, tmp_path, verdict, fault="disk full")[1] == 3


@pytest.mark.parametrize("code", [2, -9, None])
def test_without_verdicts_there_is_a_report_and_no_pass(
    stand: Stand, tmp_path: Path, code: int | None
) -> None:
    text, found = ended(stand, tmp_path, ("reports: damaged", code))
    assert found == 3
    assert text.startswith("the report\nreports: damaged\ninferswarm: there are no verdicts on this study")
