"""HTTP's turns on one connection beside gRPC's: exact models in which the server takes real time.

A connection takes `LINK_S` to carry a request and its answer, beside a least round trip of `TRIP_S`; the
server takes so long on top, and works on many at once. On one connection HTTP gets 1 / (link + trip + server)
requests a second, gRPC 1 / link while it has 16 under way; with 16 connections the link is full.
"""

from pathlib import Path

import pytest

from reports.topics.contention.conclusion import Conclusion, verdict_said
from reports.topics.contention.experiments import ExperimentAnswer, http_on_one
from reports.topics.contention.turn import Turn
from tests.reports.contention_book import a_study, arms, the_verdict, without

LINK_S, TRIP_S = 0.133, 0.014
FULL = 42.0
BALANCER = "a balancer that pins a connection to one replica looks alike"


def by_link(server_s: float) -> dict[str, float]:
    """Images a second of the arms where one connection is too slow, whatever protocol it carries."""
    return {"R0": FULL, "R1": 1 / (LINK_S + TRIP_S + server_s), "R2": 1 / LINK_S, "R4": 0.99 * FULL}


def by_turns(server_s: float) -> dict[str, float]:
    """Where the link takes 1 ms, and gRPC on one is as slow as HTTP's turns for a cause of its own."""
    turns = 1 / (0.001 + TRIP_S + server_s)
    return {"R0": FULL, "R1": turns, "R2": turns, "R4": 0.99 * FULL}


def judged(rates: dict[str, float], server_s: float, folder: Path, again_per_10k: int = 7) -> Conclusion:
    book = arms(a_study(), rates, compute_ns=round((server_s - 0.0001) * 1e9), again_per_10k=again_per_10k)
    return the_verdict(book, folder)


def asked(verdict: Conclusion) -> ExperimentAnswer:
    """What HTTP's one connection says in it."""
    return http_on_one(verdict.arms)


@pytest.mark.parametrize(
    ("server_s", "of_grpc", "said"),
    [
        (0.005, "0.875", "without the server's 5.0 ms and a round trip of 14.0 ms, 133 of 152 ms a request"),
        (1.000, "0.116", "without the server's 1,000 ms and a round trip of 14.0 ms, 133 of 1,150 ms"),
    ],
)
def test_the_servers_time_refutes_nothing(tmp_path: Path, server_s: float, of_grpc: str, said: str) -> None:
    verdict = judged(by_link(server_s), server_s, tmp_path)
    found = asked(verdict)
    assert found.says == {"connections": "for"}
    assert f"{of_grpc} of gRPC on one; {said}" in found.figures
    assert found.figures.endswith("where gRPC takes 133 ms")
    assert (verdict.cause, verdict.contradictions) == ("connections", ())
    assert verdict.advice.startswith("Give gRPC a connection for each user")


def test_where_the_server_takes_nearly_the_whole_turn_it_is_no_test(tmp_path: Path) -> None:
    verdict = judged(by_link(2.0), 2.0, tmp_path)
    found = asked(verdict)
    assert (found.says, found.tests) == ({}, False)
    assert found.figures.endswith("that is too little to tell")
    assert verdict.cause == "connections"


@pytest.mark.parametrize(
    ("server_s", "says"),
    [(0.050, {"connections": "against"}), (0.130, {"connections": "against"}), (0.500, {})],
)
def test_turns_of_a_slow_server_are_no_sign(tmp_path: Path, server_s: float, says: dict[str, str]) -> None:
    """Though HTTP and gRPC carry exactly the same over one connection, and 16 bring both back."""
    verdict = judged(by_turns(server_s), server_s, tmp_path)
    assert asked(verdict).says == says
    assert verdict.cause == "inconclusive"
    assert verdict.why.startswith("connections would explain it, but: Does HTTP fall on one connection?")


def test_a_round_trip_for_each_request_is_no_slow_connection(tmp_path: Path) -> None:
    """Small requests over a long path: HTTP waits for each answer, gRPC has no need to."""
    verdict = judged({"R0": FULL, "R1": 1 / 0.020, "R2": 7.5, "R4": FULL}, 0.005, tmp_path)
    assert asked(verdict).says == {"connections": "against"}
    assert verdict.cause == "inconclusive"


