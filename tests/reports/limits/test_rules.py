"""Which limit a run is given, whatever is known of it, and in which order rules are asked."""

import random
from dataclasses import fields, replace
from typing import Any

import pytest

from reports.caveat import caveat
from reports.fold.http2 import Http2
from reports.fold.path import Path
from reports.fold.server_facts import Serving
from reports.fold.windows import Arrivals, Offered
from reports.limit import Limit
from reports.limits.client import AWAITED_PCT
from reports.limits.rules import (
    RULES,
    Rule,
    failed_time_share,
    host_full,
    limit_of,
    not_kept_up,
    nothing_measured,
    path_unseen,
    queue_or_loss,
    unexplained,
    upstream_untold,
)
from reports.summary.summary import Summary
from tests.reports.limit_runs import HEALTHY, LIMITS, MS, PATH, SERVING, a_run, at_server, on_path
from tests.reports.parts import PLACES, changed

OF_SERVER = ("server_queue_ns", "server_compute_ns", "server_other_ns")
OPTIONAL = [field.name for field in fields(Summary) if field.default is None]
FILLED = ("failure_kinds", "failure_codes", "refused_for", "server_parts", "cold_batches")
OPTIONAL += [*OF_SERVER, *(name for name in PLACES if name not in FILLED)]
SICK = [
    HEALTHY,
    a_run(worker_cpu_pct=97.0),
    a_run(loop_lag_p95_ns=80 * MS),
    a_run(cold_share=0.2, cold_batches=(3, 5)),
    at_server(600, 40, 645, server_busy=1.0, level=16, in_flight=16.0),
    at_server(200, 3, 206, server_busy=0.1, serving={"batching_delay_ns": 200 * MS}),
    on_path(2_100, {"connections": 1, "retransmits": 28, "segments_out": 40_000}, level=16, in_flight=16.0),
    on_path(2_100, {"rtt_ns": 60.0 * MS}, level=16, in_flight=16.0),
    a_run(load="open", arrivals="poisson", level=200.0, offered=Offered(200.0, 1, 5.0), due=1_000, dropped=0),
    a_run(link_bytes_per_s=130e6),
    a_run(path={"http2": Http2(streams=4, streams_allowed=4)}, stream_wait_ns=15 * MS),
    a_run(path={"http2": Http2(stream_stalls=9_000, stream_stalled_ns=10_000 * MS)}, flow_wait_ns=10 * MS),
]


def code_of(run: Summary) -> str:
    limit = limit_of(run)
    assert limit is not None
    return limit.code


def well_formed(limit: Limit | None) -> bool:
    assert limit is not None
    assert limit.code in LIMITS
    assert limit.evidence
    assert not limit.evidence.endswith(".")
    assert "None" not in limit.evidence
    assert limit.advice.endswith(".")
    return True


def test_a_run_that_was_not_begun_has_no_limit() -> None:
    assert limit_of(replace(HEALTHY, status="not-run")) is None


def test_the_healthy_run_is_limited_by_its_load() -> None:
    limit = limit_of(HEALTHY)
    assert limit is not None
    assert limit.code == "offered-load"
    assert limit.evidence.startswith(
        "4 users did not fill anything; the busiest worker used 20.0 % of a core"
    )
    assert "the server's instances were executing 30.0 % of the time" in limit.evidence
    assert limit.advice.startswith("Add users")


@pytest.mark.parametrize("run", SICK)
def test_every_code_is_declared_and_its_words_are_complete(run: Summary) -> None:
    assert well_formed(limit_of(run))


@pytest.mark.parametrize(
    ("stronger", "code"),
    [
        ({"status": "aborted", "cold_share": 0.5}, "inconclusive"),
        ({"cold_share": 0.5, "worker_cpu_pct": 99.0}, "server-cold"),
        ({"worker_cpu_pct": 99.0, "loop_lag_p95_ns": 80 * MS, "server_busy": 0.99}, "client-cpu"),
        ({"loop_lag_p95_ns": 80 * MS, "link_bytes_per_s": 121e6}, "client-loop"),
        ({"link_bytes_per_s": 130e6, "server_busy": 0.9}, "link"),
        ({"server_busy": 0.9, "unexplained_ns": 15 * MS}, "server-compute"),
        ({"server_busy": 0.5, "unexplained_ns": 15 * MS, "network_ns": 0.0}, "inconclusive"),
    ],
)
def test_of_several_things_in_the_way_the_first_rule_names_one(stronger: dict[str, Any], code: str) -> None:
    assert code_of(a_run(**stronger)) == code


@pytest.mark.parametrize("run", SICK)
@pytest.mark.parametrize("name", OPTIONAL)
def test_any_field_may_be_unknown(run: Summary, name: str) -> None:
    assert well_formed(limit_of(changed(run, **{name: None})))


