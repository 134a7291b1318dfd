"""A load with a course: what its stages ask, what came of them, and when replicas became others."""

from pathlib import Path
from typing import Any

import pytest

from reports.histogram.codec import decoded
from reports.study.course import Change, CourseRun, CourseStage, Moment, changes, known, stages_of
from reports.study.study import load_study
from tests.reports import lines
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, encoded

MS = 1_000_000
PLANNED = [["ramp", 10, 1.0, 11.0], ["hold", 20, 11.0, 11.0]]
STAGES = stages_of(PLANNED)
RAMP, HOLD = STAGES


def moment(s: float, each_ms: int = 5, ok: int = 60, failures: int = 0, **stated: Any) -> Moment:
    return Moment(s, 2, 1.0, ok, failures, decoded(encoded([each_ms * MS] * ok)), stated)


def run(*moments: Moment, **dropped_by_s: int) -> CourseRun:
    dropped = {int(name.strip("s")): count for name, count in dropped_by_s.items()}
    return CourseRun("a/b1/r1", 1, "a", STAGES, moments, dropped)


def test_stages_follow_each_other_and_ask_for_the_integral_of_their_rate() -> None:
    assert [(one.begin_s, one.end_s, one.asked) for one in STAGES] == [(0, 10, 6), (10, 30, 11)]
    spans = ((0, 10), (0, 5), (8, 20), (-3, 2), (4, 4), (10, 12), (20, 25))
    assert [RAMP.arrivals(*span) for span in spans] == [60, 17.5, 20, 4, 0, 0, 0]
    assert [HOLD.arrivals(*span) for span in spans] == [0, 0, 110, 0, 0, 22, 55]


def test_each_stage_has_the_moments_whose_middle_lies_in_it() -> None:
    found = run(
        moment(0, 5, cpu_pct_of_request=90, ready_replicas=2),
        moment(8.5, 7, failures=3, cpu_pct_of_request=40, ready_replicas=4),
        moment(9, 20, cpu_pct_of_request=None, ready_replicas=3),
        moment(28, 30, ok=100, cpu_pct_of_request=10),
        *(moment(29.5, 50, ok=0, failures=1), moment(34, 60, ok=3, ready_replicas=7)),
        **{"s0": 1, "s9": 2, "s10": 4, "s30": 8},
    )
    assert found.tail == CourseStage("after", 30, 6, 0.0, 0.0)
    assert [found.stage_at(s).name for s in (-1, 9.9, 10, 29.9, 30, 99)] == [
        *("ramp", "ramp", "hold", "hold", "after", "after")
    ]
    ramp, hold, after = found.seen
    assert [(one.ok, one.failures, one.dropped) for one in found.seen] == [
        (120, 3, 3),
        (160, 0, 4),
        (3, 1, 8),
    ]
    assert [one.replicas for one in found.seen] == [(2, 4), (3, 3), (7, 7)]
    assert [one.cpu_pct for one in found.seen] == [90, 10, None]
    times_ns = (ramp.p50_ns, ramp.p95_ns, hold.p50_ns, hold.p95_ns)
    assert times_ns == pytest.approx((5 * MS, 7 * MS, 30 * MS, 30 * MS), rel=1e-3)
    assert (after.p50_ns, after.p95_ns) == (None, None)
    assert (found.moments[1].end_s, found.moments[1].served_per_s, found.moments[1].failures_per_s) == (
        *(10.5, 30.0, 1.5),
    )


def test_stages_of_one_name_are_seen_together() -> None:
    planned = [["base", 4, 2.0, 2.0], ["spike", 2, 9.0, 9.0], ["base", 8, 2.0, 1.0], ["after", 2, 1.0, 1.0]]
    moments = (
        moment(0, ok=3),
        moment(4, 20, ok=5),
        moment(6, ok=4, failures=2),
        moment(14),
        moment(16, ok=1),
    )
    found = CourseRun("a/b1/c9", 1, "a", stages_of(planned), moments, {5: 1, 13: 2}, "closed")
    base, spike, last, tail = found.seen
    assert base.stage == CourseStage("base", 0, 12, 1.0, 2.0)
    assert (base.ok, base.failures, base.dropped) == (7, 2, 2)
    assert (spike.ok, spike.dropped, last.ok) == (5, 1, 60)
    assert (tail.stage is found.tail, tail.ok) == (True, 1), "a stage may have its name"


