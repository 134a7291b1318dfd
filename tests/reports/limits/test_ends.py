"""When the server's intake or its answers are the limit, and what looks like them and is not."""

from typing import Any

import pytest

from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server, named
from tests.reports.limits.test_rules import code_of
from tests.reports.parts import changed

WAN = {"rtt_ns": 15 * MS, "min_rtt_ns": 14 * MS}
BEHIND_A_SIDECAR = {"busy_share": 0.95, "rwnd_share": 0.85, "not_sent_bytes": 1_400_000.0}
"""On the client's own host, whose link is full behind it: the sidecar reads as fast as that lets it."""


def answered(receive_ms: float, latency_ms: float, path: dict[str, Any], **changes: Any) -> Summary:
    """A run whose answers take some milliseconds to arrive."""
    times = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), latency_ms * MS)
    rest = {"receive_ns": receive_ms * MS, "network_ns": 14 * MS, "unexplained_ns": 1 * MS}
    return a_run(path=path, **times | rest | {"response_bytes": 2_000_000.0} | changes)


def in_two_parts(receive_ms: float, latency_ms: float = 80, rtt_ms: float = 0.02, **changes: Any) -> Summary:
    """A small answer, whose first part is soon there and the other some milliseconds later."""
    path = {"rtt_ns": (rtt_ms + 1) * MS, "min_rtt_ns": rtt_ms * MS}
    known = {"response_bytes": 2_199.0, "network_ns": 0.0, "server_parts": {"compute": 5 * MS}}
    return answered(receive_ms, latency_ms, path, **known | changes)


def behind_a_sidecar(path: dict[str, Any] | None = None, **changes: Any) -> Summary:
    times = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), 2_155.0 * MS)
    rest = {"send_ns": 100 * MS, "network_ns": 2_050 * MS, "unexplained_ns": 0.0, "server_busy": 0.05}
    return a_run(path=BEHIND_A_SIDECAR | (path or {}), **times | rest | changes)


def test_large_answers_over_a_bad_way_back() -> None:
    limit = named(answered(300, 330, WAN), "downlink")
    assert limit.evidence == "an answer of 2,000 kB took 300 of 330 ms to arrive, at 53.3 Mbit/s"
    assert limit.advice == (
        "Ask for fewer bytes back (a smaller type, no tensors that nobody needs), or use a faster way back."
    )


def test_the_evidence_of_a_slow_answer_that_no_way_back_explains() -> None:
    limit = named(answered(300, 330, WAN, response_bytes=2_199.0), "inconclusive")
    assert limit.evidence == "receive took 300 of 330 ms, and why is not known"
    assert limit.advice == "Look at how the server writes its answers, and at proxies before it."


def test_the_second_part_of_an_answer_that_waits_for_an_acknowledgement() -> None:
    limit = named(in_two_parts(41), "nagle")
    assert limit.evidence == (
        "the rest of an answer of 2.20 kB came 41.0 ms after its first byte, over round trips of <0.1 ms: "
        "as long as an acknowledgement is held back"
    )
    assert (
        limit.advice == "Set TCP_NODELAY in the server or its proxy, or have it write head and body at once."
    )


def test_a_sidecar_whose_link_is_full() -> None:
    limit = named(behind_a_sidecar(), "server-intake")
    window = (
        "the receiver's window was full for 85.0 % of the time in which connections had something to send"
    )
    assert limit.evidence == f"{window}; 1,400 kB waited to be sent on each"
    assert limit.advice == (
        "Find what reads the requests slowly: a proxy or sidecar whose own link is full, or the server's "
        "front end. More connections or a faster client would not help."
    )
    assert named(behind_a_sidecar({"not_sent_bytes": 0.0}), "server-intake").evidence == window


BACK, NAGLE = answered(320, 400, WAN), in_two_parts(41)
SHORT_OF_HALF = {"network_ns": 900 * MS, "unexplained_ns": 77.4 * MS}


