"""What other levels and other numbers of connections say of a run's limit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.caveat import caveat
from reports.fold.http2 import Http2
from reports.fold.server import EnsembleStep, Executed
from reports.ledger.axes import Topology
from reports.limit import Limit
from reports.limits.neighbours import (
    CONTENTION,
    UNSOUND,
    UNTESTED,
    WITHIN_COMPUTE,
    Neighbour,
    among_neighbours,
    is_sound,
)
from reports.limits.rules import limit_of
from reports.limits.server import MORE_INSTANCES, UNTRIED
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.limit_runs import MS, a_run, at_server, on_path
from tests.reports.lines import health_line, triton
from tests.reports.parts import changed

ONE = {"instances": 1, "max_batch": 0, "batching": False}
SHARED = {"protocol": "grpc", "endpoint": "emulated-grpc", "channels": "shared"}
LOSSY = {
    "connections": 1,
    "wire_bytes_per_s": 7.4 * 602_289 * 1.05,
    "retransmits": 28,
    "segments_out": 40_000,
}
NOTHING = "nothing was seen to be full"


def mva(users: int, work_ms: float, elsewhere_ms: float) -> tuple[float, float]:
    """Response time at one queue in ms and requests a ms, by exact mean value analysis of a closed loop."""
    queued = response = rate = 0.0
    for population in range(1, users + 1):
        response = work_ms * (1 + queued)
        rate = population / (response + elsewhere_ms)
        queued = rate * response
    return response, rate


def one_queue(users: int, work_ms: float = 40.0, elsewhere_ms: float = 40.0, **changes: Any) -> Summary:
    """A run of so many users of one instance that takes requests one by one."""
    response, rate = mva(users, work_ms, elsewhere_ms)
    known: dict[str, Any] = {"cell": f"emulated-http/b1/c{users}", "level": users, "in_flight": float(users)}
    known |= {"images_per_s": 1e3 * rate, "server_busy": min(1.0, rate * work_ms), "serving": ONE}
    known |= {"network_ns": elsewhere_ms * MS, "unexplained_ns": 0.0, "measure_ns": None}
    return at_server(response - work_ms, work_ms, response + elsewhere_ms, **known | changes)


def at_rates(code: str, *levels: tuple[int, float], **changes: Any) -> list[Summary]:
    """A run for each pair of users and images a second, each with this limit."""
    limit = Limit(code, "what was seen", "What would help.")
    return [
        a_run(cell=f"emulated-http/b1/c{users}", level=users, images_per_s=rate, limit=limit, **changes)
        for users, rate in levels
    ]


def repeated(run: Summary, *rates: float) -> list[Summary]:
    return [changed(run, repeat=at, images_per_s=rate) for at, rate in enumerate(rates, 1)]


def stand(runs: list[Summary]) -> list[Limit]:
    return [run.limit for run in among_neighbours(runs) if run.limit]


def judged(*runs: Summary) -> list[Limit]:
    """The same of runs that are judged one by one before."""
    return stand([changed(run, limit=limit_of(run)) for run in runs])


def test_one_queue_at_four_levels() -> None:
    """It is full at four users, where eight get a fiftieth more; two already use it most of the time."""
    runs = [one_queue(users) for users in (1, 2, 4, 8)]
    rates = [run.counts.images_per_s for run in runs]
    assert rates == pytest.approx([12.5, 20.0, 24.62, 25.0], abs=0.01)
    alone = [limit.code for run in runs for limit in judged(run)]
    assert alone == ["offered-load", "server-compute", "server-queue", "server-queue"]
    found = judged(*runs)
    assert [limit.code for limit in found] == [
        "offered-load",
        "offered-load",
        "server-queue",
        "server-queue",
    ]
    assert found[1].evidence.startswith(
        "4 users got 23 % more images/s than 2, so nothing was full; compute took"
    )
    assert found[1].advice.startswith("Add users")
    assert "more instances" in found[2].advice


def test_a_queue_without_anything_else_is_full_with_one_user() -> None:
    runs = [one_queue(users, elsewhere_ms=1.0) for users in (1, 2, 4)]
    codes = [limit.code for limit in judged(*runs)]
    assert codes == ["server-compute", "server-compute", "server-queue"]


@pytest.mark.parametrize("code", ["server-queue", "server-compute", "link", "downlink", "server-intake"])
@pytest.mark.parametrize(("rate", "kept"), [(110.0, True), (115.0, True), (120.0, False), (90.0, True)])
def test_what_the_next_level_gains_is_no_sign_of_something_full(code: str, rate: float, kept: bool) -> None:
    first, _ = stand(at_rates(code, (4, 100.0), (16, rate)))
    assert first.code == (code if kept else "offered-load")
    if not kept:
        assert first.evidence == "16 users got 20 % more images/s than 4, so nothing was full; what was seen"
        assert first.advice == "Add users: the next level of this study got more images/s."


@pytest.mark.parametrize("code", ["client-cpu", "client-loop", "server-cold", "inconclusive", "rate-limited"])
def test_limits_that_neighbours_leave_alone(code: str) -> None:
    first, _ = stand(at_rates(code, (4, 100.0), (16, 200.0)))
    assert first == Limit(code, "what was seen", "What would help.")


@pytest.mark.parametrize(
    ("rate", "code"), [(103.0, "inconclusive"), (106.0, "offered-load"), (97.0, "inconclusive")]
)
def test_no_offered_load_where_more_users_gain_nothing(rate: float, code: str) -> None:
    first, second = stand(at_rates("offered-load", (4, 100.0), (16, rate)))
    assert first.code == code
    assert second.code == "offered-load"


def test_the_words_of_a_gain_that_is_none() -> None:
    first, _ = stand(at_rates("offered-load", (4, 100.0), (16, 102.0)))
    assert first.evidence == f"16 users gained only 2 % over 4, and {NOTHING}"
    assert first.advice.startswith("More users would not help: look for what states no times of its own")
    fewer, _ = stand(at_rates("offered-load", (4, 100.0), (16, 95.0)))
    assert fewer.evidence == f"16 users got 5 % fewer images/s than 4, and {NOTHING}"


def test_the_level_above_says_what_is_full() -> None:
    [lower] = at_rates("offered-load", (4, 100.0))
    [upper] = at_rates("server-queue", (16, 102.0))
    first, _ = stand([lower, upper])
    assert first.evidence == f"16 users gained only 2 % over 4, and {NOTHING}; 16 users had server-queue"
    assert first.advice == "More users would not help: see the level above, whose limit is named."


@pytest.mark.parametrize(
    ("code", "spoilt", "rate"),
    [
        ("throttled", {"server_cpu_throttled_pct": 40.0}, 202.0),
        ("cpu-stolen", {"server_cpu_stolen_pct": 40.0}, 202.0),
        ("rate-limited", {"failures": 900, "caveats": (caveat("failures", "900 of 1,000"),)}, 205.0),
        ("server-full", {"failures": 100, "caveats": (caveat("failures", "100 of 1,000"),)}, 205.0),
    ],
)
def test_a_level_that_the_server_limits_tells_that_more_users_gain_nothing(
    code: str, spoilt: dict[str, Any], rate: float
) -> None:
    [lower], [upper] = at_rates("offered-load", (4, 200.0)), at_rates(code, (16, rate), **spoilt)
    first, second = stand([lower, upper])
    assert first.code == "inconclusive"
    assert first.evidence.endswith(f", and {NOTHING}; 16 users had {code}")
    assert first.advice == "More users would not help: see the level above, whose limit is named."
    assert second.code == code


@pytest.mark.parametrize(
    ("code", "spoilt"),
    [
        ("throttled", {"throttled_pct": 40.0, "used_up_pct": 90.0, "worker_cpu_pct": 99.0}),
        ("cpu-stolen", {"stolen_pct": 40.0, "awake_pct": 99.0, "cpu_wait_pct": 40.0}),
        ("rate-limited", {"caveats": (caveat("failures", "many"), caveat("client-exhausted", "ports"))}),
        ("rate-limited", {"requests": 1_000, "failures": 995}),
        ("server-full", {"status": "aborted"}),
    ],
)
def test_a_level_that_the_client_limits_tells_nothing(code: str, spoilt: dict[str, Any]) -> None:
    [lower], [upper] = at_rates("offered-load", (4, 200.0)), at_rates(code, (16, 202.0), **spoilt)
    assert stand([lower, upper])[0] == lower.limit


def silent(users: int, rate: float, **changes: Any) -> Summary:
    """A server that has most of the time and does not tell how busy it is."""
    known: dict[str, Any] = {"cell": f"c{users}", "level": users, "in_flight": float(users)}
    return at_server(0.2, 16, 20, **known | {"server_busy": None, "images_per_s": rate} | changes)


def test_a_server_that_gives_as_much_more_as_there_are_users_is_not_seen_to_be_full() -> None:
    top = silent(16, 800.0)
    [alone] = judged(top)
    assert alone.code == "server-compute"
    first, second, third = judged(silent(1, 50.0), silent(4, 200.0), top)
    assert (first.code, second.code, third.code) == ("offered-load", "offered-load", "inconclusive")
    assert third.evidence.startswith(
        "16 users got 300 % more images/s than 4, nearly in proportion, and how busy the server's instances "
        "were is not known; compute took"
    )
    assert third.advice == "Measure with more users, and see whether the rate grows."


@pytest.mark.parametrize(
    "runs",
    [
        [silent(4, 200.0), silent(16, 800.0, server_busy=0.95)],
        [silent(4, 200.0), silent(16, 800.0, host_cpu_pct=97.0, cpu_wait_pct=1.0)],
        [silent(4, 200.0), silent(16, 800.0), silent(64, 810.0)],  # just full
        [silent(4, 200.0), silent(16, 800.0, **{"server.steps": {"decode": EnsembleStep(busy=0.5)}})],
    ],
)
def test_a_server_that_may_well_be_full_is_named(runs: list[Summary]) -> None:
    assert judged(*runs)[1].code == "server-compute"


def test_hardly_more_users_are_no_test() -> None:
    """Of a tenth more users nobody expects more than a tenth; the level after that tells."""
    assert stand(at_rates("offered-load", (40, 100.0), (44, 102.0)))[0].code == "offered-load"
    assert stand(at_rates("server-queue", (40, 100.0), (44, 120.0)))[0].code == "offered-load"
    first, _, _ = stand(at_rates("offered-load", (40, 100.0), (44, 102.0), (80, 101.0)))
    assert first.evidence.startswith("80 users gained only 1 % over 40")


def test_a_study_of_one_level_is_as_it_was() -> None:
    for code in ("server-queue", "link", "offered-load", "http2-window"):
        assert stand(at_rates(code, (4, 100.0)))[0] == Limit(code, "what was seen", "What would help.")
    held = Http2(connection_stalls=9, connection_stalled_ns=9 * MS, connection_waited_ns=9 * MS)
    [limit] = stand(at_rates("http2-window", (4, 100.0), path={"http2": held}))
    assert limit.evidence == f"what was seen; {UNTESTED}"


@pytest.mark.parametrize(
    "other",
    [
        {"batch": 8},
        {"endpoint": "emulated-grpc"},
        {"payload": "jpeg"},
        {"link": "wan"},
        {"instances": 2},
        {"load": "open"},
        *({name: "x"} for name in ("model", "codec", "shares", "space", "protocol", "backend")),
        {"variant": "x", "queue_delay_us": 0},
        {"variant": "x", "together": "siglip@c16+clip@c1"},
    ],
)
def test_cells_that_differ_in_more_than_the_level_are_no_neighbours(other: dict[str, Any]) -> None:
    [lower], [upper] = at_rates("server-queue", (4, 100.0)), at_rates("server-queue", (16, 200.0), **other)
    assert stand([lower, upper])[0].code == "server-queue"


@pytest.mark.parametrize(
    "spoilt",
    [
        {"caveats": (caveat("client-bound", "at its limit"),)},
        {"limit": Limit("client-cpu", "busy", "Add workers.")},
        {"limit": Limit("server-cold", "cold", "Warm up.")},
        {"status": "aborted"},
        {"requests": 9},
        {"images_per_s": None},
    ],
)
def test_a_neighbour_that_says_nothing_of_the_server_is_passed_over(spoilt: dict[str, Any]) -> None:
    lower, upper, highest = at_rates("server-queue", (4, 100.0), (8, 200.0), (16, 100.0))
    upper = changed(upper, **spoilt)
    assert stand([lower, upper])[0].code == "server-queue"
    assert stand([lower, upper, highest])[0].code == "server-queue"
    idle = replace(lower, limit=Limit("offered-load", "idle", "Add users."))
    assert stand([idle, upper])[0].code == "offered-load"


def test_a_wait_for_a_batch_that_others_end() -> None:
    """One user pays the delay; the second joins in it. Sizes are not known, so nothing is said of batches."""
    serving = {"instances": 1, "max_batch": 32, "batching": True, "batching_delay_ns": 10 * MS}
    known = {"serving": serving, "server_busy": 0.3}
    alone = at_server(10, 5, 16, **known, cell="c1", level=1, in_flight=1.0, images_per_s=62.5)
    two = at_server(10, 5, 16, **known, cell="c2", level=2, in_flight=2.0, images_per_s=125.0)
    assert [limit.code for limit in judged(alone)] == ["server-queue"]
    first, _ = judged(alone, two)
    assert first.code == "offered-load"
    assert first.evidence.startswith(
        "2 users got 100 % more images/s than 1, so nothing was full; requests waited"
    )
    assert "Or lower the batching delay (--queue-delay-us)" in first.advice


def over_wan(rate: float, connections: int = 1, **changes: Any) -> Summary:
    """Sixteen users over a long path that loses segments."""
    channels = changes.get("channels", "shared")
    known = {"cell": f"emulated-grpc/b1/c16/{channels}", "level": 16, "in_flight": 16.0, "images_per_s": rate}
    path = LOSSY | {"connections": connections}
    return on_path(2_150, path, **SHARED | known | changes)


def test_connections_that_no_other_cell_tests() -> None:
    [limit] = judged(over_wan(7.4))
    assert limit.code == "connections"
    assert limit.evidence.endswith(f"; {UNTESTED}")
    [limit] = judged(over_wan(7.4, caveats=(caveat("client-bound", "at its limit"),)))
    assert limit.evidence.endswith(f"; {UNTESTED}")


def test_more_connections_that_carried_more() -> None:
    first, _ = judged(over_wan(7.4), over_wan(40.0, 16, channels="per-user"))
    assert first.code == "connections"
    assert first.evidence.endswith("; 16 connections got 441 % more images/s than 1")
    assert first.advice == "Give each user its own channel: --channels per-user."


def test_more_connections_by_more_workers() -> None:
    more = over_wan(22.0, 4, topology=Topology(4, 0), variant="4w", cell="4w")
    first, _ = judged(over_wan(7.4), more)
    assert first.evidence.endswith("; 4 connections got 197 % more images/s than 1")


def test_more_connections_that_carried_no_more() -> None:
    first, _ = judged(over_wan(7.4), over_wan(7.5, 16, channels="per-user"))
    assert first.code == "inconclusive"
    assert first.evidence.startswith(
        "16 connections gained only 1 % over 1, so they are not what limits it; "
    )
    assert first.advice.startswith("More connections would not help")


def test_other_channels_that_brought_no_more_connections_are_no_test() -> None:
    first, _ = judged(over_wan(7.4), over_wan(7.4, 1, channels="same-args"))
    assert first.evidence.endswith(f"; {UNTESTED}")


def test_more_connections_of_a_client_at_its_limit_are_no_test() -> None:
    bound = over_wan(7.5, 16, channels="per-user", caveats=(caveat("client-bound", "at its limit"),))
    first, _ = judged(over_wan(7.4), bound)
    assert first.code == "connections"
    assert first.evidence.endswith(f"; {UNSOUND}")


def test_few_more_images_are_no_proof_of_few_connections() -> None:
    """Eight times the connections got a twelfth more."""
    known: dict[str, Any] = {"level": 8, "in_flight": 8.0}
    first, _ = judged(over_wan(8.0, **known), over_wan(8.64, 8, channels="per-user", **known))
    assert first.code == "inconclusive"
    assert first.evidence.startswith(
        "8 connections got 8 % more images/s than 1, so they are not what limits it; "
    )
    assert first.advice.startswith("More connections would help little: look at the link")
    first, _ = judged(over_wan(8.0, **known), over_wan(9.3, 8, channels="per-user", **known))
    assert first.code == "connections"
    assert first.evidence.endswith("; 8 connections got 16 % more images/s than 1")


SHAPED = {"rtt_ns": 40 * MS, "min_rtt_ns": 14 * MS, "cwnd_bytes": 200_000.0, "wire_bytes_per_s": 5e6}
PACED = {"bbr_share": 1.0, "pacing_bytes_per_s": 3.1e6, "delivery_bytes_per_s": 3e6, "not_sent_bytes": 1e6}
CLOSED = {"rtt_ns": 0.1 * MS, "min_rtt_ns": 0.05 * MS, "busy_share": 0.9, "rwnd_share": 0.9}


def by_connections(
    path: dict[str, Any], wider: dict[str, Any], one: float, eight: float, **changes: Any
) -> tuple[Summary, Summary]:
    """Eight users on one connection, and with one each, at these images a second."""
    known: dict[str, Any] = SHARED | {"level": 8, "in_flight": 8.0} | changes
    first, second = (
        on_path(1_000, path | {"connections": 1}, **known, cell="shared", images_per_s=one),
        on_path(200, path | {"connections": 8} | wider, **known, cell="each", images_per_s=eight),
    )
    return first, changed(second, channels="per-user")


@pytest.mark.parametrize(
    ("path", "wider", "rates", "alone"),
    [
        (SHAPED, {"rtt_ns": 15 * MS, "wire_bytes_per_s": 25e6}, (8.0, 39.0), "link"),  # each flow is shaped
        (PACED | {"wire_bytes_per_s": 3e6}, {"wire_bytes_per_s": 24e6}, (5.0, 40.0), "link"),
        (CLOSED, {}, (100.0, 300.0), "server-intake"),
    ],
)
def test_more_connections_that_carry_more_than_something_full(
    path: dict[str, Any], wider: dict[str, Any], rates: tuple[float, float], alone: str
) -> None:
    one, eight = by_connections(path, wider, *rates)
    [before] = judged(one)
    assert before.code == alone
    assert "ore connections" in before.advice
    first, _ = judged(one, eight)
    percent = round(100 * (rates[1] / rates[0] - 1))
    assert first.code == "connections"
    assert first.evidence.startswith(f"8 connections got {percent} % more images/s than 1, so there is room")
    assert before.evidence in first.evidence
    assert first.advice == (
        "A cell of this study got more images/s: use more connections, as there: --channels per-user."
    )
    assert judged(one, changed(eight, images_per_s=1.1 * rates[0]))[0] == before


def test_more_connections_that_carry_more_answers() -> None:
    [one] = at_rates("downlink", (8, 100.0), path={"connections": 1}, channels="shared")
    [four] = at_rates("offered-load", (8, 300.0), path={"connections": 4}, channels="shared")
    more = changed(four, topology=Topology(4, 0), cell="4w")
    first, _ = stand([one, more])
    assert (first.code, first.advice) == (
        "connections",
        "A cell of this study got more images/s: use more workers, as there.",
    )
    hosts = {(1, 2): "downlink", (None, 2): "downlink", (1, None): "connections", (2, 2): "connections"}
    for (here, there), code in hosts.items():
        assert stand([changed(one, hosts=here), changed(more, hosts=there)])[0].code == code
    assert stand([changed(one, **{"path.connections": None}), more])[0].code == "downlink"


def test_a_link_at_the_rate_that_was_told_stays_full() -> None:
    told: dict[str, Any] = {"link_bytes_per_s": 5.5e6}
    one, eight = by_connections(SHAPED, {"wire_bytes_per_s": 5.6e6}, 8.0, 9.8, **told)
    first, _ = judged(one, eight)
    assert first.code == "link"
    assert "of the link's 44.0 Mbit/s were sent" in first.evidence
    faster = changed(eight, repeat=2, **{"path.wire_bytes_per_s": 25e6})
    assert [judged(one, *more)[0].code for more in ([faster], [eight, faster])] == ["connections"] * 2
    for sent, code in ((85e6, "link"), (84.9e6, "connections")):
        path = {"connections": 1, "wire_bytes_per_s": sent}
        [one] = at_rates("link", (8, 100.0), path=path, link_bytes_per_s=100e6)
        four = changed(one, images_per_s=200.0, channels="x", cell="each", **{"path.connections": 4})
        assert stand([one, four])[0].code == code


def test_more_users_that_bring_more_connections() -> None:
    """Each has its own: that more of them carry no more refutes it, and that they carry more is room."""
    [lower] = at_rates("connections", (4, 100.0), channels="per-user", path={"connections": 4})
    more, same = (
        at_rates("connections", (16, rate), channels="per-user", path={"connections": 16})[0]
        for rate in (300.0, 101.0)
    )
    assert stand([lower, more])[0].code == "offered-load"
    first, _ = stand([lower, same])
    assert first.code == "inconclusive"
    assert first.evidence.startswith("16 connections gained only 1 % over 4, so they are not what limits it")
    others = [changed(same, level=at, **{"path.connections": seen}) for at, seen in ((5, 5), (16, 4))]
    assert [stand([lower, other])[0].code for other in others] == ["inconclusive", "connections"]


def test_more_users_of_one_connection_are_less_than_more_connections() -> None:
    """Both gain: what gains most is named."""
    lower = over_wan(7.4, level=8, in_flight=8.0, cell="c8")
    users = over_wan(9.0)
    connections = over_wan(30.0, 8, channels="per-user", level=8, in_flight=8.0, cell="c8p")
    assert judged(lower, users, connections)[0].code == "connections"
    assert judged(lower, users)[0].code == "offered-load"
    assert judged(lower, users, changed(connections, images_per_s=9.0))[0].code == "offered-load"


def test_room_that_was_not_seen_is_shown_by_the_next_level() -> None:
    silent: dict[str, Any] = {"server_busy": None, "server_queue_ns": 4 * MS}
    lower = a_run(**silent, cell="c4", images_per_s=100.0)
    upper = a_run(**silent, cell="c8", level=8, images_per_s=180.0, in_flight=8.0)
    assert judged(lower)[0].code == "inconclusive"
    first = judged(lower, upper)[0]
    assert (first.code, first.evidence) == (
        "offered-load",
        "8 users got 80 % more images/s than 4, so nothing was full",
    )


def test_a_run_that_was_not_begun_has_no_limit() -> None:
    [run] = at_rates("link", (4, 100.0))
    assert among_neighbours([replace(run, status="not-run", limit=None)])[0].limit is None
    assert among_neighbours([]) == ()


def test_a_ledger_of_two_levels_is_judged_as_a_whole(tmp_path: Path) -> None:
    """Executions of one and of eight images take 8 ms, all of the time: sixteen users fill a quarter."""
    book = Book()
    for users, size in ((1, 1), (16, 8)):
        took_ms, executions = 9 if users == 1 else 17, 480 // size
        counters = triton(480, 1, 8 * MS, (took_ms - 9) * MS)
        counters |= {
            "executions": executions,
            "batches": {str(size): [executions, executions * 8 * MS, 9, 9]},
        }
        tag = book.add("onnx-http", 1, users, {"w0": [took_ms * MS] * 480}, counters=counters)
        book.serving(tag, max_batch=32)
        book.records.append(health_line(tag, "w0"))
    first, second = load_study(book.write(tmp_path)).runs
    assert first.limit is not None
    assert second.limit is not None
    assert (first.limit.code, second.limit.code) == ("batches-not-full", "batches-not-full")
    assert first.limit.evidence.startswith(
        "executions had 1.00 of at most 32 images and took 8.0 ms whatever"
    )
    assert first.limit.evidence.endswith("; 16 users got 747 % more images/s than 1")


@pytest.mark.parametrize(
    ("here", "there", "gain", "gains", "stalls"),
    [
        ([100.0], [115.0], 0.15, False, False),
        ([100.0], [115.1], 0.151, True, False),
        ([100.0], [105.0], 0.05, False, False),
        ([100.0], [104.9], 0.049, False, True),
        # medians, and the nearest of the repeats
        ([90.0, 100.0, 400.0], [401.0, 410.0, 500.0], 3.1, True, False),
        ([90.0, 100.0, 400.0], [400.0, 410.0, 500.0], 3.1, False, False),
        ([80.0, 100.0, 120.0], [70.0, 90.0, 91.9], -0.1, False, True),
        ([80.0, 100.0, 120.0], [70.0, 90.0, 92.1], -0.1, False, False),
    ],
)
def test_a_gain_and_none_are_both_to_be_sure(
    here: list[float], there: list[float], gain: float, gains: bool, stalls: bool
) -> None:
    [run] = at_rates("link", (16, 1.0))
    beside = Neighbour(repeated(run, *there), here)
    assert (beside.gain, beside.gains, beside.stalls) == (pytest.approx(gain), gains, stalls)


def test_the_most_connections_of_the_repeats_and_the_limit_that_they_share() -> None:
    runs = at_rates("link", (16, 1.0), (16, 1.0))
    few, many = (changed(run, **{"path.connections": at}) for run, at in zip(runs, (2, 7), strict=True))
    assert (Neighbour([many, few], ()).connections, Neighbour([many, few], ()).limit) == (7, "link")
    other = replace(few, limit=Limit("nagle", "seen", "Turn it off."))
    assert Neighbour([many, other], ()).limit == ""


@pytest.mark.parametrize(("users", "code"), [(49, "offered-load"), (50, "inconclusive")])
def test_a_quarter_more_users_are_a_test(users: int, code: str) -> None:
    assert stand(at_rates("offered-load", (40, 100.0), (users, 101.0)))[0].code == code


@pytest.mark.parametrize(
    ("rates", "code"),
    [
        ({4: 200.0, 16: 720.0}, "inconclusive"),  # nine tenths of four times
        ({4: 200.0, 16: 719.0}, "server-compute"),
        ({1: 50.0, 8: 200.0, 16: 400.0}, "inconclusive"),  # beside the next level of at most half
        ({1: 22.0, 8: 200.0, 16: 350.0}, "server-compute"),
        ({9: 200.0, 16: 360.0}, "server-compute"),
    ],
)
def test_how_nearly_the_rate_grew_as_the_users_did(rates: dict[int, float], code: str) -> None:
    assert judged(*(silent(users, rate) for users, rate in rates.items()))[-1].code == code


def beside(users: float, **connections: float) -> Limit:
    """What stands of an answer's link of 8 users on four connections, by these rates of others."""
    [one] = at_rates("downlink", (8, 100.0), path={"connections": 4})
    more = at_rates("offered-load", (16, users), path={"connections": 4}) if users else []
    others = [
        changed(one, images_per_s=rate, channels=way, cell=way, **{"path.connections": int(way[1:])})
        for way, rate in connections.items()
    ]
    return stand([one, *more, *others])[0]