def test_a_run_that_ended_with_its_course_has_no_stage_after() -> None:
    found = run(moment(28))
    assert (found.tail.seconds, len(found.seen), found.watched) == (0.0, 2, False)
    assert run().tail == CourseStage("after", 30, 0.0, 0.0, 0.0)
    assert [len(run(moment(30, ok=1)).seen), len(run(moment(30, ok=0, failures=1)).seen)] == [3, 3]


def test_replicas_change_at_a_seconds_end_and_are_reached_when_as_many_are_ready_or_as_few() -> None:
    asked, ready = [2, 4, 4, None, 5, 1, 1], [5, 2, 3, None, 4, 3, 1]
    told = [
        {} if want is None else {"desired_replicas": want, "ready_replicas": have}
        for want, have in zip(asked, ready, strict=True)
    ]
    found = run(*(moment(2.0 * at, **stated) for at, stated in enumerate(told)))
    assert found.watched
    assert found.desired == (Change(4, 2, 4, 10), Change(10, 4, 5), Change(12, 5, 1, 14))
    assert found.ready[:2] == (Change(4, 5, 2), Change(6, 2, 3))
    assert found.ready[2:] == (Change(10, 3, 4), Change(12, 4, 3), Change(14, 3, 1))
    assert [found.first("ready_replicas", least) for least in (5, 6)] == [2, None]
    assert [found.first("desired_replicas", least) for least in (2, 2.5, 5)] == [2, 4, 10]
    assert list(changes((), "ready_replicas")) == []
    assert known([0, None, 3]) == [0, 3]


def of_one_second(tag: Record, at: int, phase: str, **told: Any) -> list[Record]:
    ended = lines.window(tag, "w0", [MS] * 3, 1) | {"failures": {"reset": 1}}
    sampled = lines.sample_line(tag, FIRST_SECOND + at, ready_replicas=at, phase=phase)
    return [ended | {"second": FIRST_SECOND + at, "phase": phase} | told, sampled]


@pytest.mark.parametrize(
    ("begun", "began_s"),
    [({}, 0.5), ({"start_utc_ns": FIRST_SECOND * 10**9 + 750_000_000}, 0.75), ({"phase": "drain"}, None)],
)
def test_a_course_begins_with_its_last_measure(tmp_path: Path, begun: Record, began_s: float | None) -> None:
    book = Book()
    tag = book.plan("onnx-http", 1, 11, arrivals="constant", axes={"stages": PLANNED})
    book.records = [
        *(lines.start_line(tag, "w0", "w1"), lines.phase_line(tag, "warm-up", "2026-11-21T10:59:58Z")),
        *([] if began_s is None else [lines.phase_line(tag, "measure", "2026-11-21T10:59:59Z")]),
        lines.phase_line(tag, "measure", "2026-11-21T11:00:00.500Z") | begun,
        *(*of_one_second(tag, 0, "warm-up"), *of_one_second(tag, 4, "measure", failures={"reset": 2})),
        *(
            *of_one_second(tag, 2, "measure"),
            *of_one_second(tag, 2, "warm-up", ok=0, images=0, histograms={}),
        ),
        lines.drained_line(tag, "w0", 1, 8) | {"dropped_by_s": [[0, 1], [3, 2]]},
        lines.drained_line(tag, "w1", 1, 0) | {"dropped_by_s": [[3, 4]]},
        lines.drained_line(tag, "w0", 1, 8) | {"dropped_by_s": [[3, 64]], "phase": "warm-up"},
    ]
    book.add("onnx-grpc", 1, 1, {"w0": [MS]})
    courses = load_study(book.write(tmp_path)).courses
    if began_s is None:
        assert courses == ()
        return
    (found,) = courses
    assert (found.cell, found.repeat, found.endpoint) == (tag["cell"], 1, "onnx-http")
    assert (found.stages, found.dropped_by_s) == (STAGES, {0: 1, 3: 6})
    assert [one.s for one in found.moments] == pytest.approx([2 - began_s, 4 - began_s], abs=1e-5)
    assert [(one.ok, one.failures, one.latency.total, one.width_s) for one in found.moments] == [
        *((3, 1, 3, 1), (3, 2, 3, 1))
    ]
    assert [one.stated["ready_replicas"] for one in found.moments] == [2, 4]
    assert found.moments[0].asked == pytest.approx(RAMP.arrivals(2 - began_s, 3 - began_s), 1e-5)
