"""Windows and drained lines, added up: counts, means, how long was measured, what open-loop load sent."""

from typing import Any

import pytest

from reports.fold.records import readable
from reports.fold.windows import (
    Arrivals,
    ClientPhases,
    Offered,
    RequestCounts,
    Results,
    Windows,
    abandoned,
    arrivals,
    client_phases,
    measure_ns,
    other_phases,
    request_counts,
    undrained,
)
from tests.reports.lines import Record, encoded, window

MS, S = 1_000_000, 1_000_000_000
TOLD = {
    **{"abandoned": 1, "request_bytes": 900, "response_bytes": 90, "late": 1, "connects": 2},
    **{"server_count": 3, "retry_after": 2, "retry_after_s": 7},
    **{"failures": {"timeout": 1, "rejected": 2}, "failure_codes": {"429": 2}, "refused_for": {"queue": 2}},
    **{"server_ns": {"queue": 10, "compute": 30}, "out_of_range": {"send": 1}},
}


def one(ok: int = 3, worker: str = "w0", **told: Any) -> Record:
    """A window of successes in batches of two; what older ones did not tell is not told."""
    return window({}, worker, [MS] * ok, 2) | {"first_start_ns": 0, "last_end_ns": 0} | told


def folded(*windows: Record) -> Windows:
    found = Windows()
    found.add(readable(windows[:1]))
    found.add(readable(windows[1:]))
    return found


def test_windows_are_summed_and_span_the_time_from_the_first_start_to_the_last_end() -> None:
    found = folded(
        one(**TOLD, first_start_ns=500, last_end_ns=900),
        one(**TOLD, first_start_ns=200, last_end_ns=1_700, spread_milli_images=5_500),
        one(0, late=0, connects=0),
        one(1, first_start_ns=700, last_end_ns=1_000, late=4, connects=0),
    )
    counted = {name: getattr(found, name) for name in ("ok", "failures", "finished", "sent", "images")}
    assert counted == {"ok": 7, "failures": 6, "finished": 13, "sent": 15, "images": 14}
    assert (found.late, found.connects, found.seen, found.abandoned) == (6, 4, 4, 2)
    assert (found.request_bytes, found.response_bytes) == (1_800 + 1_204_224, 180 + 4_096)
    assert (found.server_count, found.retry_after, found.retry_after_s) == (6, 4, 14)
    assert (found.failure_kinds, found.failure_codes) == ({"timeout": 2, "rejected": 4}, {"429": 4})
    assert (found.refused_for, found.server_ns) == ({"queue": 4}, {"queue": 20, "compute": 60})
    assert (found.out_of_range, found.histogram("latency").total) == ({"send": 2}, 7)
    assert (found.spread_milli_images, found.is_spread) == (6_000 + 5_500 + 2_000, True)
    assert (found.first_start_ns, found.last_end_ns, found.span_ns) == (200, 1_700, 1_500)
    found.other_phases = 4
    assert found.at_server == 19


def test_what_one_window_does_not_tell_is_unknown_or_stands_where_requests_ended() -> None:
    found = folded(one(late=1, connects=1), one(late=None, connects=1), one(late=1, connects=None))
    assert (found.late, found.connects, found.is_spread, found.span_ns) == (None, None, False, 0)
    assert found.spread_milli_images == 18_000
    assert [folded(one(**{edge: 5})).span_ns for edge in ("first_start_ns", "last_end_ns")] == [0, 0]


def test_results_are_merged_with_all_that_they_hold_and_keep_the_histograms_that_are_named() -> None:
    parts = [Results(frozenset({"latency"})) for _ in range(2)]
    for part, told in zip(parts, ({"late": 2}, {"late": 3, "spread_milli_images": 1_500}), strict=True):
        part.add(readable([one(4, failures={"reset": 1}, **told)]))
    whole, other = parts
    whole.merge(other)
    assert (whole.ok, whole.images, whole.late, whole.failure_kinds) == (8, 16, 5, {"reset": 2})
    assert (whole.spread_milli_images, whole.is_spread) == (9_500, True)
    assert (whole.histograms.keys(), whole.histogram("latency").total) == ({"latency"}, 8)
    assert whole.histogram("service_time").total == 0


def test_counts_and_rates_are_of_successes_over_the_measured_time() -> None:
    found = request_counts(folded(one(**TOLD), one(5, late=0, connects=0)), 4.0 * S)
    assert (found.requests, found.failures, found.succeeded, found.abandoned, found.images) == (
        11,
        3,
        8,
        1,
        16,
    )
    assert (found.requests_per_s, found.images_per_s, found.measure_ns) == (2.0, 4.0, 4.0 * S)
    assert (found.request_bytes, found.response_bytes) == ((900 + 10 * 602_112) / 8, (90 + 10 * 2_048) / 8)
    assert (found.retry_after, found.retry_after_s, found.failure_codes) == (2, 7, {"429": 2})
    assert (found.failure_kinds, found.refused_for) == ({"timeout": 1, "rejected": 2}, {"queue": 2})
    # nothing tells that connections are known of
    assert (found.connects, found.connects_per_request) == (None, None)


