"""The gate of a study: what is refused before any load, what is kept, and who is asked for verdicts."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.gates.baseline import baseline_text
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo
from swarm.output import report_process
from swarm.output.gate import Gate
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.matrix import Size, serial_and_concurrent
from swarm.plan.schedule import RepeatingSchedule
from swarm.study.build_schedule import schedule_of
from swarm.study.shape import StudyShape
from tests.reports.lines import FIRST_SECOND, window
from tests.swarm.followed import START, Followed, Heard
from tests.swarm.output.test_results_folder import options
from tests.swarm.stand import GRPC, HTTP

STARTED = "2026-11-21T11:00:00Z"
ROOT = Path(__file__).parents[3]
P50 = "[[threshold]]\nrequire = 'latency_p50_ms <= 50'\n"
TO_BASELINE = "[[threshold]]\nrequire = 'latency_p50_ms / baseline <= 1'\n"
SIZE = Size(batches=(1, 4), levels=(1,), iterations=10, seconds=2, repeats=3)


class Study(StudyShape):
    name, title, sizes, abstract = "s", "S", {"quick": SIZE}, True

    def cells(self, endpoints, size):  # type: ignore[no-untyped-def]
        return serial_and_concurrent(endpoints, size)


def written(folder: Path, text: str) -> str:
    (folder / "t.toml").write_text(text)
    return str(folder / "t.toml")


def gate(folder: Path, text: str, *arguments: str, said: list[str] | None = None) -> Gate:
    given = options("--gate", written(folder, text), *arguments)
    return Gate.of(given, (said if said is not None else []).append)


def refusal(folder: Path, text: str, *arguments: str) -> str:
    """The sentence with which a study's options are refused."""
    given = options("--gate", written(folder, text), *arguments)
    with pytest.raises(UsageError) as caught:
        schedule_of(Study(), [HTTP, GRPC], given, LaunchInfo(), Gate.of(given, print))
    return str(caught.value).replace(str(folder), "DIR")


def test_generator_processes_have_no_scipy() -> None:
    code = "import locust, swarm.study.shape, swarm.study.master, sys; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_without_the_option_nothing_is_asked(tmp_path: Path) -> None:
    none = Gate.of(options(), print)
    none.check([], [], 0)
    none.keep(tmp_path)
    assert (none.given, none.stopped(), none.facts(), list(tmp_path.iterdir())) == (False, "", {}, [])


def test_thresholds_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--gate .*/none\.toml: cannot be read"):
        Gate.of(options("--gate", str(tmp_path / "none.toml")), print)
    assert refusal(tmp_path, "").startswith("--gate DIR/t.toml: has no [[threshold]]")


def test_names_that_the_study_does_not_have_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, f"{P50}endpoint = 'a-htp'")
    assert said.startswith("--gate DIR/t.toml: threshold 1: endpoint 'a-htp'")
    assert "did you mean a-http" in said


def test_a_search_knows_the_names_before_its_cells(tmp_path: Path) -> None:
    assert "a-htp" in refusal(tmp_path, f"{P50}endpoint = 'a-htp'", "--find-rate", "p99<=100")
    given = options("--gate", written(tmp_path, f"{P50}endpoint = 'a-http'"), "--find-rate", "p99<=100")
    schedule, _ = schedule_of(Study(), [HTTP, GRPC], given, LaunchInfo(), Gate.of(given, print))
    assert schedule.planned == ()


def test_the_thresholds_are_kept_beside_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    gate(tmp_path, P50).keep(tmp_path / "results")
    assert (tmp_path / "results" / "thresholds.toml").read_text() == P50
    with pytest.raises(UsageError, match="cannot be copied to"):
        gate(tmp_path, P50).keep(tmp_path / "nowhere")


@pytest.mark.parametrize(("most", "fits"), [(2, False), (3, True), (8, True)])
def test_the_most_repeats_are_no_fewer_than_the_studys(tmp_path: Path, most: int, fits: bool) -> None:
    if fits:
        given = options("--gate", written(tmp_path, P50), "--repeat-until-decided", str(most))
        schedule, _ = schedule_of(Study(), [HTTP, GRPC], given, LaunchInfo(), Gate.of(given, print))
        assert isinstance(schedule, RepeatingSchedule)
        assert len(schedule.planned) == 3 * 4
    else:
        said = refusal(tmp_path, P50, "--repeat-until-decided", "2")
        assert said == "--repeat-until-decided 2: every cell is run 3 times anyway; it must be at least 3"


@pytest.mark.parametrize("runs", [1, 10**9])
def test_what_stops_the_study_is_said_and_goes_into_the_footer(tmp_path: Path, runs: int) -> None:
    cell = Cell(HTTP, 1, 2, 10, 30)
    tag = {"cell": cell.name, "repeat": 1}
    found = gate(tmp_path, f"{P50}abort_after_s = 0")
    found.check([cell], [HTTP], runs)
    assert found.stopped() == ""
    study = Followed({"plan": [PlannedRun(cell, 1).to_record()], "started_utc": STARTED}, Heard())
    study.fold.listeners.append(found.on_second)
    lines = [window(tag, "w0", [80_000_000] * 20, 1) | {"second": FIRST_SECOND + at} for at in range(9)]
    study.tell({**START, **tag}, *lines, step_s=1)
    if runs > 1:
        assert (found.stopped(), found.facts()) == ("", {}), "so many share the chance that one is unlucky"
        return
    assert found.stopped().startswith("gate: a-http/b1/c2: latency_p50_ms 80.0 ms")
    assert found.facts()["gate"]["threshold"] == 1


