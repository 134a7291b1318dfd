"""When no limit can be named, and which reason is given; and when the load itself is the limit."""

from dataclasses import replace
from typing import Any

import pytest

from reports.caveat import caveat
from reports.fold.windows import Offered
from reports.limits.rules import limit_of
from reports.machines.gpus import GpuUse
from tests.reports.limit_runs import MS, a_run, named
from tests.reports.limits.test_rules import code_of
from tests.reports.parts import changed

SILENT: dict[str, Any] = {"server_parts": {}, "server_busy": None, "cold_share": None, "executed_batch": None}
OPEN = {
    "load": "open",
    "arrivals": "constant",
    "level": 200.0,
    "offered": Offered(199.6, 1, 5.0),
    "due": 1_000,
}
NULL: dict[str, Any] = {"server_parts": {"compute": 0.3 * MS, "input": 0.1 * MS}, "network_ns": 1 * MS}
"""A server that does hardly anything with a request."""
TAKEN_IN = NULL | {"level": 1, "in_flight": 1.0, "unexplained_ns": 3.1 * MS}
DECODING: dict[str, Any] = {"decode_ns": 12 * MS, "workers": 4}
UNCOUNTED: dict[str, Any] = {"server_busy": None, "server_parts": {"queue": 2.0 * MS, "compute": 6 * MS}}
FULL_GPU = GpuUse(id="GPU-71ce41fd-3ac0", serves=True, util_pct=97.0, power_share=0.95)
QUEUED = {"rtt_ns": 300 * MS, "min_rtt_ns": 5 * MS, "delivery_bytes_per_s": 121e6}
"""No least round trip, and no faster than what is carried."""
SLOW = {"delivery_bytes_per_s": 121e6}
NEAR = {"rtt_ns": 5.5 * MS, "min_rtt_ns": 5 * MS, "delivery_bytes_per_s": 0.0}
ALWAYS_FULL = {"busy_share": 0.9, "cwnd_bytes": 1e6, "not_sent_bytes": 1e6, "unacked_bytes": 9e5}
SEPARATE = "Run client and server on hosts of their own, with nothing else on them."


def lasting(service_ms: float, **changes: Any) -> dict[str, Any]:
    return dict.fromkeys(("service_mean_ns", "latency_mean_ns"), service_ms * MS) | changes


def unknown(**changes: Any) -> str:
    """Why no limit of a run is known."""
    return named(a_run(**changes), "inconclusive").evidence


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
        (
            SILENT | {"unexplained_ns": 13 * MS, "network_ns": 6 * MS},
            "the server's parts could not be read; nothing else is seen to limit it",
        ),
        (
            SILENT | {"caveats": (caveat("probe-gap", "its statistics cannot be read (refused)"),)},
            "the server's parts could not be read; its statistics cannot be read (refused); "
            "nothing else is seen to limit it",
        ),
        (
            {"unexplained_ns": 12 * MS, "network_ns": 1 * MS},
            "the largest part is unexplained: 12.0 ms beside a latency of 20.0 ms",
        ),
        (
            {"unexplained_ns": -5 * MS},
            "the parts come to more than was measured: 5.0 ms beside a latency of 20.0 ms",
        ),
    ],
)
def test_a_run_of_which_nothing_can_be_said(changes: dict[str, Any], why: str) -> None:
    assert unknown(**changes) == why


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"failures": 100}, "offered-load"),
        ({"requests": 20}, "offered-load"),
        (SILENT | {"worker_cpu_pct": 95.0}, "client-cpu"),  # which a silent server does not hide
        ({"unexplained_ns": 6.5 * MS, "network_ns": 2 * MS}, "inconclusive"),  # beside a compute of 6 ms
        ({"unexplained_ns": 5.9 * MS, "network_ns": 2 * MS}, "offered-load"),
        # Of a null model on a loopback 1.2 ms at 500 MB/s and 2 ms besides may be unexplained, and are most.
        (lasting(5, **TAKEN_IN), "offered-load"),
        (lasting(5, **TAKEN_IN | {"request_bytes": 13_400.0}), "inconclusive"),
        # 12 ms for each of 200 a second are 2.4 of four cores.
        (DECODING | {"worker_cpu_pct": 30.0}, "offered-load"),
        (DECODING | {"worker_cpu_pct": 29.9}, "inconclusive"),
        (DECODING | {"worker_cpu_pct": 40.0, "loop_cpu_pct": 29.9}, "inconclusive"),
        (DECODING | {"requests_per_s": None}, "offered-load"),
        (DECODING | {"worker_cpu_pct": None}, "offered-load"),
        # Arrivals that come close together wait for each other.
        (OPEN | {"server_parts": {"queue": 10 * MS}}, "offered-load"),
        # A request and its answer take a round trip, the first bytes of a large one a second.
        ({"network_ns": 10 * MS, "path": QUEUED}, "offered-load"),
        ({"network_ns": 10.1 * MS, "path": QUEUED}, "inconclusive"),
        ({"network_ns": 12 * MS, "path": NEAR}, "offered-load"),  # each for its own bytes
        ({"network_ns": 12 * MS, "path": NEAR | {"connections": 2}}, "inconclusive"),
        ({"network_ns": 12 * MS, "path": NEAR | ALWAYS_FULL}, "inconclusive"),
        ({"network_ns": 12 * MS, "path": QUEUED | {"delivery_bytes_per_s": 146e6}}, "offered-load"),
        ({"network_ns": 12 * MS, "path": QUEUED | {"min_rtt_ns": None}}, "inconclusive"),
        ({"worker_cpu_pct": None}, "offered-load"),
        ({"loop_lag_p95_ns": None}, "offered-load"),
        (UNCOUNTED, "offered-load"),  # 2 of 20 ms in a queue
        (UNCOUNTED | {"server_parts": {"queue": 2.1 * MS, "compute": 6 * MS}, "level": 1}, "offered-load"),
        ({"host_cpu_pct": 90.0, "level": 1}, "offered-load"),  # one request at a time fills no host
        (lasting(3, **NULL | {"unexplained_ns": 1.4 * MS}), "offered-load"),
        (lasting(3, **NULL | {"unexplained_ns": 2.6 * MS, "level": 1}), "offered-load"),
        ({"network_ns": 9.5 * MS, "path": SLOW}, "offered-load"),
        ({"network_ns": 9.6 * MS, "path": SLOW, "link_bytes_per_s": 1_250e6}, "offered-load"),
        ({"network_ns": 9.6 * MS, "path": NEAR}, "offered-load"),
    ],
)
def test_whether_enough_is_known_and_explained(changes: dict[str, Any], code: str) -> None:
    assert code_of(a_run(**changes)) == code