@pytest.mark.parametrize("run", SICK)
def test_any_fields_may_be_unknown_or_nothing(run: Summary) -> None:
    dice = random.Random(4)
    for _ in range(400):
        thinned = changed(
            run, **{name: dice.choice([None, None, 0]) for name in OPTIONAL if dice.random() < 0.4}
        )
        known_path = {field.name: dice.choice([None, 0]) for field in fields(Path) if dice.random() < 0.4}
        known_serving = {field.name: None for field in fields(Serving) if dice.random() < 0.4}
        run_without = changed(
            thinned,
            server_parts=dice.choice([{}, thinned.server.parts]),
            limit=None,
            path=dice.choice([None, replace(PATH, **known_path)]),
            serving=dice.choice([None, replace(SERVING, **known_serving)]),
        )
        assert well_formed(limit_of(run_without))


def test_without_any_number_nothing_can_be_said() -> None:
    bare = {name: getattr(HEALTHY, name) for name in ("cell", "endpoint", "backend", "protocol", "payload")}
    run = Summary(**bare, repeat=1, batch=1, load="closed", level=4, status="done")
    assert limit_of(run) == Limit(
        "inconclusive",
        "no request succeeded",
        "Fix the cause or measure longer (--seconds), then run again.",
    )


def test_in_which_order_rules_are_asked() -> None:
    """Causes before what they bring about, and what is not known last."""
    assert " ".join(rule.__name__ for rule in RULES) == (
        "client_ports server_full rate_limited refused_untold nothing_measured server_cold slow_shape "
        "client_throttled client_stolen client_cpu client_loop server_throttled server_stolen link "
        "slow_start think_time http2_window server_intake handshake few_connections downlink nagle "
        "others_on_cores server_preprocess "
        "server_queue server_compute streams several_untold server_unread upstream_untold queue_untold "
        "unexplained path_unseen queue_or_loss lossy_or_policed untold_part host_full not_kept_up "
        "room_unseen offered_load"
    )


def test_what_failed_requests_take_of_the_time() -> None:
    kinds = {"failures": 20, "failure_kinds": {"timeout": 10, "reset": 10}}
    run = a_run(**kinds, timeout_mean_ns=4_000 * MS, failed_mean_ns=30 * MS)
    assert failed_time_share(run) == pytest.approx(40_300 / (40_300 + 980 * 20))
    assert (failed_time_share(HEALTHY), failed_time_share(a_run(requests=0))) == (0, 0)
    assert failed_time_share(changed(run, timeout_mean_ns=None, failed_mean_ns=None)) == 0
    assert failed_time_share(changed(run, service_mean_ns=None, latency_mean_ns=None)) == 1


LITTLE = {"server_parts": {"compute": 0.3 * MS}, "network_ns": 0.1 * MS}
OPEN: dict[str, Any] = {"load": "open", "sent": Arrivals(due=1_000, dropped=0)}
UNSEEN: dict[str, Any] = {"path": {"rtt_ns": None}}
WINDOWS = {"rtt_ns": 20 * MS, "min_rtt_ns": 14 * MS, "cwnd_bytes": 66_600.0, "busy_share": 0.98}
WINDOWS |= {"wire_bytes_per_s": 10e6, "delivery_bytes_per_s": 0.0}
FAR, NEAR, WAITING = {"network_ns": 15 * MS}, {"rtt_ns": 15 * MS}, {"not_sent_bytes": 70e3}


