"""Good requests and classes of requests: counted as exactly as single Results say, from any workers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame

from reports.fold.records import readable
from reports.fold.windows import Results, class_results
from reports.frames.requests import read_requests
from reports.histogram.buckets import percentiles_ns
from reports.ledger.records import check_record
from reports.slo import Slo
from swarm.distributed import protocol
from swarm.distributed.raw_results import RawResults
from swarm.distributed.recorder import Recorder
from users.errors import ErrorKind, RequestError
from users.result import Result

SECOND = 1_000_000_000
SLO = "p99<=100,b16:p99<=400"
SIZES = {"b1": 1, "b4": 4, "b16": 16}


def result(at_ns: int, latency_ns: int, label: str, came: str = "ok") -> Result:
    """One that was sent 1 µs late, and then succeeded, failed, or was abandoned."""
    return Result(
        cell="a/mix/c1",
        repeat=1,
        phase="measure",
        user=0,
        images=SIZES.get(label, 1),
        intended_ns=at_ns,
        start_ns=at_ns + 1_000,
        end_ns=at_ns + latency_ns,
        request_bytes=1,
        error=RequestError(ErrorKind.TIMEOUT, "late") if came == "failed" else None,
        abandoned=came == "abandoned",
        request_class=label,
    )


def recorded(slo: str, results: list[Result]) -> list[dict[str, Any]]:
    recorder = Recorder()
    recorder.begin_study(slo)
    for one in results:
        recorder.add(one)
    return recorder.take_all()


latencies = st.sampled_from((99_999_999, 100_000_000, 100_000_001, 400_000_000, 400_000_001)) | st.integers(
    1_000_000, 3 * SECOND
)
requests = st.builds(
    result,
    st.integers(0, 5 * SECOND),
    latencies,
    st.sampled_from(tuple(SIZES)),
    st.sampled_from(("ok", "ok", "ok", "failed", "abandoned")),
)


@given(st.lists(st.lists(requests, min_size=1, max_size=40), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_good_requests_are_those_that_single_results_say_are(
    tmp_path_factory: pytest.TempPathFactory, workers: list[list[Result]]
) -> None:
    windows = [window for found in workers for window in recorded(SLO, found)]
    assert protocol.are_records({"records": windows, "raw": []})
    folded, classes = Results(), class_results(readable(windows))
    folded.add(readable(windows))
    rows = kept(tmp_path_factory.mktemp("raw"), workers)
    limits_ns = rows["request_class"].astype(str).map(Slo.parse(SLO).limit_ns)
    latency_ns = rows["send_delay_ns"] + rows["service_ns"]
    succeeded = (rows["error"].astype(str) == "") & ~rows["abandoned"]
    assert folded.good == int((succeeded & (latency_ns <= limits_ns)).sum())
    for label, one in classes.items():
        own = rows["request_class"].astype(str) == label
        mine = rows[own & ~rows["abandoned"]]
        exact_ns = np.sort(latency_ns[own & succeeded].to_numpy(np.int64))
        assert one.finished == len(mine)
        assert (one.ok, one.images) == (len(exact_ns), SIZES[label] * len(exact_ns))
        assert one.good == int((exact_ns <= Slo.parse(SLO).limit_ns(label)).sum())
        for percent in (50, 95, 99) if len(exact_ns) else ():
            (found_ns,) = percentiles_ns(one.histogram("latency"), [percent])
            assert found_ns == pytest.approx(np.percentile(exact_ns, percent, method="inverted_cdf"), 1e-3)


def kept(folder: Path, workers: list[list[Result]]) -> DataFrame:
    """The rows of results.parquet."""
    raw = RawResults(1_000)
    for at, found in enumerate(workers):
        recorder = Recorder()
        recorder.raw_left = len(found)
        for one in found:
            recorder.add(one)
        for rows in recorder.take_raw():
            assert protocol.are_rows(rows)
            raw.add(f"w{at}", rows)
    raw.write(folder)
    return read_requests(folder)


def test_without_an_objective_or_classes_a_window_tells_of_neither() -> None:
    (window,) = recorded("", [result(0, 5_000_000, "")])
    assert not {"good", "classes"} & window.keys()
    assert class_results(readable([window])) == {}
    found = Results()
    found.add(readable([window]))
    assert found.good is None


def test_seconds_that_only_share_images_leave_the_count_known() -> None:
    """A request of three seconds has its share in windows of its own, in which nothing is good or bad."""
    windows = recorded(SLO, [result(0, 3 * SECOND, "b1")])
    assert [window.get("good") for window in windows if window["ok"]] == [0]
    found = Results()
    found.add(readable(windows))
    assert found.good == 0


OK = {"ok": 2, "failures": 0, "images": 2, "good": 1}


def window(**changed: Any) -> dict[str, Any]:
    """One with two classes, changed."""
    (made,) = recorded(
        SLO, [result(0, ms * 1_000_000, "b1") for ms in (1, 200)] + [result(0, 1_000_000, "b4")]
    )
    return made | changed


def of_b1(**changed: Any) -> dict[str, Any]:
    classes = window()["classes"]
    return window(classes={**classes, "b1": classes["b1"] | changed})


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (window(good=4), "a window of 3 successes has 4 good ones"),
        (window(good=-1), "good is -1, and must be a whole number"),
        (window(good=1), "a window has 1 good, and its classes have 2"),
        (window(classes={}), "classes is {}"),
        (window(classes=[1]), r"classes is \[1\]"),
        (window(classes={"": window()["classes"]["b1"]}), "a class of requests is ''"),
        (window(classes={"b1": window()["classes"]["b1"]}), "a window has 3 ok, and its classes have 2"),
        (of_b1(ok=1), "good|a window has 3 ok, and its classes have 2"),
        (of_b1(ok="2"), "ok of class b1 is '2'"),
        (of_b1(ok=True), "ok of class b1 is True"),
        (of_b1(images=3), "a window has 6 images, and its classes have 7"),
        (of_b1(failures=1), "a window has 0 failures, and its classes have 1"),
        (of_b1(failures=None), "failures of class b1 is None"),
        (of_b1(good=3), "good of class b1 is 3"),
        (of_b1(histograms={}), "class b1 has 2 successes and no latency"),
        (of_b1(histograms=5), "class b1 is"),
    ],
)
def test_what_contradicts_itself_is_refused_at_both_doors(record: dict[str, Any], why: str) -> None:
    assert protocol.is_record(window())
    assert not protocol.is_record(record)
    with pytest.raises(ValueError, match=why):
        check_record(record)


def test_histograms_of_classes_hold_as_many_as_were_counted() -> None:
    one, two = window()["classes"]["b4"]["histograms"], window()["classes"]["b1"]["histograms"]
    for histograms in (one, {**two, "latency": one["latency"]}, {**two, "latency": "HISTx"}, two | {"x": 5}):
        assert not protocol.are_readable([of_b1(histograms=histograms)])
    assert protocol.are_readable([window()])
