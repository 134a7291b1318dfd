"""What is said where latency changed while it was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.caveat import Caveat
from reports.caveats.rate_bound import RateBound
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, drained_line, encoded, phase_line, start_line, window

MS = 1_000_000
CODES = {"drift", "regime-change", "rising-latency"}
NOISE = np.random.default_rng(3).normal(size=200)


def a_run(
    folder: Path,
    measured_ms: Sequence[float],
    warm_up_ms: Sequence[float] = (),
    arrivals: str | None = None,
    began_s: float = 0,
    counts: Sequence[int] = (),
    ended: bool = True,
    after_ms: Sequence[float] = (),
    **axes: Any,
) -> Summary:
    """A run whose seconds have these latencies; its measure phase begins with FIRST_SECOND, or later."""
    book = Book()
    tag = book.plan("onnx-http", 1, 8, arrivals=arrivals, axes=axes)
    book.records.append(start_line(tag, "w0"))
    begins = {"warm-up": -len(warm_up_ms), "measure": began_s, "drain": len(measured_ms)}
    begins["idle"] = len(measured_ms) + len(after_ms)
    book.records += [phase_line(tag, phase, at(second)) for phase, second in begins.items()][: 2 + 2 * ended]
    seconds = [("warm-up", ms) for ms in warm_up_ms] + [("measure", ms) for ms in measured_ms]
    seconds += [("drain", ms) for ms in after_ms]
    sizes = counts or [20] * len(seconds)
    for place, ((phase, ms), count) in enumerate(zip(seconds, sizes, strict=True)):
        of_second = {"phase": phase, "second": FIRST_SECOND + place - len(warm_up_ms)}
        book.records.append(window(tag, "w0", [round(ms * MS)] * count, 1) | of_second)
        if count:
            book.records[-1]["histograms"]["service_time"] = encoded([MS] * count)
    finished = sum(size for (phase, _), size in zip(seconds, sizes, strict=True) if phase == "measure")
    book.records.append(drained_line(tag, "w0", 8, finished))
    edge = {"kind": "run", **tag, "event": "end", "utc": at(len(measured_ms)), "status": "done", "note": ""}
    book.records.append(edge)
    return load_study(book.write(folder)).runs[0]


def at(second: float) -> str:
    return datetime.fromtimestamp(FIRST_SECOND + second, UTC).isoformat().replace("+00:00", "Z")


def said(run: Summary) -> list[Caveat]:
    return [one for one in run.caveats if one.code in CODES]


def rising(each_s: float, seconds: int, sd: float = 0.02) -> list[float]:
    """20 ms that grow by a share of it a second."""
    times = np.arange(float(seconds))
    return list(20 * (1 + each_s * times) * np.exp(sd * NOISE[:seconds]))


def stepped(first: int, seconds: int, times: float = 4.0) -> list[float]:
    """40 ms, and from a second on so many times that."""
    return list(np.where(np.arange(seconds) < first, 40, 40 * times) * np.exp(0.03 * NOISE[:seconds]))


def test_a_drift_says_how_much_and_how_fast_and_invalidates(tmp_path: Path) -> None:
    (found,) = said(run := a_run(tmp_path, rising(0.01, 20)))
    assert (found.code, run.tainted) == ("drift", True)
    assert found.text == "mean latency rose from 20.2 to 23.6 ms (+17 %) over 16 s: 0.968 % a second"


def test_a_regime_change_says_when_and_invalidates(tmp_path: Path) -> None:
    # the phase is told by whole seconds of the wall clock
    (found,) = said(run := a_run(tmp_path, stepped(20, 30), began_s=0.4))
    assert (found.code, run.tainted) == ("regime-change", True)
    (later,) = said(a_run(tmp_path / "later", stepped(20, 30), began_s=0.6))
    assert later.text.endswith("(+308 %) 19 s into the measure phase")
    assert found.text == "mean latency went from 39.8 to 162 ms (+307 %) 20 s into the measure phase"


@pytest.mark.parametrize(
    ("measured_ms", "why"),
    [
        ([20.0] * 30, "nothing changed"),
        (list(20 * np.exp(0.05 * NOISE[:30])), "noise"),
        ([20.0, 60.0] * 15, "two latencies in turn"),
        (rising(0.004, 20), "8 % is less than a tenth"),
        ([*[40.0] * 15, 200.0, *[40.0] * 14], "one slow second"),
        (stepped(5, 9), "9 seconds are too few"),
    ],
)
def test_nothing_is_said(tmp_path: Path, measured_ms: list[float], why: str) -> None:
    assert said(a_run(tmp_path, measured_ms)) == [], why


def test_a_short_measure_phase_is_judged_with_the_ramp_before_it(tmp_path: Path) -> None:
    assert said(a_run(tmp_path / "nine", [*stepped(4, 8)], [40.0])) == []
    (found,) = said(a_run(tmp_path / "ten", stepped(4, 9), [40.0]))
    assert found.text.endswith("4 s into the measure phase")


def test_a_slope_is_told_by_what_was_seen(tmp_path: Path) -> None:
    """A ramp from 30 to 48 ms in the middle: a fitted line would begin and end beyond both."""
    ramp_ms = 30 * (1 + 0.6 * np.clip((np.arange(20.0) - 6) / 8, 0, 1)) * np.exp(0.01 * NOISE[:20])
    (found,) = said(a_run(tmp_path, list(ramp_ms)))
    assert found.text == "mean latency rose from 29.9 to 48.1 ms (+61 %) over 16 s: 2.97 % a second"


def test_the_warm_up_shows_a_change_at_the_beginning(tmp_path: Path) -> None:
    measured_ms = stepped(2, 12)
    assert said(a_run(tmp_path / "alone", measured_ms)) == []
    (found,) = said(a_run(tmp_path / "after", measured_ms, [40.0, 40.4, 39.8, 40.1, 40.3, 39.9]))
    assert found.text == "mean latency went from 40.0 to 160 ms (+299 %) 2 s into the measure phase"


def test_a_change_before_the_measure_phase_is_none_of_it(tmp_path: Path) -> None:
    warm_up_ms = [40.0, 40.4, 39.8, 40.1, 40.3, 39.9]
    assert said(a_run(tmp_path, [160.0, 161.0, 159.0] * 4, warm_up_ms)) == []


def test_a_drift_since_the_warm_up_says_how_much_of_it_that_was(tmp_path: Path) -> None:
    whole = rising(0.01, 28, sd=0.03)
    assert said(a_run(tmp_path / "alone", whole[8:])) == []
    (found,) = said(a_run(tmp_path / "after", whole[8:], whole[:8]))
    assert found.text == (
        "mean latency rose from 20.4 to 25.2 ms (+23 %) over 21 s, of which 4 s before the measure phase: "
        "1.00 % a second"
    )


def test_seconds_without_an_answer_are_joined(tmp_path: Path) -> None:
    counts = [8 if second % 2 else 0 for second in range(40)]
    (found,) = said(a_run(tmp_path, stepped(20, 40), counts=counts))
    assert found.text.endswith("21 s into the measure phase")


def test_arrivals_beyond_the_capacity_do_not_invalidate(tmp_path: Path) -> None:
    queue_ms = [20.0 + 15 * second for second in range(20)]
    (found,) = said(run := a_run(tmp_path, queue_ms, arrivals="constant"))
    assert (found.code, found.tainted) == ("rising-latency", False)
    assert RateBound("p50", 100).met_by(run) is False


def test_a_load_with_a_course_is_not_judged(tmp_path: Path) -> None:
    stages = [["ramp", 10, 1, 8], ["hold", 20, 8, 8]]
    assert said(a_run(tmp_path, stepped(20, 30), arrivals="constant", stages=stages)) == []


def test_what_follows_the_measure_phase_is_none_of_it(tmp_path: Path) -> None:
    steps = stepped(12, 24)
    assert said(a_run(tmp_path, steps[:12], after_ms=steps[12:])) == []


def test_a_run_under_way_is_not_judged(tmp_path: Path) -> None:
    assert said(a_run(tmp_path, stepped(20, 30), ended=False)) == []