@pytest.mark.parametrize(
    ("rule", "changes", "said"),
    [
        (nothing_measured, {"failures": 100, "failed_mean_ns": 20 * MS}, ""),
        (nothing_measured, {"failures": 101}, "101 of 1,000 requests failed (10.1 %)"),
        # 20 of 108.9 ms beside 980 of 20 ms are a tenth of the time
        (nothing_measured, {"failures": 20, "failed_mean_ns": 108.8 * MS}, ""),
        (
            nothing_measured,
            {"failures": 20, "failed_mean_ns": 109 * MS},
            "20 of 1,000 requests failed, in 10.0 %",
        ),
        (nothing_measured, {"requests": 10}, ""),
        (nothing_measured, {"requests": 9}, "only 9 requests succeeded, of the 10"),
        (nothing_measured, {"requests": 1}, "only 1 requests succeeded, of the 10"),
        (nothing_measured, {"service_mean_ns": None, "latency_mean_ns": None}, "no mean latency is known"),
        (nothing_measured, {"profile": "steps"}, "the load changed during the run"),
        (nothing_measured, {"caveats": (caveat("results-lost", "3 are missing"),)}, "3 are missing"),
        (nothing_measured, {"caveats": (caveat("users-missing", "1"), caveat("drift", "up"))}, ""),
        # taking 602 kB in may cost 3.2 ms unseen
        (unexplained, LITTLE | {"unexplained_ns": 3_204_578.0}, ""),
        (
            unexplained,
            LITTLE | {"unexplained_ns": 3_204_578.001},
            "the largest part is unexplained: 3.2 ms beside",
        ),
        (
            unexplained,
            LITTLE | {"unexplained_ns": 9 * MS, "network_most_ns": 2.1 * MS},
            "up to 2.0 ms may be the",
        ),
        (unexplained, LITTLE | {"unexplained_ns": 2 * MS + 1, "request_bytes": None}, "2.0 ms beside"),
        (unexplained, LITTLE | {"unexplained_ns": 9 * MS, "stream_wait_ns": 9 * MS}, ""),
        (unexplained, LITTLE | {"unexplained_ns": 9 * MS, "encode_ns": 9 * MS}, ""),
        (unexplained, {"unexplained_ns": 6 * MS}, ""),  # the model computes for as long
        (unexplained, {"unexplained_ns": -4 * MS}, ""),
        (
            unexplained,
            {"unexplained_ns": -4.1 * MS},
            "the parts come to more than was measured: 4.1 ms beside",
        ),
        (unexplained, {"unexplained_ns": 15 * MS, "network_ns": None}, ""),
        (
            path_unseen,
            UNSEEN | {"network_ns": 9.7 * MS},
            "the path took 10.1 of 20.0 ms, and its connections were",
        ),
        (path_unseen, UNSEEN | {"network_ns": 9.5 * MS}, ""),
        (path_unseen, UNSEEN | {"network_ns": 1.6 * MS, "service_mean_ns": 3 * MS}, ""),
        (
            path_unseen,
            UNSEEN | {"network_ns": 1.7 * MS, "service_mean_ns": 3 * MS},
            "the path took 2.1 of 3.0 ms",
        ),
        (path_unseen, {"network_ns": 9.7 * MS}, ""),
        (path_unseen, {"network_ns": 9.7 * MS, "caveats": (caveat("path-gap", "in part"),)}, "were not seen"),
        # full windows on the way, or connections that are always full
        (queue_or_loss, FAR | {"path": WINDOWS}, "with full windows: a full link or few connections"),
        (queue_or_loss, FAR | {"path": WINDOWS, "link_bytes_per_s": 125e6}, ""),
        (queue_or_loss, {"path": WINDOWS}, ""),
        (queue_or_loss, {"path": WINDOWS | WAITING}, "with full windows"),
        # without a queue on the way only where they are always full, and nothing is lost
        (queue_or_loss, FAR | {"path": WINDOWS | NEAR}, ""),
        (queue_or_loss, FAR | {"path": WINDOWS | NEAR | WAITING}, "with full windows"),
        (queue_or_loss, FAR | {"path": WINDOWS | NEAR | WAITING | {"retransmits": 1}}, ""),
        (upstream_untold, {"server_parts": {"upstream": 10 * MS}}, "the gateway waited 10.0 of 20.0 ms"),
        (upstream_untold, {"server_parts": {"upstream": 9.9 * MS, "queue": 5 * MS}}, ""),
        (host_full, {"host_cpu_pct": 90.0, "cpu_wait_pct": None}, "the client's host was 90.0 % busy"),
        (host_full, {"host_cpu_pct": 89.9, "cpu_wait_pct": None}, ""),
        (host_full, {"host_cpu_pct": 99.0, "cpu_wait_pct": AWAITED_PCT}, "the client's host was 99.0 % busy"),
        (host_full, {"host_cpu_pct": 99.0, "cpu_wait_pct": AWAITED_PCT - 0.1}, ""),
        (
            not_kept_up,
            OPEN | {"sent": Arrivals(due=1_000, dropped=1)},
            "1 of 1,000 arrivals were never sent, and",
        ),
        (not_kept_up, OPEN | {"send_delay_mean_ns": 4 * MS}, ""),
        (
            not_kept_up,
            OPEN | {"send_delay_mean_ns": 4.1 * MS},
            "requests began 4.1 ms late, and nothing was full",
        ),
        (not_kept_up, OPEN | {"caveats": (caveat("rate-missed", "99"),)}, "the asked rate was not sent, and"),
        (not_kept_up, {"send_delay_mean_ns": 9 * MS}, ""),
    ],
)
def test_at_the_edges_of_what_is_not_known(rule: Rule, changes: dict[str, Any], said: str) -> None:
    limit = rule(a_run(**changes))
    assert bool(limit) is bool(said)
    assert limit is None or (limit.code == "inconclusive" and said in limit.evidence)