@pytest.mark.parametrize(
    ("code", "run", "figure", "at", "beyond"),
    [
        ("downlink", BACK, "receive_ns", 200 * MS, 199 * MS),  # half of the time
        ("downlink", BACK, "response_bytes", 65_536.0, 65_535.0),  # fewer take a round trip
        ("downlink", BACK, "response_bytes", 65_536.0, None),
        ("downlink", BACK, "path.min_rtt_ns", 1.0 * MS, 0.9 * MS),  # the server may write slowly
        # A server may send an answer while it works on it.
        ("downlink", BACK, "server_parts", {"compute": 80 * MS}, {"compute": 81 * MS}),
        ("downlink", BACK, "unexplained_ns", -79 * MS, -80 * MS),
        ("downlink", BACK, "server_busy", 0.79, 0.8),
        ("nagle", in_two_parts(40), "service_mean_ns", 80 * MS, 80.1 * MS),
        ("nagle", in_two_parts(41, 70), "receive_ns", 38.0 * MS, 37.9 * MS),
        ("nagle", NAGLE, "receive_ns", 50.0 * MS, 50.1 * MS),
        ("nagle", in_two_parts(41, rtt_ms=10), "receive_ns", 60.0 * MS, 60.1 * MS),
        ("nagle", NAGLE, "path.min_rtt_ns", 20 * MS, 20.1 * MS),  # it may be a round trip
        ("nagle", NAGLE, "path.min_rtt_ns", 20 * MS, None),
        ("nagle", NAGLE, "response_bytes", 65_535.0, 65_536.0),
        ("nagle", NAGLE, "response_bytes", 65_535.0, None),
        ("nagle", NAGLE, "server_busy", 0.79, 0.8),
        ("nagle", in_two_parts(42, 50), "server_parts", {"compute": 8 * MS}, {"compute": 8.1 * MS}),
        ("server-intake", behind_a_sidecar(), "path.busy_share", 0.5, 0.49),
        ("server-intake", behind_a_sidecar(), "path.rwnd_share", 0.5, 0.49),
        ("server-intake", behind_a_sidecar(**SHORT_OF_HALF), "unexplained_ns", 77.4 * MS, 77.3 * MS),
        ("server-intake", behind_a_sidecar(), "server_busy", 0.79, 0.8),  # without room it reads slowly
    ],
)
def test_where_an_end_of_the_path_is_the_limit(
    code: str, run: Summary, figure: str, at: Any, beyond: Any
) -> None:
    assert code_of(changed(run, **{figure: at})) == code
    assert code_of(changed(run, **{figure: beyond})) != code


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ({"window_bytes": 600_000.0, "wire_bytes_per_s": 4e6}, "server-intake"),
        # Four connections with 32 KB each over 14 ms carry 9.4 MB a second.
        ({"window_bytes": 32_768.0, "wire_bytes_per_s": 4 * 32_768 / 0.014}, "connections"),
        # Half of 560 KB in each 14 ms.
        ({"window_bytes": 560_000.0, "wire_bytes_per_s": 79e6, "busy_share": 1.0}, "server-intake"),
        ({"window_bytes": 560_000.0, "wire_bytes_per_s": 80e6, "busy_share": 1.0}, "connections"),
        ({"window_bytes": 560_000.0, "wire_bytes_per_s": 79e6, "busy_share": 0.98}, "connections"),
        ({"window_bytes": None, "wire_bytes_per_s": 4e6}, "connections"),
    ],
)
def test_over_a_long_path_a_small_window_is_used_up_and_a_large_one_is_kept_closed(
    path: dict[str, Any], code: str
) -> None:
    limit = named(behind_a_sidecar(WAN | path), code)
    assert code == "server-intake" or "the receiver's window for 85.0 % of that" in limit.evidence


def test_a_closed_window_that_costs_little_is_not_the_limit() -> None:
    held = {"rwnd_share": 0.7, "busy_share": 0.6}
    assert code_of(at_server(80, 10, 100, path=held, server_busy=0.75, level=16)) != "server-intake"
    assert code_of(at_server(0, 45, 50, path=held, server_busy=None)) == "server-compute"