@pytest.mark.parametrize("link_s", [0.066, 0.280])
def test_a_connection_that_carries_http_otherwise_is_no_evidence(tmp_path: Path, link_s: float) -> None:
    """Twice as fast, and half as fast: each has a cause that the other has not."""
    rates = by_link(0.050) | {"R1": 1 / (link_s + TRIP_S + 0.050)}
    verdict = judged(rates, 0.050, tmp_path)
    assert asked(verdict).says == {}
    assert (verdict.cause, len(verdict.contradictions)) == ("inconclusive", 1)


def silent(rates: dict[str, float], folder: Path) -> Conclusion:
    """The verdict where the server states no times."""
    book = arms(a_study(), rates)
    for line in book.records:
        if line["kind"] == "server":
            line["counters"] = {"requests": line["counters"]["requests"]}
    return the_verdict(book, folder)


@pytest.mark.parametrize(
    ("changes", "says", "tests", "cause"),
    [
        ({}, {}, False, "connections"),
        ({"R1": 40.0}, {"connections": "against"}, True, "inconclusive"),
        ({"R1": 15.0}, {}, True, "inconclusive"),
    ],
)
def test_a_silent_servers_time_can_only_be_more_than_nothing(
    tmp_path: Path, changes: dict[str, float], says: dict[str, str], tests: bool, cause: str
) -> None:
    verdict = silent(by_link(0.050) | changes, tmp_path)
    found = asked(verdict)
    assert (found.says, found.tests, verdict.cause) == (says, tests, cause)
    assert found.figures.endswith("the server's own time is not known") != tests


def test_what_the_server_holds_up_is_no_slow_connection(tmp_path: Path) -> None:
    """gRPC's is pinned to a replica whose one instance takes 133 ms: HTTP's turns agree by chance."""
    book = arms(a_study(), by_link(0.050), compute_ns=50_000_000)
    for line in (line for line in book.records if "grpc/b1/c16/wan-a100/shared" in line.get("cell", "")):
        if line["kind"] == "server" and line["when"] == "after":
            line["counters"] |= {"compute_ns": 160 * 132_000_000, "queue_ns": 160 * 1_900_000_000}
        if line["kind"] == "serving":
            line["instances"] = 1
    verdict = the_verdict(book, tmp_path)
    assert verdict.arms["R2"].limit == "server-queue"
    assert asked(verdict).says == {}
    assert asked(verdict).figures.endswith("gRPC's limit there is server-queue")
    assert verdict.cause == "inconclusive"


@pytest.mark.parametrize("again_per_10k", [2, 7, 50])
def test_bbr_and_nearness_are_advised_where_losses_were_seen(tmp_path: Path, again_per_10k: int) -> None:
    verdict = judged(by_link(0.050), 0.050, tmp_path, again_per_10k=again_per_10k)
    assert verdict.cause == "connections"
    assert "BBR on the client helps too; so does a client nearer to the server." in verdict.advice
    assert BALANCER not in verdict.advice
    assert verdict_said(verdict).endswith(verdict.advice)


@pytest.mark.parametrize(
    ("again_per_10k", "seen"), [(0, "No losses were seen"), (1, "Only 18 segments (0.00902 %) were lost")]
)
def test_without_losses_a_balancer_looks_alike(tmp_path: Path, again_per_10k: int, seen: str) -> None:
    verdict = judged(by_link(0.050), 0.050, tmp_path, again_per_10k=again_per_10k)
    assert verdict.cause == "connections"
    assert (
        f"{seen}: {BALANCER}: there more connections help, BBR and a nearer client do not." in verdict.advice
    )
    assert "BBR on the client helps" not in verdict.advice


def test_losses_that_were_not_counted_are_not_called_none(tmp_path: Path) -> None:
    book = arms(a_study(), without(by_link(0.050), "R1"))
    book.records = [line for line in book.records if line["kind"] != "path"]
    verdict = the_verdict(book, tmp_path)
    assert verdict.cause == "connections"
    assert f"Losses were not counted: {BALANCER}" in verdict.advice
    assert "BBR on the client helps" not in verdict.advice


@pytest.mark.parametrize(
    ("whole", "server", "trip", "busy", "times"),
    [
        (197.0, 50.0, 14.0, 133.0, 197 / 133),
        (100.0, 89.0, 0.0, 11.0, 100 / 11),
        (50.0, 60.0, 14.0, 0.0, 10.0),
    ],
)
def test_a_turn_less_idle_time(whole: float, server: float, trip: float, busy: float, times: float) -> None:
    turn = Turn(whole, server, trip)
    assert (turn.busy_ns, turn.sure) == (busy, times < 10)
    assert turn.times == pytest.approx(times)
