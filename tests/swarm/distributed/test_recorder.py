"""Results become windows of a second; what a request was is in one of them, its images in all its seconds."""

from typing import Any

import pytest

from reports.fold.windows import Windows, request_counts
from reports.histogram import buckets, codec
from reports.ledger.records import check_record
from swarm.distributed.recorder import SPREAD_S, Recorder
from users.errors import ErrorKind, RequestError
from users.result import Result

SECOND = 1_000_000_000


def result(
    start_ns: int,
    service_ns: int,
    user: int = 0,
    phase: str = "measure",
    error: RequestError | None = None,
    abandoned: bool = False,
    delay_ns: int = 1_000_000,
) -> Result:
    return Result(
        cell="a/b4/c1",
        repeat=1,
        phase=phase,
        user=user,
        images=4,
        intended_ns=start_ns - delay_ns,
        start_ns=start_ns,
        end_ns=start_ns + service_ns,
        request_bytes=100,
        response_bytes=10,
        error=error,
        abandoned=abandoned,
        phases_ns={"decode": 3_000_000},
        server_ns={"compute": 5},
    )


@pytest.fixture
def recorder() -> Recorder:
    made = Recorder()
    made._anchor_ns = 1_000 * SECOND  # the wall clock then shows 1,000 s at monotonic zero
    return made


def test_counts_bytes_and_parts(recorder: Recorder) -> None:
    recorder.add(result(100, 20_000_000))
    recorder.add(result(200, 30_000_000, error=RequestError(ErrorKind.TIMEOUT, "late")))
    recorder.add(result(50, 40_000_000, abandoned=True))  # began first, ended last
    (window,) = recorder.take_all()
    assert (window["ok"], window["failures"], window["abandoned"]) == (1, {"timeout": 1}, 1)
    assert (window["images"], window["request_bytes"], window["response_bytes"]) == (4, 100, 10)
    assert (window["server_ns"], window["server_count"]) == ({"compute": 5}, 1)
    assert (window["first_start_ns"], window["last_end_ns"]) == (50, 50 + 40_000_000)
    assert set(window["histograms"]) == {"latency", "service_time", "send_delay", "decode", "timeout"}
    latency = codec.merged([window["histograms"]["latency"]])
    assert latency.total == 1
    assert buckets.percentiles_ns(latency, [50])[0] == pytest.approx(21e6, rel=1e-3)
    decode = codec.merged([window["histograms"]["decode"]])
    assert buckets.percentiles_ns(decode, [50])[0] == pytest.approx(3e6, rel=1e-3)
    timeout = codec.merged([window["histograms"]["timeout"]])
    assert buckets.percentiles_ns(timeout, [50])[0] == pytest.approx(31e6, rel=1e-3)


def test_how_long_nobody_was_answered_while_a_request_waited(recorder: Recorder) -> None:
    at = 1_000 * SECOND
    recorder.add(result(100, 20))
    recorder.add(result(90, 400, phase="warm-up"))  # an answer all the same
    recorder.add(result(300, 500, error=RequestError(ErrorKind.TIMEOUT, "no answer")))
    recorder.add(result(200, 650, error=RequestError(ErrorKind.REJECTED, "an answer")))
    recorder.add(result(2_000, 300))  # nobody waited before
    recorder.add(result(1_990, 330, abandoned=True))
    windows = {window["phase"]: window["silence"] for window in recorder.take_all()}
    assert windows == {"warm-up": (at + 120, at + 490), "measure": (at + 490, at + 850)}
    recorder.add(result(2_100, SECOND))
    (window,) = (one for one in recorder.take_all() if "silence" in one)
    assert window["silence"] == (at + 2_300, at + 2_100 + SECOND)
    check_record(window)


@pytest.mark.parametrize("silence", [None, [1], [1, -2], [1, "2"], [1, None], 3, [1, 2, 3]])
def test_a_silence_is_a_begin_and_an_end(recorder: Recorder, silence: object) -> None:
    recorder.add(result(100, 20))
    (window,) = recorder.take_all()
    with pytest.raises(ValueError, match=r"silence|nowhere"):
        check_record({**window, "silence": silence})


def test_codes_and_words_of_refusals_are_counted(recorder: Recorder) -> None:
    for code, again, what in (
        ("429", "2", "queue"),
        ("429", "soon", ""),
        ("503", None, "rate"),
        ("", None, ""),
    ):
        recorder.add(result(100, 10, error=RequestError(ErrorKind.REJECTED, "", code, again, what)))
    recorder.add(result(200, 10))
    recorder.add(result(SECOND + 1, 10))
    first, second = recorder.take_all()
    assert first["failures"] == {"rejected": 4}
    assert first["failure_codes"] == {"429": 2, "503": 1}
    assert first["refused_for"] == {"queue": 1, "rate": 1}
    assert (first["retry_after"], first["retry_after_s"]) == (2, 2)
    assert not {"failure_codes", "refused_for", "retry_after", "retry_after_s"} & second.keys()
    check_record(first | {"worker": "w0"})


