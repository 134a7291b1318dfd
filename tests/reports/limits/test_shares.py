"""What rules compare: times of a request, the server's and the path's shares of it, and what is in flight."""

from typing import Any

import pytest

from reports.caveat import caveat
from reports.limits.shares import (
    has_caveat,
    held_ns,
    in_flight,
    kilobytes,
    path_ns,
    path_share,
    saturated,
    server_share,
    service_ns,
    upstream_share,
    work_ns,
)
from tests.reports.limit_runs import MS, a_run

PARTS: dict[str, Any] = {"server_parts": {"queue": 1 * MS, "compute": 4 * MS, "upstream": 3 * MS}}
NO_PATH: dict[str, Any] = {"network_ns": None}


@pytest.mark.parametrize(
    ("changes", "service_ms", "held_ms"),
    [
        ({}, 20, 20),
        ({"latency_mean_ns": 90 * MS, "send_delay_mean_ns": 70 * MS}, 20, 20),
        ({"stream_wait_ns": 5 * MS}, 20, 15),
        ({"service_mean_ns": None, "latency_mean_ns": 30 * MS, "send_delay_mean_ns": 4 * MS}, 26, 26),
        ({"service_mean_ns": None, "send_delay_mean_ns": None}, 20, 20),
        ({"service_mean_ns": None, "latency_mean_ns": None, "stream_wait_ns": 1 * MS}, None, None),
    ],
)
def test_a_requests_time_is_from_its_start_and_its_stream_is_waited_for(
    changes: dict[str, Any], service_ms: float | None, held_ms: float | None
) -> None:
    run = a_run(**changes)
    assert service_ns(run) == (None if service_ms is None else service_ms * MS)
    assert held_ns(run) == (None if held_ms is None else held_ms * MS)


def test_the_servers_share_is_of_the_time_without_the_wait_for_a_stream() -> None:
    run = a_run(**PARTS, stream_wait_ns=4 * MS)
    assert (server_share(run), upstream_share(run)) == (pytest.approx(8 / 16), pytest.approx(3 / 16))
    assert work_ns(run) == 7 * MS
    assert upstream_share(a_run()) is None
    assert server_share(a_run(server_parts={})) is None


@pytest.mark.parametrize(
    ("changes", "path_ms"),
    [
        ({}, 0.3 + 4.6 + 0.1),
        ({"flow_wait_ns": 2 * MS, "connect_ns": 7 * MS}, 2 + 0.3 + 4.6 + 0.1),
        ({"send_ns": None, "receive_ns": None}, 4.6),
        # all that neither side explains
        (NO_PATH, 20 - 6.4 - 0.1),
        (NO_PATH | {"connect_ns": 3 * MS, "encode_ns": 2 * MS, "stream_wait_ns": 1 * MS}, 19 - 6.4 - 5.1),
        (NO_PATH | {"encode_ns": 40 * MS}, 0),
        (NO_PATH | {"server_parts": {}}, None),
    ],
)
def test_what_the_path_took(changes: dict[str, Any], path_ms: float | None) -> None:
    run = a_run(**changes)
    assert path_ns(run) == (None if path_ms is None else pytest.approx(path_ms * MS))
    whole_ms = 20 - (changes.get("stream_wait_ns") or 0) / MS
    assert path_share(run) == (None if path_ms is None else pytest.approx(path_ms / whole_ms))


@pytest.mark.parametrize(
    ("changes", "requests"),
    [
        ({}, 4.0),  # 1,000 of 20 ms in 5 s
        ({"level": 3}, 3.0),
        ({"level": 8}, 4.0),
        ({"level": 3, "load": "open"}, 4.0),
        ({"measure_ns": None, "in_flight": 2.5}, 2.5),
        ({"measure_ns": None, "in_flight": None}, 4.0),
        ({"measure_ns": None, "in_flight": None, "load": "open"}, None),
    ],
)
def test_requests_under_way_are_never_more_than_the_users(
    changes: dict[str, Any], requests: float | None
) -> None:
    assert in_flight(a_run(**changes)) == requests


def test_a_server_that_executes_four_fifths_of_the_time_is_full() -> None:
    assert [saturated(a_run(server_busy=busy)) for busy in (None, 0.0, 0.79, 0.8)] == [False] * 3 + [True]


def test_bytes_in_words() -> None:
    assert kilobytes(100_000.0) == "100 kB"


def test_a_caveat_by_its_code() -> None:
    run = a_run(caveats=(caveat("path-gap", "seen in part"), caveat("drift", "up")))
    assert has_caveat(run, "rate-missed", "path-gap")
    assert not has_caveat(run, "rate-missed")
