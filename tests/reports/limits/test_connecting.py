"""Making connections as the limit: a handshake for each request, or no local port left."""

from typing import Any

import pytest

from reports.caveat import caveat
from reports.fold.windows import Windows, client_phases
from reports.summary.network import remainder
from reports.summary.summary import Summary, parts_of
from tests.reports.limit_runs import MS, a_run, named
from tests.reports.limits.test_rules import code_of
from tests.reports.parts import changed

CHURN: dict[str, Any] = {
    "connects": 980,
    "connect_ns": 14 * MS,
    "network_ns": None,
    "unexplained_ns": -0.7 * MS,
}
GAP = (caveat("path-gap", "2,000 of at least 600,000,000 bytes sent were seen on the connections"),)


def churn(**changes: Any) -> Summary:
    """Requests of 20 ms, of which 14 go into a connection that 98 of 100 need; the kernel saw few of them."""
    return a_run(**CHURN | {"caveats": GAP} | changes)


def test_the_evidence_of_a_connection_for_each_request() -> None:
    assert named(churn(), "handshake").evidence == (
        "98.0 % of requests waited for a new connection; connecting took 14.0 of 20.0 ms (DNS included)"
    )


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        (
            {"connects": 500},
            "Turn keep-alive on (HTTP/1.1 without `Connection: close`; nginx: keepalive_requests): the "
            "server, or a proxy before it, closes connections.",
        ),
        (
            {"connects": 500, "channels": "per-request"},
            "Use --channels per-user: the client itself was asked for a new connection for each request.",
        ),
        (
            {"connects": 499, "channels": "per-request"},
            "Find what makes connecting slow: the host's name server, or a listener whose queue is full.",
        ),
    ],
)
def test_what_helps_against_connections_depends_on_who_makes_them(
    changes: dict[str, Any], advice: str
) -> None:
    assert named(churn(**changes), "handshake").advice == advice


SHORT: dict[str, Any] = {"connect_ns": 5 * MS, "server_parts": {"compute": 4 * MS}, "unexplained_ns": 3 * MS}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"connects": 500}, "handshake"),
        ({"connects": 499, "connect_ns": 5.9 * MS}, None),  # most requests go over one that was kept
        ({"connects": 20}, "handshake"),  # a few that take long
        ({"connect_ns": 6 * MS}, "handshake"),
        ({"connect_ns": 5.9 * MS}, None),  # compute is longer
        (SHORT, "handshake"),
        (SHORT | {"connect_ns": 4 * MS, "server_parts": {}}, "handshake"),
        (SHORT | {"connect_ns": 3.9 * MS, "server_parts": {}}, None),
        (SHORT | {"connects": 500}, "handshake"),
        (SHORT | {"connects": 499}, None),
        (SHORT | {"unexplained_ns": 5 * MS}, None),
        (SHORT | {"send_delay_mean_ns": 9 * MS}, "handshake"),  # before a request began
        ({"connects": None}, None),  # grpcio does not tell
        ({"connect_ns": None}, None),
        ({"worker_cpu_pct": 97.0}, "client-cpu"),  # which stretches handshakes, too
        ({"server_busy": 0.79}, "handshake"),
        ({"server_busy": 0.8}, "server-compute"),  # which would not answer more
    ],
)
def test_how_much_of_a_request_it_is(changes: dict[str, Any], code: str | None) -> None:
    assert code_of(churn(**changes)) != "handshake" if code is None else code_of(churn(**changes)) == code


def test_connecting_is_a_part_of_the_sum() -> None:
    """Of 20 ms, 14 of which connect, 6 are left for all others."""
    run = changed(
        churn(), **dict.fromkeys(("send_ns", "receive_ns", "decode_ns"), 0.0), server_parts={}, path=None
    )
    assert remainder(run)[2] == pytest.approx(6 * MS)
    assert [part.name for part in parts_of(run)][:3] == ["send_delay", "resolve", "connect"]
    apart = {part.name: part.ns for part in parts_of(changed(run, resolve_ns=4 * MS))}
    assert (apart["resolve"], apart["connect"]) == (4 * MS, 10 * MS)
    assert sum(part.ns or 0 for part in parts_of(changed(run, resolve_ns=4 * MS))) == pytest.approx(
        sum(part.ns or 0 for part in parts_of(run))
    )


@pytest.mark.parametrize(
    ("resolve_ms", "code", "said"),
    [
        (7.0, "name-resolution", "looking the host's name up took 7.0 of 20.0 ms"),
        (6.9, "handshake", "connecting took 14.0 of 20.0 ms (6.9 of them DNS)"),
        (0.0, "handshake", "connecting took 14.0 of 20.0 ms (0.0 of them DNS)"),
    ],
)
def test_the_look_up_of_a_name_is_no_handshake(resolve_ms: float, code: str, said: str) -> None:
    limit = named(churn(resolve_ns=resolve_ms * MS), code)
    assert limit.evidence.endswith(said)
    assert ("cache names" in limit.advice) is (code == "name-resolution")


PORTS: dict[str, Any] = {
    "failures": 300,
    "failure_kinds": {"exhausted": 300},
    "failure_codes": {"EADDRNOTAVAIL": 300},
}


def test_no_local_port_is_left() -> None:
    limit = named(a_run(**PORTS, connects=693), "client-ports")
    assert limit.evidence == (
        "300 of 1,000 requests found no free local port (EADDRNOTAVAIL); "
        "0.990 connections were made for each of the others"
    )
    assert limit.advice == (
        "Keep connections (--channels per-user, keep-alive on the server), widen "
        "net.ipv4.ip_local_port_range, or add hosts: a closed connection holds its port for a minute."
    )
    assert named(a_run(**PORTS), "client-ports").evidence.endswith("(EADDRNOTAVAIL)")


@pytest.mark.parametrize(
    "changes",
    [
        {"failure_codes": {"EMFILE": 300}},  # open files, not ports
        {"failure_codes": {}},  # of an older ledger: either
        {"failures": 1_000, "failure_codes": {"EADDRNOTAVAIL": 1_000}},  # an address that this host lacks
        {"status": "aborted"},
        {"caveats": (caveat("server-lost", "it restarted"),)},  # in the midst of the run
    ],
)
def test_what_is_no_lack_of_ports(changes: dict[str, Any]) -> None:
    assert code_of(a_run(**PORTS | changes)) == "inconclusive"


@pytest.mark.parametrize(
    ("count", "failures", "code"),
    [(9, 9, "offered-load"), (10, 10, "client-ports"), (9, 100, "offered-load"), (10, 100, "client-ports")],
)
def test_how_many_of_all_requests_lacked_one(count: int, failures: int, code: str) -> None:
    few: dict[str, Any] = {"failures": failures, "failure_codes": {"EADDRNOTAVAIL": count}}
    assert code_of(a_run(**few, failed_mean_ns=1 * MS)) == code


def test_a_client_that_does_not_tell_of_connections() -> None:
    assert client_phases(Windows(ok=3)).connect_ns is None
