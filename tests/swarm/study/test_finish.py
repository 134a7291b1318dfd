"""The end of a study: who decides on its exit code."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.ledger.ledger import Record
from swarm.launcher.launch_info import BEGAN
from swarm.output import report_process
from swarm.study.finish import StudyEnd
from tests.reading import read_ledger
from tests.swarm.stand import Stand

STOP = {"threshold": 1, "require": "latency_p50_ms <= 50", "cell": "c", "repeat": 1, "why": "it is slow"}


class Ending:
    """The end of a study of ten requests, whose gate says `verdict`; None is no gate."""

    def __init__(
        self, stand: Stand, folder: Path, verdict: tuple[str, int | None] | None = None, **more: Any
    ) -> None:
        self.done: list[str] = []
        """What happened, in order."""
        self.stand, self.folder, self.verdict = stand, folder, verdict
        self.fault, self.requests, self.failures, self.allowed = "", 10, 0, 0.0
        self.missed: list[str] = []
        self.logs = ""
        self.raw: Callable[[Path], object] = lambda folder: self.done.append("raw")
        (folder / "study.json").write_text(json.dumps({"inconclusive": False}))
        vars(self).update(more)

    def close(self) -> tuple[str, int]:
        done, gated = self.done.append, self.verdict is not None
        counts = {"fault": self.fault, "requests": self.requests, "failures": self.failures}
        raw = SimpleNamespace(write=self.raw)
        collector: Any = SimpleNamespace(**counts, end_study=lambda: done("counted"), raw=raw)
        facts = {"gate": STOP} if gated else {}
        gate: Any = SimpleNamespace(given=gated, facts=lambda: facts, judge=lambda tables: self.verdict)
        conductor: Any = SimpleNamespace(abort=lambda note: done(f"run ended: {note}"))
        servers: Any = SimpleNamespace(copy_logs=lambda folder: done(f"logs in {folder.name}"))
        events: Any = SimpleNamespace(finish=lambda: done("told") or list(self.missed))
        end = StudyEnd(
            *(conductor, collector, self.stand.ledger, self.folder, servers, self.stand.said.append),
            *(self.allowed, gate, events, self.logs),
        )
        return end.close("complete", "why")

    @property
    def footer(self) -> Record:
        """The last line of the ledger."""
        return list(read_ledger(self.stand.path).records)[-1]


@pytest.fixture(autouse=True)
def report(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The last is the exit code of the program that makes the report."""
    codes = [0]
    monkeypatch.setattr(report_process, "show", lambda folder, tables: ("the report", codes[-1]))
    return codes


def test_the_run_under_way_ends_before_the_ledger_and_that_before_the_report(
    stand: Stand, tmp_path: Path
) -> None:
    ending = Ending(stand, tmp_path)
    assert ending.close() == ("the report", 0)
    assert ending.done == ["run ended: why", "counted", "told", "logs in logs", "raw"]
    assert {**ending.footer, "utc": ""} == {
        "kind": "footer",
        "status": "complete",
        "reason": "why",
        "utc": "",
    }
    with pytest.raises(ValueError, match="closed file"):
        stand.ledger.write({"kind": "window"})


@pytest.mark.parametrize(
    ("failures", "allowed", "code"), [(0, 0.0, 0), (1, 0.0, 1), (1, 0.1, 0), (2, 0.1, 1), (10, 1.0, 0)]
)
def test_without_a_gate_the_share_of_failures_decides(
    stand: Stand, tmp_path: Path, failures: int, allowed: float, code: int
) -> None:
    assert Ending(stand, tmp_path, failures=failures, allowed=allowed).close() == ("the report", code)


@pytest.mark.parametrize(
    ("about", "requests", "made"),
    [('{"inconclusive": true}', 10, 0), ("no JSON", 10, 0), ('{"inconclusive": false}', 0, 0),
     ('{"inconclusive": false}', 10, 2)],
)  # fmt: skip
def test_without_data_or_a_sound_report_there_is_no_pass(
    stand: Stand, tmp_path: Path, report: list[int], about: str, requests: int, made: int
) -> None:
    ending = Ending(stand, tmp_path, requests=requests)
    (tmp_path / "study.json").write_text(about)
    report.append(made)
    assert ending.close() == ("the report", 3)


def test_what_listeners_missed_is_in_the_footer(stand: Stand, tmp_path: Path) -> None:
    ending = Ending(stand, tmp_path, missed=["timelines.py missed events: 2 of 9 events dropped."])
    assert ending.close() == ("the report", 0)
    assert ending.footer["events"] == ending.missed


def test_what_workers_wrote_is_kept_but_for_the_mark_of_their_launcher(stand: Stand, tmp_path: Path) -> None:
    for name in ("own/w0.log", f"own/{BEGAN}", "study/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a line\n")
    Ending(stand, tmp_path / "study", logs=str(tmp_path / "own")).close()
    kept = {path.name: path.read_text() for path in (tmp_path / "study/logs").iterdir()}
    assert kept == {"w0.log": "a line\n"}


@pytest.mark.parametrize("code", [0, 1, 3])
def test_with_a_gate_verdicts_decide(stand: Stand, tmp_path: Path, code: int) -> None:
    ending = Ending(stand, tmp_path, ("verdicts", code), failures=1)
    assert ending.close() == ("verdicts", code)
    assert ending.footer["gate"] == STOP


@pytest.mark.parametrize("verdict", [None, ("verdicts", 0), ("verdicts", 1)])
def test_a_ledger_that_lacks_something_decides_nothing(
    stand: Stand, tmp_path: Path, verdict: tuple[str, int] | None
) -> None:
    assert Ending(stand, tmp_path, verdict, fault="disk full").close()[1] == 3


def test_what_cannot_be_written_at_the_end_is_said(stand: Stand, tmp_path: Path) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    vars(stand.ledger).update(write=full)
    assert Ending(stand, tmp_path, raw=full).close()[0] == "the report"
    assert stand.said == [
        f"inferswarm: {tmp_path} cannot be written (No space left on device); it may lack its end",
        f"inferswarm: {tmp_path}/results.parquet cannot be written ([Errno 28] No space left on device)",
    ]


@pytest.mark.parametrize("code", [2, -9, None])
def test_without_verdicts_there_is_a_report_and_no_pass(
    stand: Stand, tmp_path: Path, code: int | None
) -> None:
    text, found = Ending(stand, tmp_path, ("inferswarm: damaged", code)).close()
    assert found == 3
    assert text.startswith("the report\ninferswarm: damaged\ninferswarm: there are no verdicts on this study")