def test_of_more_users_and_more_connections_what_gained_more_is_named() -> None:
    assert beside(0, c5=130.0).code == "connections"
    assert beside(130.0, c5=130.0).code == "offered-load"
    assert beside(130.0, c5=131.0).code == "connections"
    assert beside(0, c5=110.0, c8=300.0, c16=200.0).evidence.startswith("8 connections got 200 % more")


def test_of_several_tests_of_few_connections_the_best_decides() -> None:
    ways = {"same-args": (4, 7.5), "per-user": (16, 40.0), "pool:8": (8, 8.0)}
    others = [over_wan(rate, number, channels=way) for way, (number, rate) in ways.items()]
    first = judged(over_wan(7.4), *others)[0]
    assert first.evidence.endswith("; 16 connections got 441 % more images/s than 1")


@pytest.mark.parametrize(
    ("spoilt", "sound"),
    [
        ({"requests": 1_000, "failures": 990}, True),
        ({"requests": 1_000, "failures": 991}, False),
        ({"caveats": (caveat("failures", "many"),)}, True),
        ({"caveats": (caveat("failures", "many"), caveat("drift", "up"))}, False),
        ({"status": "failed"}, False),
    ],
)
def test_a_run_whose_requests_were_refused_is_sound_with_ten_successes(
    spoilt: dict[str, Any], sound: bool
) -> None:
    [run] = at_rates("rate-limited", (4, 100.0), **spoilt)
    assert is_sound(run) is sound


