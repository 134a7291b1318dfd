"""When no limit can be named, and which reason is given; and when the load itself is the limit."""

from dataclasses import replace
from typing import Any

import pytest

from reports.caveat import caveat
from reports.fold.windows import Offered
from reports.limits.rules import limit_of
from tests.reports.limit_runs import MS, a_run
from tests.reports.parts import changed

SILENT = {
    "server_queue_ns": None, "server_compute_ns": None, "server_other_ns": None,
    "server_busy": None, "server_parts": {}, "cold_share": None, "executed_batch": None,
}  # fmt: skip
OPEN = {
    "load": "open",
    "arrivals": "constant",
    "level": 200.0,
    "offered": Offered(199.6, 1, 5.0),
    "due": 1_000,
}


def judged(**changes: Any) -> tuple[str, str]:
    limit = limit_of(a_run(**changes))
    assert limit is not None
    return limit.code, limit.evidence


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "failed"}, "the run ended as failed"),
        ({"status": "unfinished", "worker_cpu_pct": 99.0}, "the run ended as unfinished"),
        ({"failures": 1_000}, "no request succeeded"),
        ({"failures": 101}, "101 of 1,000 requests failed (10.1 %)"),
        (
            {"failures": 50, "failure_kinds": {"timeout": 50}, "timeout_mean_ns": 4_000 * MS},
            "50 of 1,000 requests failed, in 91.3 % of all requests' time",
        ),
        ({"requests": 9}, "only 9 requests succeeded, of the 10 that a mean needs"),
        ({"latency_mean_ns": None, "service_mean_ns": None}, "no mean latency is known"),
        ({"caveats": (caveat("server-lost", "it restarted"),)}, "it restarted"),
    ],
)
def test_a_run_of_which_nothing_can_be_said(changes: dict[str, Any], why: str) -> None:
    assert judged(**changes) == ("inconclusive", why)


@pytest.mark.parametrize("changes", [{"failures": 100}, {"requests": 20}])
def test_a_run_of_which_just_enough_is_known(changes: dict[str, Any]) -> None:
    assert judged(**changes)[0] == "offered-load"


def test_a_server_that_does_not_tell_its_parts() -> None:
    code, evidence = judged(**SILENT, unexplained_ns=13 * MS, network_ns=6 * MS)
    assert code == "inconclusive"
    assert evidence == "the server's parts could not be read; nothing else is seen to limit it"


def test_why_a_server_does_not_tell_its_parts() -> None:
    refused = caveat("probe-gap", "the statistics of onnx-http cannot be read (refused)")
    assert refused.text in judged(**SILENT, caveats=(refused,))[1]


def test_a_silent_server_does_not_hide_a_client_without_cpu() -> None:
    assert judged(**SILENT, worker_cpu_pct=95.0)[0] == "client-cpu"


@pytest.mark.parametrize(
    ("left_ms", "code"),
    [(6.5, "inconclusive"), (5.9, "offered-load")],  # beside a compute of 6 ms
)
def test_a_largest_part_that_is_unexplained(left_ms: float, code: str) -> None:
    assert judged(unexplained_ns=left_ms * MS, network_ns=2 * MS)[0] == code


def test_the_evidence_of_what_is_unexplained() -> None:
    code, evidence = judged(unexplained_ns=12 * MS, network_ns=1 * MS)
    assert code == "inconclusive"
    assert evidence == "the largest part is unexplained: 12.0 ms beside a latency of 20.0 ms"


def test_parts_that_come_to_more_than_the_whole() -> None:
    evidence = judged(unexplained_ns=-5 * MS)[1]
    assert evidence.startswith("the parts come to more than was measured: 5.0 ms")


@pytest.mark.parametrize(("size", "code"), [(602_289.0, "offered-load"), (13_400.0, "inconclusive")])
def test_taking_in_a_large_request_is_no_riddle(size: float, code: str) -> None:
    """A null model on a loopback: 1.2 ms at 500 MB/s and 2 ms besides may be unexplained, and are most."""
    null = {"server_compute_ns": 0.3 * MS, "server_queue_ns": 0.0, "server_other_ns": 0.1 * MS}
    times = {"service_mean_ns": 5 * MS, "latency_mean_ns": 5 * MS, "network_ns": 1 * MS}
    alone = {"level": 1, "in_flight": 1.0, "request_bytes": size}
    assert judged(**null, **times, **alone, unexplained_ns=3.1 * MS)[0] == code