def test_a_path_that_nobody_saw() -> None:
    unseen = replace(a_run(), path=None, network_ns=None)
    limit = named(unseen, "inconclusive")
    assert limit.evidence == "the path took 13.5 of 20.0 ms, and its connections were not seen"
    assert code_of(changed(unseen, **lasting(8))) == "offered-load"


@pytest.mark.parametrize(
    ("waited_pct", "said"),
    [
        (24.0, "nothing was found full, but the client's host was 90.0 % busy"),
        (26.0, "the client's host was 90.0 % busy, and it is not known by whom"),
        (None, "the client's host was 90.0 % busy, and it is not known by whom"),
    ],
)
def test_a_host_that_is_full(waited_pct: float | None, said: str) -> None:
    limit = named(a_run(host_cpu_pct=90.0, cpu_wait_pct=waited_pct), "inconclusive")
    assert (limit.evidence, limit.advice) == (said, SEPARATE)
    assert code_of(a_run(host_cpu_pct=89.9, cpu_wait_pct=waited_pct)) == "offered-load"


@pytest.mark.parametrize(
    ("changes", "part", "advice"),
    [
        (
            {"decode_ns": 6 * MS, "encode_ns": 4 * MS, "worker_cpu_pct": 3.0},
            "encode and decode",
            "Find what holds the client up while it",
        ),
        ({"send_ns": 10 * MS}, "send", "Look at what the client waits for before it can send"),
        ({"stream_wait_ns": 10 * MS}, "stream wait", "Raise the server's limit of concurrent streams"),
        ({"flow_wait_ns": 10 * MS}, "flow wait", "Look at why the server gives no credit"),
        ({"server_parts": {"input": 10 * MS}}, "input", "Look at what the server does with its input"),
        ({"server_parts": {"output": 10 * MS}}, "output", "Look at what the server does with its output"),
        ({"receive_ns": 10 * MS}, "receive", "Look at how the server writes its answers"),
        ({"server_parts": {"queue": 10 * MS}}, "queue wait", "Look at the server's scheduler"),
        (
            {"network_ns": 10 * MS, "path": QUEUED | {"min_rtt_ns": 4 * MS}},
            "network",
            "Look at proxies on the",
        ),
    ],
)
def test_a_part_that_is_half_of_the_time_and_that_no_rule_names(
    changes: dict[str, Any], part: str, advice: str
) -> None:
    limit = named(a_run(**changes), "inconclusive")
    assert limit.evidence == f"{part} took 10.0 of 20.0 ms, and why is not known"
    assert limit.advice.startswith(advice)
    assert f"{part} took 10.0 of" not in str(limit_of(a_run(**lasting(20.1, **changes))))