def test_answers_of_caches_are_counted_where_headers_tell(recorder: Recorder) -> None:
    for told in (True, False, True, None):
        recorder.add(result(100, 10)._replace(from_cache=told))
    recorder.add(result(SECOND + 1, 10))
    first, second = recorder.take_all()
    assert (first["cache_hits"], first["cache_queries"]) == (2, 3)
    assert not {"cache_hits", "cache_queries"} & second.keys()
    check_record(first | {"worker": "w0"})


def test_requests_that_made_a_connection_are_counted(recorder: Recorder) -> None:
    made = {"send": 1_000, "wait": 5_000, "connect": 2_000_000}
    for phases_ns in (made, {**made, "resend": 1_000}, {"send": 1_000, "wait": 5_000}):
        recorder.add(result(100, 10_000_000)._replace(phases_ns=phases_ns))
    (window,) = recorder.take_all()
    assert (window["connects"], window["resent"]) == (2, 1)
    check_record(window | {"worker": "w0"})
    seen = Windows()
    seen.add([{**window, "histograms": {}}] * 2)
    assert request_counts(seen, 1e9).resent == 2
    connect = codec.merged([window["histograms"]["connect"]])
    assert connect.total == 2
    assert buckets.percentiles_ns(connect, [50])[0] == pytest.approx(2e6, rel=1e-3)


def test_users_and_progress(recorder: Recorder) -> None:
    for start in (0, 100, 200):
        recorder.add(result(start, 50, user=1))
    recorder.add(result(1000, 500, user=2))
    recorder.add(result(5000, 500, user=3, abandoned=True))
    tally = recorder.tally("a/b4/c1", "measure")
    assert (tally.ok, tally.failed, tally.abandoned, tally.finished) == (4, 0, 1, 4)
    assert tally.users_ns == {1: (0, 250), 2: (1000, 1500)}
    assert tally.spans_ns(recorder.tally("a/b4/c1", "drain")) == 250 + 500
    recorder.add(result(300, 50, user=1)._replace(phase="drain"))
    recorder.add(result(400, 50, user=1)._replace(phase="drain"))
    # the time that user 1 took for itself until its next request belongs to the one before
    assert tally.spans_ns(recorder.tally("a/b4/c1", "drain")) == 300 + 500
    # of a user that thinks until after the end, its think time does
    recorder.add(result(2000, 100, user=2)._replace(think_ns=3000))
    assert tally.spans_ns(recorder.tally("a/b4/c1", "drain")) == 300 + 4100
    recorder.begin_cell()
    assert [recorder.tally("a/b4/c1", phase).finished for phase in ("measure", "drain")] == [0, 0]


def test_a_result_outside_the_histogram_is_counted_and_said(recorder: Recorder) -> None:
    recorder.add(result(100, 2 * 3600 * SECOND))
    recorder.add(result(100, 10, delay_ns=-5))
    short, *_, long = recorder.take_all()
    assert codec.merged([long["histograms"]["service_time"]]).total == 1
    assert (short["out_of_range"], long["out_of_range"]) == (
        {"send_delay": 1},
        {"latency": 1, "service_time": 1},
    )


def spread(records: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Of each window its second, counted from the first, its images, and the thousandths spread to it."""
    return [(one["second"] - 1_000, one["images"], one["spread_milli_images"]) for one in records]


def test_images_are_spread_over_the_seconds_of_their_request(recorder: Recorder) -> None:
    recorder.add(result(SECOND * 3 // 4, SECOND * 3 // 2))
    recorder.add(result(SECOND * 5 // 2, SECOND // 10))
    records = recorder.take_all()
    # of 1.5 s a quarter in the first second, a whole one, a quarter: 4 images × 1/6, 4/6, 1/6
    assert spread(records) == [(0, 0, 666), (1, 0, 2_667), (2, 8, 4_667)]
    assert (records[0]["ok"], records[0]["histograms"], records[0]["first_start_ns"]) == (0, {}, 0)
    check_record(records[0])


def test_a_share_that_comes_late_to_a_second_is_shipped_once_a_second(recorder: Recorder) -> None:
    recorder.add(result(SECOND // 2, SECOND // 4))
    assert spread(recorder.take_closed(SECOND)) == [(0, 4, 4_000)]
    for end_ns in (SECOND * 5 // 4, SECOND * 3 // 2, SECOND * 7 // 4):
        recorder.add(result(SECOND // 2, end_ns - SECOND // 2))
        assert recorder.take_closed(end_ns) == []
    assert spread(recorder.take_closed(2 * SECOND)) == [(0, 0, 2_666 + 2_000 + 1_600), (1, 12, 5_734)]
    assert recorder.take_all() == []


@pytest.mark.parametrize("seconds", [61, 100, 300])
def test_of_a_longer_request_the_earlier_share_is_spread_over_the_seconds_that_are_told(
    recorder: Recorder, seconds: int
) -> None:
    recorder.add(result(0, seconds * SECOND - 1))
    found = spread(recorder.take_all())
    assert [second for second, _, _ in found] == list(range(seconds - SPREAD_S, seconds))
    # no wave: 4 images in 60 seconds, 66.67 thousandths each
    assert {milli for _, _, milli in found} == {66, 67}
    assert sum(milli for _, _, milli in found) == 4_000