SEVERAL = {"instances": 2, "max_batch": 8, "batching": False, "batching_delay_ns": None}
RATES = {1: 74.0, 2: 74.0, 8: 82.0}


def executing(
    users: int, ms: float, rate: float = 0.0, size: int = 1, count: int = 400, **told: Any
) -> Summary:
    """A run of two instances, or more, whose executions of a size take so long."""
    batches = {size: Executed(count, round(count * ms * MS))} if count else {}
    latency = max(users * 1_000 / (rate or RATES[users]), ms + 1)
    busy = 0.5 if users == 1 else 1.0
    known = {"cell": f"emulated-http/b1/c{users}", "level": users, "in_flight": float(users)}
    known |= {
        "images_per_s": rate or RATES[users],
        "server_busy": busy,
        "serving": SEVERAL,
        "measure_ns": None,
    }
    run = at_server(latency - ms - 1, ms, latency, **known | told)
    return replace(run, server=replace(run.server, batches=batches))


def last(*runs: Summary) -> tuple[str, str]:
    """Of the limit of the last of some runs: the code, and what is said of more instances."""
    limit = judged(*runs)[-1]
    advised = (MORE_INSTANCES, UNTRIED, CONTENTION)
    return limit.code, next((text for text in advised if text in limit.advice), "")


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        # two instances that serialise on a lock, and two that are free
        ((executing(1, 13.5), executing(8, 24.3)), ("server-compute", CONTENTION)),
        ((executing(1, 13.5), executing(8, 13.8, 145)), ("server-queue", MORE_INSTANCES)),
        ((executing(1, 13.5), executing(8, 15.5, 130)), ("server-queue", UNTRIED)),
        # nobody was alone; nor does one instance show what two would do
        ((executing(8, 13.8, 145),), ("server-queue", UNTRIED)),
        ((executing(2, 13.5, 140), executing(8, 13.8, 145)), ("server-queue", UNTRIED)),
        ((executing(1, 13.5, serving=ONE), executing(8, 13.5, 75, serving=ONE)), ("server-queue", UNTRIED)),
        ((executing(1, 13.5, serving=ONE), executing(8, 24.3, serving=ONE)), ("server-queue", UNTRIED)),
        # executions of other sizes, and too few
        ((executing(1, 13.5), executing(8, 24.3, size=4)), ("server-queue", UNTRIED)),
        ((executing(1, 13.5, count=4), executing(8, 24.3)), ("server-queue", UNTRIED)),
        # by the mean of requests, where executions are not told by size
        ((executing(1, 13.5, count=0), executing(8, 24.3, count=0)), ("server-compute", CONTENTION)),
        (
            (executing(1, 13.5, count=0), executing(8, 24.3, count=0, executed_batch=4.0)),
            ("server-queue", UNTRIED),
        ),
    ],
)
def test_more_instances_are_promised_where_they_are_seen_to_run_free(
    runs: tuple[Summary, ...], found: tuple[str, str]
) -> None:
    assert last(*runs) == found


