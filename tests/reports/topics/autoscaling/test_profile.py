"""Loads with a course and no cluster: their stages and their knee, of rates and of users."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.histogram.codec import decoded
from reports.study.course import CourseRun, Moment, stages_of
from reports.study.study import Study, load_study
from reports.topics.autoscaling.profile import knee, profile_answer, profile_charts, stages_table
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, drained_line, encoded, phase_line, window
from tests.reports.open_load import texts

MS = 1_000_000
STEPS = [[f"step {step}", 10, 4.0 * step, 4.0 * step] for step in (1, 2, 3, 4)]
LATENCY_MS = (10, 10, 12, 40)
"""Of each step: 4 and 8 users are no load, 12 wait a little, 16 wait for what only takes 12."""


def steps(load: str, peak: float, per_s: tuple[int, ...], latency_ms: tuple[int, ...]) -> CourseRun:
    """Four steps of 10 s, with so many answers a second in each."""
    stages = stages_of([[f"step {at}", 10, peak * at / 4, peak * at / 4] for at in (1, 2, 3, 4)])
    moments = [
        Moment(float(s), 1, stages[s // 10].asked, per_s[s // 10], 0,
               decoded(encoded([latency_ms[s // 10] * MS] * per_s[s // 10])), {})
        for s in range(40)
    ]  # fmt: skip
    return CourseRun("a/b1/x", 1, "a", stages, tuple(moments), {}, load)


@pytest.mark.parametrize(
    ("per_s", "latency_ms", "found"),
    [
        ((40, 80, 100, 100), (10, 10, 12, 40), (12, 100, 12, True, False)),
        ((40, 80, 120, 160), (10, 10, 10, 10), (16, 160, 10, True, True)),
        ((4, 6, 6, 6), (10, 20, 30, 40), (4, 4, 10, False, False)),
    ],
)
def test_the_knee_of_steps(
    per_s: tuple[int, ...], latency_ms: tuple[int, ...], found: tuple[float, float, float, bool, bool]
) -> None:
    told = knee([steps("closed", 16, per_s, latency_ms)] * 2)
    assert told is not None
    asked, served, latency, by_p95, rising = found
    assert (told.asked, told.by_p95, told.rising) == (pytest.approx(asked), by_p95, rising)
    assert (told.served_per_s, told.latency_ms) == (pytest.approx(served), pytest.approx(latency, rel=0.01))


def test_what_piled_up_is_not_counted_against_lower_levels() -> None:
    """Up to 100/s and back: on the way down all is slow, which says nothing of 50/s."""
    course = [["up", 20, 0.0, 100.0], ["down", 20, 100.0, 0.0]]
    stages = stages_of(course)
    moments = []
    for s in range(40):
        asked = stages[s // 20].first + (5 if s < 20 else -5) * (s % 20 + 0.5)
        slow = asked > 75 or s >= 20
        count = min(75, round(asked)) if s < 20 else 75
        latency = decoded(encoded([(500 if slow else 10) * MS] * count))
        moments.append(Moment(float(s), 1, asked, count, 0, latency, {}))
    found = knee([CourseRun("a/b1/x", 1, "a", stages, tuple(moments))])
    assert found is not None
    assert (found.asked, found.latency_ms, found.rising) == (70, pytest.approx(10, rel=0.01), False)
    assert knee([CourseRun("a/b1/x", 1, "a", stages[1:], tuple(moments[20:]))]) is None


def a_study(folder: Path, cells: int = 1) -> Study:
    """Users by steps up to 16, whose server has 100 answers a second at most; two fail at the end."""
    book = Book()
    for cell in range(cells):
        book.endpoint(f"onnx-{cell}", "127.0.0.1:8010")
        axes = {"variant": "profile", "profile": "steps:4x10", "stages": STEPS}
        tag = book.plan(f"onnx-{cell}", 1, 16, axes=axes)
        edge = {"kind": "run", **tag, "utc": "2026-11-21T11:00:00Z"}
        book.records.append(edge | {"event": "start", "workers": ["w0"], "hosts": 1})
        begun = phase_line(tag, "measure", "2026-11-21T10:59:59.950Z")
        book.records.append(begun | {"start_utc_ns": FIRST_SECOND * 10**9})
        for s in range(40):
            count, ms = (40, 80, 100, 100)[s // 10], LATENCY_MS[s // 10]
            made = window(tag, "w0", [ms * MS] * count, 1) | {"second": FIRST_SECOND + s}
            book.records.append(made | ({"failures": {"timeout": 2}} if s == 39 else {}))
        drained = drained_line(tag, "w0", 16, 3_202)
        book.records.append(drained | {"users_ns": 9, "phase_ns": 40 * 10**9, "sent": 3_202})
        book.records.append(edge | {"event": "end", "status": "done", "note": ""})
    book.footer()
    return load_study(book.write(folder))


def test_a_study_of_users_with_a_course_says_what_came_of_it(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    table = stages_table(study)
    assert table.heads == (
        *("run", "stage", "seconds", "users", "served/s", "p50 ms", "p95 ms", "failures", "dropped"),
    )
    assert [row[1:8] for row in texts(table)][2:] == [
        ["step 3", "10", "12", "100", "12.0", "12.0", "0"],
        ["step 4", "10", "16", "100", "40.0", "40.0", "2"],
    ]
    assert "--kube-url" not in table.caption
    answer = profile_answer(study)
    assert answer is not None
    assert answer.said == "Knee at about 12 users (100/s served, p95 12.0 ms)."
    assert answer.detail == (
        "onnx-0/b1/c16/profile (invalidated): step 1 40.0/s, p95 10 ms; step 2 80.0/s, p95 10 ms; step 3 "
        "100/s, p95 12 ms; step 4 100/s, p95 40 ms, 2 failures."
    )
    (chart,) = profile_charts(study)
    panels = {panel["title"]: [line["label"] for line in panel["lines"]] for panel in chart.data["panels"]}
    assert panels == {"Users": ["asked"], "Rate": ["served", "failed"], "Latency": ["p50", "p95"]}
    assert [name for name, _, _ in chart.data["runs"][0]["aside"]] == ["step 1", "step 2", "step 3"]
    twice = replace(study, courses=(*study.courses, *study.courses))
    assert [bool(one.caption) for one in profile_charts(twice)] == [True, False], "read once how to read them"


def test_no_figure_of_the_whole_run_passes_for_that_of_a_number_of_users(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    (run,) = study.runs
    assert run.counts.requests_per_s == pytest.approx(80), "over the phase, whatever each user's time"
    codes = {doubt.code: doubt.text for doubt in run.caveats}
    assert codes["varying-load"].startswith("the number of users changed during the run: step 1 10 s, ")
    assert not codes.keys() & {"littles-law", "rate-missed", "drift", "regime-change"}
    assert run.limit is not None
    assert run.limit.advice == "Measure its peak by itself: --levels without --load-profile."
    page = build_page(study, "x")
    assert [row.question for row in page.answers][:1] == ["Load profile"]
    assert not {"Best", "Latency", "Saturation", "Did scaling help"} & {row.question for row in page.answers}
    assert "Autoscaling" not in {section.heading for section in page.sections}


def test_the_first_screen_names_three_cells_and_counts_the_others(tmp_path: Path) -> None:
    answer = profile_answer(a_study(tmp_path, cells=5))
    assert answer is not None
    assert answer.said.startswith("onnx-0/b1/c16/profile: knee at about 12 users (")
    assert answer.said.count("knee at") == 3
    assert answer.detail.endswith(" 2 other cells in the table under Load profile.")