def verdict(outcome: str, more: int | None, severity: str = "fail") -> dict[str, Any]:
    return {"outcome": outcome, "more_repeats": more, "severity": severity}


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([verdict("pass", None), verdict("inconclusive", None)], []),
        ([verdict("inconclusive", 3, "warn")], []),
        ([verdict("inconclusive", 3)], ["repeat 4: 1 verdict is open"]),
        ([verdict("inconclusive", 4), verdict("inconclusive", 3)], ["repeat 4: 2 verdicts are open"]),
        (
            [verdict("inconclusive", 119), verdict("inconclusive", 4), verdict("inconclusive", 1, "warn")],
            [
                "no repeat is added: 2 verdicts are open; 4 more repeats would decide the first, "
                "and 3 may be added"
            ],
        ),
    ],
)
def test_repeats_are_wanted_where_they_would_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdicts: list[dict[str, Any]], said: list[str]
) -> None:
    def judged(folder: Path, thresholds: Path, baseline: str, quietly_to: Path) -> tuple[str, int]:
        (quietly_to / "gates.json").write_text(json.dumps({"verdicts": verdicts}))
        return "", 3

    monkeypatch.setattr(report_process, "gate", judged)
    told: list[str] = []
    asked = gate(tmp_path, P50, said=told)
    asked.keep(tmp_path)
    wanted = asked.wants(4, left=3)
    assert (wanted, told) == (any(text.startswith("repeat 4") for text in said), said)


def test_verdicts_are_asked_for_with_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def judged(*told: Any, **more: Any) -> tuple[str, int]:
        asked.append((*told[:3], more))
        return "said", 3

    monkeypatch.setattr(report_process, "gate", judged)
    (tmp_path / "b.json").write_text(baseline_text([]))
    found = gate(tmp_path, f"{TO_BASELINE}[baseline]\nplace = 'b.json'")
    found.keep(tmp_path)
    assert (found.judge(tables=True), found.wants(4, left=3)) == (("said", 3), False)
    about = (tmp_path, tmp_path / "thresholds.toml", str(tmp_path / "b.json"))
    assert asked == [(*about, {"tables": True}), (*about, {})]


def test_no_repeat_is_wanted_where_verdicts_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_process, "gate", lambda *_: ("inferswarm: no such thing", 2))
    told: list[str] = []
    asked = gate(tmp_path, P50, said=told)
    asked.keep(tmp_path)
    assert not asked.wants(4, left=3)
    assert told == ["inferswarm: cannot tell whether repeats would decide: no such thing"]


def test_what_is_kept_is_what_was_read(tmp_path: Path) -> None:
    text = P50.replace("\n", "\r\n") + "# für später\r\n"
    (tmp_path / "t.toml").write_bytes(text.encode())
    read = Gate.of(options("--gate", str(tmp_path / "t.toml")), print)
    (tmp_path / "t.toml").write_text("something else")
    read.keep(tmp_path)
    assert (tmp_path / "thresholds.toml").read_bytes() == text.encode()


def test_an_error_while_following_a_study_is_said_once_and_stops_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    found = gate(tmp_path, f"{P50}abort_after_s = 1", said=said)
    found.check([Cell(HTTP, 1, 2, 10, 30)], [HTTP], 1)
    broken: Any = SimpleNamespace(here=None)
    for _ in range(2):
        found.on_second(broken)
    assert said == [
        "inferswarm: thresholds can no longer stop this study "
        "(AttributeError: 'NoneType' object has no attribute 'phases')"
    ]
    assert (found.stopped(), found.facts()) == ("", {})


def test_a_baseline_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "a threshold refers to a baseline, and none is given; give --baseline" in refusal(
        tmp_path, TO_BASELINE
    )
    said = refusal(tmp_path, f"{TO_BASELINE}[baseline]\nplace = 'b'")
    assert said.startswith("--gate DIR/t.toml: [baseline] place DIR/b: is neither a directory")
    said = refusal(tmp_path, TO_BASELINE, "--baseline", str(tmp_path / "b"))
    assert said.startswith("--baseline DIR/b: is neither a directory with a ledger.jsonl nor a readable file")
    (tmp_path / "b").mkdir()
    assert "is neither" in refusal(tmp_path, TO_BASELINE, "--baseline", str(tmp_path / "b"))


def test_the_option_goes_before_the_files_own_baseline(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(baseline_text([]))
    text = f"{TO_BASELINE}[baseline]\nplace = 'a.json'"
    assert gate(tmp_path, text).baseline == str(tmp_path / "a.json")
    given = gate(tmp_path, text, "--baseline", str(tmp_path / "b.json"))
    assert given.baseline == str(tmp_path / "b.json")
    assert "c.json: is neither a directory" in refusal(tmp_path, text, "--baseline", str(tmp_path / "c.json"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("cell,endpoint\n", "is no baseline that this program reads"),
        ('{"kind": "other", "version": 1, "studies": []}', "its kind is 'other', its version 1"),
        ('{"kind": "inferswarm-baseline", "version": 9, "studies": []}', "its version 9"),
        ('{"kind": "inferswarm-baseline", "version": 1}', "KeyError('studies')"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "b.json").write_text(content)
    said = refusal(tmp_path, TO_BASELINE, "--baseline", str(tmp_path / "b.json"))
    assert said.startswith("--baseline DIR/b.json: is no baseline that this program reads (")
    assert said.endswith("make it with `inferswarm baseline DIR`")
    assert why in said


def test_a_baseline_that_no_threshold_is_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(baseline_text([]))
    said = refusal(tmp_path, P50, "--baseline", str(tmp_path / "b.json"))
    assert said.startswith(
        "--baseline DIR/b.json: no threshold in DIR/t.toml refers to a baseline; leave it out"
    )
    assert gate(tmp_path, f"{P50}[baseline]\nplace = 'b.json'").baseline == "", "it is for other thresholds"