@pytest.mark.parametrize(
    ("changes", "unseen", "advice"),
    [
        (
            {"worker_cpu_pct": None, "loop_lag_p95_ns": None},
            "neither CPU nor lag of the workers is known",
            "Run the workers where the kernel tells their CPU (Linux), or measure longer (--seconds).",
        ),
        (
            {"server_busy": None, "server_parts": {"queue": 2.1 * MS, "compute": 6 * MS}},
            "how busy the server's instances were is not known",
            "Measure with more users, and see whether the rate grows.",
        ),
        ({"host_cpu_pct": 90.0}, "the client's host was 90.0 % busy", SEPARATE),
        (
            {"each_gpu": (FULL_GPU,)},
            "the GPU was 97.0 % busy, at 95.0 % of its power limit",
            "Give it a faster GPU, or another one, and see whether the rate grows.",
        ),
        (
            lasting(3, **NULL | {"unexplained_ns": 1.5 * MS}),
            "1.5 of 3.0 ms are unexplained",
            "See docs/attribution.md for possible causes; look at proxies and at the server's front end.",
        ),
        (
            {"network_ns": 9.6 * MS, "path": SLOW},
            "the path took most of the time",
            "Give the link's rate with --link-mbit, then run again.",
        ),
    ],
)
def test_what_was_not_seen_to_have_room(changes: dict[str, Any], unseen: str, advice: str) -> None:
    limit = named(a_run(**changes), "inconclusive")
    assert (limit.evidence, limit.advice) == (f"nothing was found full, but {unseen}", advice)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"dropped": 40}, "40 of 1,000 arrivals were never sent"),
        ({"send_delay_mean_ns": 6 * MS, "latency_mean_ns": 26 * MS}, "requests began 6.0 ms late"),
        ({"caveats": (caveat("rate-missed", "180 were sent"),)}, "the asked rate was not sent"),
    ],
)
def test_an_open_load_that_was_not_carried(changes: dict[str, Any], why: str) -> None:
    assert unknown(**OPEN | changes) == f"{why}, and nothing was full"


ROOM = "the busiest worker used 20.0 % of a core; the server's instances were executing 30.0 % of the time; "
IDLE = "connections were busy 2.00 % of the time"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, f"4 users did not fill anything; {ROOM}{IDLE}"),
        ({"level": 1}, f"1 user did not fill anything; {ROOM}{IDLE}"),
        (OPEN, f"the server kept up with 200 requests a second; {ROOM}{IDLE}"),
        (
            OPEN | {"offered": Offered(187.5, 1, 5.0)},
            f"the server kept up with 188 requests a second; {ROOM}{IDLE}",
        ),
        (
            OPEN | {"offered": None, "level": 12.5},
            f"the server kept up with 12.5 requests a second; {ROOM}{IDLE}",
        ),
        (
            {"cpu_wait_pct": 5.0, "server_busy": None, "path": {"busy_share": None}},
            "4 users did not fill anything; the busiest worker used 20.0 % of a core; a worker was ready to "
            "run and had no core 5.00 % of the time; the server took 32.0 % of 20.0 ms a request",
        ),
        (
            {"cpu_wait_pct": 4.9, "link_bytes_per_s": 1_250e6},
            f"4 users did not fill anything; {ROOM}9.68 % of the link's rate was sent",
        ),
    ],
)
def test_what_a_load_did_not_fill(changes: dict[str, Any], said: str) -> None:
    limit = named(a_run(**changes), "offered-load")
    assert limit.evidence == said
    assert limit.advice == (
        "Raise the rate: the server kept up with this one."
        if "load" in changes
        else "Add users: nothing was saturated, so more users would raise the throughput."
    )


AT_WORK = {"server_parts": {"queue": 1.9 * MS, "compute": 17 * MS}, "server_busy": None}
"""A server that takes nearly all of 20 ms, and it is not known how busy its instances are."""


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (AT_WORK, "server-compute"),
        (AT_WORK | {"think": "0.0199"}, "server-compute"),  # less than half of a user's time
        (AT_WORK | {"think": "0.02"}, "offered-load"),
        (AT_WORK | {"think": "exponential:0.2"}, "offered-load"),
        (
            AT_WORK | {"think": "0.2", "server_parts": {"queue": 2.1 * MS, "compute": 17 * MS}},
            "server-compute",
        ),
        (AT_WORK | {"think": "0.2", "server_parts": {"compute": 17 * MS}, "level": 1}, "offered-load"),
        (AT_WORK | {"think": "0.2", "server_busy": 0.85}, "server-compute"),
        (AT_WORK | {"think": "0.2", "each_gpu": (FULL_GPU,)}, "server-compute"),
        ({"think": "0.2", "worker_cpu_pct": 99.0}, "client-cpu"),
    ],
)
def test_users_who_think_most_of_the_time_are_the_limit_where_nothing_is_full(
    changes: dict[str, Any], code: str
) -> None:
    assert code_of(a_run(**changes)) == code


def test_what_is_said_of_users_who_think() -> None:
    found = named(a_run(**AT_WORK, think="0.18"), "offered-load")
    assert found.evidence.startswith("4 users thought 90.0 % of their time and did not fill anything; ")
    assert found.advice.startswith("Add users or shorten --think: ")
