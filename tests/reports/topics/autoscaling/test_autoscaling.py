"""Loads with a course: their stages and seconds, what Kubernetes did meanwhile, and whether it helped."""

from pathlib import Path
from typing import Any

import pytest

from reports.study.study import Study, load_study
from reports.topics.autoscaling.effect import HELPED, HURT, UNCLEAR, Effect, effects
from reports.topics.autoscaling.profile import profile_charts, stages_table
from reports.topics.autoscaling.tables import (
    autoscaling_answer,
    effects_table,
    events_table,
)
from reports.topics.load.open_load import open_load
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, drained_line, phase_line, sample_line, window
from tests.reports.open_load import notes_at, texts

MS = 1_000_000


def told(study: Study) -> str:
    """The row of the first screen."""
    found = autoscaling_answer(study)
    assert found is not None
    return found.text


STAGES = [["ramp", 10, 1.0, 10.0], ["hold", 60, 10.0, 10.0], ["cool-down", 10, 1.0, 1.0]]
AXES = {"variant": "profile", "profile": "ramp:10,hold:60,cool:10", "stages": STAGES}


class Load:
    """One run with that course, whose seconds are given one by one."""

    def __init__(self, hold_s: int = 60, book: Book | None = None, repeat: int = 1) -> None:
        self.book, self.length_s = book or Book(study="step8", title="Step 8"), hold_s + 20
        self.book.endpoint("pytorch-http", "127.0.0.1:8092")
        stages = [STAGES[0], ["hold", hold_s, 10.0, 10.0], STAGES[2]]
        axes = AXES | {"profile": f"ramp:10,hold:{hold_s},cool:10", "stages": stages}
        self.tag = self.book.plan("pytorch-http", 1, 10, arrivals="constant", axes=axes, repeat=repeat)
        edge = {"kind": "run", **self.tag, "utc": "2026-11-21T11:00:00Z"}
        start_ns = FIRST_SECOND * 1_000_000_000
        phase = phase_line(self.tag, "measure", "2026-11-21T10:59:59.950Z")
        self.book.records += [edge | {"event": "start", "workers": ["w0"], "hosts": 1}]
        self.book.records += [phase | {"start_utc_ns": start_ns}]
        self.edge, self.finished = edge, 0

    def second(self, s: int, latencies_ms: list[float], failures: int = 0, **stated: Any) -> None:
        made = window(self.tag, "w0", [round(value * MS) for value in latencies_ms], 1)
        failed = {"failures": {"server-error": failures}} if failures else {}
        self.book.records.append(made | {"second": FIRST_SECOND + s} | failed)
        self.finished += len(latencies_ms) + failures
        if stated:
            self.book.records.append(sample_line(self.tag, FIRST_SECOND + s, **stated))

    def end(self, **drained: Any) -> None:
        line: Record = drained_line(self.tag, "w0", 10, self.finished)
        sent = {"sent": self.finished, "due": self.finished, "dropped": 0, "phase_ns": self.length_s * 10**9}
        self.book.records.append(line | sent | drained)
        self.book.records.append(self.edge | {"event": "end", "status": "done", "note": ""})

    def study(self, folder: Path, **drained: Any) -> Study:
        self.end(**drained)
        self.book.footer()
        return load_study(self.book.write(folder))


def replicas(desired: int, ready: int, cpu_pct: int = 50) -> dict[str, Any]:
    counts = {"replicas": desired, "desired_replicas": desired, "ready_replicas": ready}
    return counts | {"cpu_pct_of_request": cpu_pct, "hpa_target_cpu_pct": 60}


def scaled(before_ms: float, after_ms: float, served: tuple[int, int] = (10, 10)) -> Load:
    """2 replicas, 4 asked for at 1:20 and ready at 1:26; latencies vary by a tenth from second to second."""
    load = Load(hold_s=120)
    for s in range(140):
        each = 1 if s >= 130 else served[0] if s < 86 else served[1]
        base = before_ms if s < 86 else after_ms
        state = replicas(4 if s >= 79 else 2, 4 if s >= 85 else 2, 90 if 69 <= s < 90 else 30)
        load.second(s, [base * (1 + 0.1 * (s % 3))] * each, **state)
    return load