def service(users: int, compute_ms: float, rate: float, **told: Any) -> Summary:
    """One that states compute alone, of executions that it does not count."""
    known = {"cell": f"emulated-http/b1/c{users}", "level": users, "in_flight": float(users)}
    known |= {"images_per_s": rate, "server_busy": None, "executed_batch": None, "measure_ns": None}
    return at_server(0.0, compute_ms, compute_ms + 1, **known | {"serving": {"instances": None}} | told)


@pytest.mark.parametrize(("batch", "doubted"), [(None, True), (1.0, False)])
def test_compute_that_grows_at_a_flat_rate_is_waiting(batch: float | None, doubted: bool) -> None:
    levels = [(1, 30.0, 33.0), (8, 241.0, 33.0), (16, 484.0, 33.0)]
    _, *slowed = judged(*(service(*level, executed_batch=batch) for level in levels))
    for limit, waited in zip(slowed, ("211 ms", "454 ms"), strict=True):
        assert (limit.code, limit.advice) == ("server-queue", WITHIN_COMPUTE)
        assert f"{waited} of it are waiting" in limit.evidence
        assert ("others of their batch" in limit.evidence) == doubted


def test_instances_that_wait_for_each_other_are_no_room() -> None:
    """Eight of sixteen instances execute, and each for as long as all eight take one after the other."""
    sixteen = {**SEVERAL, "instances": 16}
    runs = [
        executing(users, 30.0 * users, 33.0, serving=sixteen, server_busy=users / 16) for users in (1, 4, 8)
    ]
    assert [limit.code for limit in judged(*runs)][1:] == ["server-compute", "server-compute"]


@pytest.mark.parametrize("code", ["throttled", "client-cpu", "link", "server-cold", "cpu-stolen"])
def test_what_slows_all_executions_is_not_their_contention(code: str) -> None:
    [alone] = at_rates("offered-load", (1, 74.0))
    [slow] = at_rates(code, (8, 82.0), serving=SEVERAL)
    sizes = ({1: Executed(400, 400 * 13 * MS)}, {1: Executed(400, 400 * 40 * MS)})
    runs = [
        replace(run, server=replace(run.server, batches=size))
        for run, size in zip((alone, slow), sizes, strict=True)
    ]
    assert stand(runs)[-1].code == code