def test_what_is_unexplained_may_be_where_others_wait() -> None:
    """Four users before a front end that takes 0.75 ms for each, one after the other."""
    times = {"service_mean_ns": 3 * MS, "latency_mean_ns": 3 * MS, "network_ns": 0.1 * MS}
    null = {"server_compute_ns": 0.1 * MS, "server_queue_ns": 0.0, "server_busy": 0.03}
    code, evidence = judged(**null, **times, unexplained_ns=2.6 * MS)
    assert code == "inconclusive"
    assert evidence == "nothing was found full, but 2.6 of 3.0 ms are unexplained"
    assert judged(**null, **times, unexplained_ns=2.6 * MS, level=1, in_flight=1.0)[0] == "offered-load"


def test_a_path_that_nobody_saw() -> None:
    unseen = replace(a_run(), path=None, network_ns=None)
    limit = limit_of(unseen)
    assert limit is not None
    assert limit.code == "inconclusive"
    assert limit.evidence == "the path took 13.5 of 20.0 ms, and its connections were not seen"
    short = changed(unseen, service_mean_ns=8 * MS, latency_mean_ns=8 * MS)
    assert limit_of(short) != limit
    assert getattr(limit_of(short), "code", None) == "offered-load"


@pytest.mark.parametrize(
    ("waited_pct", "said"),
    [
        (24.0, "nothing was found full, but the client's host was 96.0 % busy"),
        (26.0, "the client's host was 96.0 % busy, and it is not known by whom"),
        (None, "the client's host was 96.0 % busy, and it is not known by whom"),
    ],
)
def test_a_host_that_is_full(waited_pct: float | None, said: str) -> None:
    assert judged(host_cpu_pct=96.0, cpu_wait_pct=waited_pct) == ("inconclusive", said)
    assert judged(host_cpu_pct=89.0, cpu_wait_pct=waited_pct)[0] == "offered-load"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decode_ns": 12 * MS, "worker_cpu_pct": 3.0}, "encode and decode took 12.0 of 20.0 ms"),
        ({"server_parts": {"compute": 1 * MS, "output": 12 * MS}}, "output took 12.0 of 20.0 ms"),
        ({"send_ns": 12 * MS}, "send took 12.0 of 20.0 ms"),
        ({"server_parts": {"compute": 1 * MS, "queue": 11 * MS}}, "queue wait took 11.0 of 20.0 ms"),
        (
            {
                "network_ns": 12 * MS,
                "path": {"rtt_ns": 300 * MS, "min_rtt_ns": 5 * MS, "delivery_bytes_per_s": 121e6},
            },
            "network took 12.0 of 20.0 ms",
        ),
    ],
)
def test_a_part_that_is_half_of_the_time_and_that_no_rule_names(changes: dict[str, Any], said: str) -> None:
    code, evidence = judged(**changes)
    assert code == "inconclusive"
    assert evidence.startswith(said)


def test_a_codec_that_computes_may_take_most_of_the_time() -> None:
    assert judged(decode_ns=12 * MS, worker_cpu_pct=60.0, workers=4)[0] == "offered-load"


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({}, "offered-load", "the server kept up with 200 requests a second"),
        ({"dropped": 40}, "inconclusive", "40 of 1,000 arrivals were never sent, and nothing was full"),
        (
            {"send_delay_mean_ns": 6 * MS, "latency_mean_ns": 26 * MS},
            "inconclusive",
            "requests began 6.0 ms",
        ),
        (
            {"caveats": (caveat("rate-missed", "180 were sent"),)},
            "inconclusive",
            "the asked rate was not sent",
        ),
    ],
)
def test_whether_an_open_load_was_carried(changes: dict[str, Any], code: str, said: str) -> None:
    found, evidence = judged(**OPEN | changes)
    assert found == code
    assert evidence.startswith(said)


def test_an_open_load_that_was_carried_may_be_raised() -> None:
    limit = limit_of(a_run(**OPEN))
    assert limit is not None
    assert limit.advice.startswith("Raise the rate")


def test_room_on_a_link_is_said() -> None:
    assert "9.68 % of the link's rate was sent" in judged(link_bytes_per_s=1250e6)[1]