def test_stages_hold_what_ended_in_them(tmp_path: Path) -> None:
    load = Load()
    for s in range(80):
        load.second(s, [5.0] * 5 if s < 10 else [20.0] * 19 + [80.0] if s < 70 else [7.0])
    load.second(82, [9.0], failures=2)
    table = stages_table(load.study(tmp_path, dropped=3, dropped_by_s=[[0, 1], [69, 2]]))
    assert [row[1:7] for row in texts(table)] == [
        ["ramp", "10", "1 to 10", "5.00", "5.0", "–"],
        ["hold", "60", "10", "20.0", "20.0", "20.0"],
        ["cool-down", "10", "1", "1.00", "–", "–"],
        ["after", "3", "0", "0.333", "–", "–"],
    ]
    assert not [note for note in table.notes if "few-samples" in note]
    assert "give --kube-url" in table.caption
    assert "2 → 4 → 6 replicas in two steps 30 s apart, p50 1,020 ms, 3.5 requests/s" in table.caption


def test_what_kubernetes_did_and_when_it_was_done(tmp_path: Path) -> None:
    study = scaled(50, 50).study(tmp_path)
    (row,) = texts(events_table(study))
    # a sample tells of its second's end
    assert row[1:] == ["1:20", "hold", "10.0", "90.0", "2 → 4", "1:26", "6"]
    assert [row[9:] for row in texts(stages_table(study))] == [
        ["2", "30.0"],
        ["2 to 4", "90.0"],
        ["4", "30.0"],
    ]


def test_a_study_too_long_for_single_seconds_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.study.study.coarseness", lambda found: 5)
    study = scaled(100, 50).study(tmp_path)
    table = stages_table(study)
    assert "Seconds are taken 5 at a time, at a stage's edges too." in table.caption
    assert [row[4] for row in texts(table)] == ["10.0", "10.0", "1.00"]
    assert the_effect(study).verdict == HELPED


def the_effect(study: Study) -> Effect:
    (scaling,) = study.courses
    (found,) = effects(scaling)
    return found


def test_scaling_that_halves_latency_helped(tmp_path: Path) -> None:
    study = scaled(100, 50).study(tmp_path)
    effect = the_effect(study)
    assert (effect.verdict, effect.step.before, effect.step.after) == (HELPED, 2, 4)
    # 0:10 to 0:50, 30 s before they were asked for, and 1:26 to 2:10, at 10 a second
    assert (effect.blocks, effect.block_s) == ((3, 3), 13)
    assert effect.p95 is not None
    assert effect.p95.ratio == pytest.approx(0.5, rel=0.01)
    (row,) = texts(effects_table(study))
    assert row[1:4] == ["1:26", "2 → 4", "10.0"]
    assert row[6] == HELPED
    said = told(study)
    assert said.startswith("Did scaling help: Helped.")
    assert (
        "from 2 to 4 ready replicas, reached after 86 s, 16 s after CPU was seen above its target of 60 %"
        in said
    )
    assert "2 → 4 at 1:26 helped (p95 0.5" in said
    assert "at the end 4" in said


def test_scaling_after_which_more_is_served_helped(tmp_path: Path) -> None:
    effect = the_effect(scaled(50, 50, served=(6, 10)).study(tmp_path))
    assert effect.verdict == HELPED
    assert effect.served is not None
    assert effect.served.ratio == pytest.approx(10 / 6)


def test_scaling_that_made_it_worse_and_one_that_changed_nothing(tmp_path: Path) -> None:
    assert the_effect(scaled(50, 100).study(tmp_path / "worse")).verdict == HURT
    assert the_effect(scaled(50, 50).study(tmp_path / "same")).verdict == UNCLEAR
    both = the_effect(scaled(50, 100, served=(6, 10)).study(tmp_path / "both"))
    assert both.verdict == UNCLEAR, "one figure better, one worse"