def test_rates_and_means_are_unknown_where_there_is_nothing_to_divide() -> None:
    nothing = request_counts(Windows(), None)
    zeros = dict.fromkeys(("requests", "failures", "abandoned", "images", "retry_after", "retry_after_s"), 0)
    assert nothing == RequestCounts(**zeros)
    assert (RequestCounts().succeeded, RequestCounts().connects_per_request) == (0, None)
    failed = request_counts(folded(one(0, failures={"timeout": 4})), 2.0 * S)
    assert (failed.requests_per_s, failed.images_per_s, failed.request_bytes) == (0.0, 0.0, None)
    # a ledger that does not count images
    assert request_counts(folded(one(images=0)), 2.0 * S).images_per_s is None


def test_phases_are_means_and_what_only_some_had_is_spread_over_all() -> None:
    names = ("encode", "send", "wait", "receive", "decode")
    every = {name: encoded([n * MS] * 4) for n, name in enumerate(names, 1)}
    some = {
        "connect": encoded([8 * MS]),
        "resolve": encoded([6 * MS]),
        "stream_wait": encoded([0]),
        "flow_wait": encoded([4 * MS, 12 * MS]),
    }
    record = one(4, connects=1)
    record["histograms"] |= every | some
    found = folded(record)
    assert vars(client_phases(found)) == {
        f"{name}_ns": pytest.approx(value * MS, rel=1e-3)
        for name, value in zip([*names, *some], (1, 2, 3, 4, 5, 2, 1.5, 0, 4), strict=True)
    }
    assert request_counts(found, None).connects_per_request == 0.25
    assert client_phases(folded(one(4, connects=1))) == ClientPhases()


def drained(worker: str = "w0", **told: Any) -> Record:
    return {"kind": "drained", "worker": worker, "phase": "measure", "users": 2, "abandoned": 0} | told


def spans(*lengths_ns: int) -> list[Windows]:
    return [Windows(first_start_ns=7 * S, last_end_ns=7 * S + length_ns) for length_ns in lengths_ns]


@pytest.mark.parametrize(
    ("load", "workers", "lines", "measured_ns"),
    [
        # whole cycles of the users of all workers; the longest span where one does not tell of them
        ("closed", spans(40, 50), [drained(users_ns=60), drained(users=4, users_ns=240)], 50),
        ("closed", spans(41, 53), [drained(users_ns=60), drained(users=4)], 53),
        ("closed", spans(41, 53), [drained(users_ns=60, users=0)], None),
        ("closed", spans(53, 41), [], 53),
        ("closed", [], [], None),
        # the longest phase, or what came back after it
        ("open", spans(40, 50), [drained(phase_ns=70), drained(phase_ns=65, users_ns=900)], 70),
        ("open", spans(40, 80), [drained(phase_ns=70), drained()], 80),
        ("open", [Windows()], [drained()], None),
    ],
)
def test_how_long_was_measured(
    load: str, workers: list[Windows], lines: list[Record], measured_ns: float | None
) -> None:
    assert measure_ns(load == "open", workers, lines) == measured_ns


def test_what_was_given_up_is_as_drained_workers_say_and_as_windows_have_it_of_others() -> None:
    workers = {"w0": Windows(abandoned=1), "w1": Windows(abandoned=5), "w2": Windows(abandoned=7)}
    lines = [drained("w0", abandoned=3), drained("w2", abandoned=0), drained("w3", abandoned=20)]
    assert abandoned(workers, lines) == 3 + 5 + 0 + 20
    assert undrained(["w2", "w1", "w4", "w0"], lines) == ["w1", "w4"]
    assert other_phases([drained(other_phases=2), drained(), drained(other_phases=5)]) == 7


def test_arrivals_are_of_the_workers_that_had_a_phase() -> None:
    lines = [
        drained("w0", phase_ns=4 * S, sent=8, due=10, dropped=2, overslept=1),
        drained("w1", phase_ns=6 * S, sent=30, due=30, dropped=0, overslept=4),
        drained("w2", phase_ns=0, sent=0, due=None, dropped=None, overslept=None),
    ]
    seen, untold = Windows(seen=1, late=3), Windows(late=3)
    offered = Offered(per_s=2.0 + 5.0, workers=2, phase_s=5.0)
    found = arrivals("open", seen, lines)
    assert found == Arrivals(late=3, due=40, dropped=2, overslept=5, offered=offered)
    assert found.offered_per_s == 7.0
    assert arrivals("closed", seen, lines) == Arrivals(late=3)
    assert arrivals("open", untold, lines[2:]) == Arrivals()
    assert Arrivals().offered_per_s is None
    lines[1]["overslept"] = None
    assert arrivals("open", seen, lines) == Arrivals(late=3, due=40, dropped=2, offered=offered)