def test_noise_that_lasts_longer_than_the_blocks_leaves_it_open(tmp_path: Path) -> None:
    load = Load(hold_s=120)
    for s in range(140):
        slow = 100.0 if (s // 20) % 2 else 80.0
        load.second(
            s, [slow if s < 86 else slow / 2] * (1 if s >= 130 else 10), **replicas(4, 4 if s >= 85 else 2)
        )
    effect = the_effect(load.study(tmp_path))
    assert effect.verdict == UNCLEAR
    assert effect.why == "what varies may last longer than the blocks of 14 s"
    assert effect.p95 is not None


def test_repeats_are_compared_with_runs_of_the_same_course_without_a_step(tmp_path: Path) -> None:
    """All gets a fifth slower anyway: steps that take a tenth off helped, which their own blocks hide."""
    book = Book(study="step8", title="Step 8")
    for repeat in range(1, 7):
        load = Load(120, book, repeat)
        for s in range(140):
            base = (100.0 if s < 86 else 108.0 + repeat if repeat <= 3 else 120.0) * (1 + 0.05 * (s % 3))
            ready = 4 if s >= 85 and repeat <= 3 else 2
            load.second(s, [base] * (1 if s >= 130 else 10), **replicas(ready, ready))
        load.end()
    book.footer()
    study = load_study(book.write(tmp_path))
    first = study.courses[0]
    (alone,), (beside,) = effects(first), effects(first, study.courses)
    assert (alone.verdict, alone.pairs) == (HURT, 0)
    assert (beside.verdict, beside.pairs) == (HELPED, 3)
    assert beside.p95 is not None
    assert beside.p95.ratio == pytest.approx(110 / 120, rel=0.01)
    assert effects(first, study.courses[:5])[0].pairs == 0, "two pairs are too few"
    assert notes_at(effects_table(study), 0, 6) == [
        "3 repeats, over the same seconds of as many runs without a step"
    ]


def test_scaling_while_the_load_changes_tells_nothing(tmp_path: Path) -> None:
    load = Load()
    for s in range(80):
        load.second(s, [50.0] * (1 if s >= 70 else 10), **replicas(4 if s >= 69 else 2, 4 if s >= 69 else 2))
    effect = the_effect(load.study(tmp_path))
    assert (effect.verdict, effect.p95) == (UNCLEAR, None)
    assert effect.why == "the load changed at about the same time"


def test_too_few_seconds_are_not_blamed_on_a_load_that_changed_long_before(tmp_path: Path) -> None:
    load = Load(hold_s=120)
    for s in range(140):
        load.second(s, [50.0] * (1 if s >= 130 else 10), **replicas(4, 4 if 99 <= s < 109 else 2))
    first, second = effects(load.study(tmp_path).courses[0])
    assert (first.step.after, first.blocks) == (4, (6, 1)), "10 s until the next step"
    assert first.why == (
        "fewer than 3 blocks of 10 s at one number of replicas before or after, without the 30 s that "
        "triggered the step"
    )
    assert (second.blocks, second.why) == ((0, 2), first.why)


def test_pods_that_come_one_by_one_are_one_step(tmp_path: Path) -> None:
    load = Load(hold_s=120)
    for s in range(140):
        ready = min(4, max(2, 2 + (s - 82) // 4))
        load.second(s, [100.0 if s < 90 else 50.0] * (1 if s >= 130 else 10), **replicas(4, ready))
    effect = the_effect(load.study(tmp_path))
    assert (effect.step.before, effect.step.after, effect.step.from_s, effect.step.to_s) == (2, 4, 87, 91)
    assert effect.verdict == HELPED


def test_failures_beside_a_comparison_are_said(tmp_path: Path) -> None:
    load = scaled(100, 50)
    load.second(100, [50.0], failures=1, **replicas(4, 4))
    table = effects_table(load.study(tmp_path))
    assert notes_at(table, 0, 6) == [
        "blocks of 13 s: 3 before, 3 after",
        "requests failed in some of these seconds; p95 is of the successes",
    ]


def test_the_finding_says_what_its_figures_lack(tmp_path: Path) -> None:
    load = Load(hold_s=120)
    for s in range(140):
        load.second(s, [] if s >= 130 else [50.0] * 10, int(s == 20), **replicas(4, 4 if s >= 85 else 2))
    said = told(load.study(tmp_path))
    assert (
        "p95 50.0 ms in ramp (100 results), 50.0 ms in hold, none in cool-down, where nothing succeeded;"
        in said
    )
    assert "requests/s before and after; some requests failed)" in said
    spoilt = scaled(9, 9, served=(5, 5)).study(tmp_path / "spoilt")
    assert "pytorch-http/b1/r10/profile (invalidated): p95 " in told(spoilt)


def test_a_cluster_that_could_not_scale_is_said(tmp_path: Path) -> None:
    load = Load()
    words = 'pods "x" is forbidden: exceeded quota'
    for s in range(80):
        state = replicas(2, 2) | {"hpa_inactive": "FailedGetResourceMetric", "replica_failure": words}
        load.second(s, [9.0] * 3, **state)
    said = told(load.study(tmp_path))
    assert "2 replicas at first, and never more" in said
    assert "the autoscaler had no metric to go by in 80 seconds (FailedGetResourceMetric)" in said
    assert f"Kubernetes refused pods: {words}" in said


def test_no_number_of_the_whole_run_passes_for_that_of_a_rate(tmp_path: Path) -> None:
    load = Load()
    for s in range(80):
        load.second(s, [9.0] * (1 if s >= 70 else 10 if s >= 10 else 5))
    # 665 are asked for in 80 s, 8.3125 a second
    study = load.study(tmp_path, sent=665, due=665)
    (run,) = study.runs
    codes = {doubt.code: doubt for doubt in run.caveats}
    assert (
        codes["varying-load"].text == "the rate changed during the run: ramp 10 s, hold 60 s, cool-down 10 s"
    )
    assert not codes["varying-load"].tainted
    assert "Load profile" in codes["varying-load"].advice
    assert "rate-missed" not in codes
    assert open_load(study).rows == ()
    assert run.limit is not None
    assert (run.limit.code, "the load changed" in run.limit.evidence) == ("inconclusive", True)
    missed = scaled(9, 9, served=(5, 5)).study(tmp_path / "missed")
    assert "rate-missed" in {doubt.code for doubt in missed.runs[0].caveats}


def test_the_drawing_and_the_section(tmp_path: Path) -> None:
    study = scaled(100, 50).study(tmp_path)
    (chart,) = profile_charts(study)
    assert chart.data["t_s"] == [float(s + 1) for s in range(140)]
    lines = {
        f"{p['title']}/{line['label']}": line["values"] for p in chart.data["panels"] for line in p["lines"]
    }
    assert set(lines) == {
        *("Rate/asked", "Rate/served", "Rate/failed", "Latency/p50", "Latency/p95"),
        *("Replicas/ready", "Replicas/asked for", "Replicas/there", "CPU/seen", "CPU/target"),
    }
    assert (lines["Replicas/ready"][84:86], lines["Rate/served"][129:131]) == ([2, 4], [10, 1])
    (run,) = chart.data["runs"]
    assert run["aside"] == [("ramp", 0, 10), ("cool-down", 130, 140)]
    sections = {section.heading: section for section in build_page(study, "x").sections}
    assert [table.title for table in sections["Load profile"].tables] == ["Stages of the load"]
    assert [table.title for table in sections["Autoscaling"].tables] == [
        "Autoscaler events",
        "Did more or fewer replicas help?",
    ]


def test_a_study_at_rates_that_stay_has_no_such_section(tmp_path: Path) -> None:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.add_open("onnx-http", 50, {"w0": [9 * MS] * 100})
    study = load_study(book.write(tmp_path))
    assert study.courses == ()
    assert "Autoscaling" not in {section.heading for section in build_page(study, "x").sections}
