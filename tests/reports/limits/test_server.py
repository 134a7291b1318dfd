"""When the server is the limit: its instances, its batcher, its work, or that it was cold."""

from collections.abc import Callable
from typing import Any

import pytest

from reports.backend_facts import BackendFacts
from reports.fold.http2 import Http2
from reports.fold.server import EnsembleStep
from reports.format import ms
from reports.limit import Limit
from reports.limits.rules import limit_of
from reports.limits.server import (
    decodes,
    exhausted,
    fullest_step,
    held_back,
    loaded,
    model_step,
    queue_leads,
    queue_untold,
    server_compute,
    several_untold,
)
from reports.machines.gpus import GpuUse
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, at_server
from tests.reports.limits.test_rules import a_run, code_of

ONE = {"serving": {"instances": 1}}
SERVICE = {"backend": "pytorch", "protocol": "http", "endpoint": "pytorch-http", "executed_batch": None}


def named(run: Summary, code: str) -> Limit:
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == code
    return limit


@pytest.mark.parametrize(("share", "code"), [(0.049, "offered-load"), (0.05, "server-cold")])
def test_first_executions_of_a_size(share: float, code: str) -> None:
    assert code_of(a_run(cold_share=share, cold_batches=(3, 5))) == code


def test_the_evidence_of_a_cold_server() -> None:
    limit = named(a_run(cold_share=0.445, cold_batches=(30,)), "server-cold")
    assert limit.evidence == "44.5 % of the server's execution time went into first executions of batch 30"


def test_sixteen_users_of_one_slow_instance() -> None:
    limit = named(at_server(600, 40, 642, **ONE, server_busy=0.99, level=16, in_flight=16.0), "server-queue")
    assert limit.evidence == (
        "requests waited 600 of 642 ms in the server's queue; work on a request took 40.0 ms; "
        "the model's one instance was executing 99.0 % of the time; executions had 1.00 images"
    )
    assert "more instances" in limit.advice
    two, some, told = (named(at_server(600, 40, 642, **it), limit.code) for it in (TWO_EACH, SOME, UNTOLD))
    assert "40.0 ms; the model's 2 instances were executing 80.0 % of the time; executions" in two.evidence
    assert "40.0 ms; the model's instances were executing 80.0 % of the time; executions" in some.evidence
    assert "40.0 ms; the server took 99.7 % of the time; executions" in told.evidence


def test_one_user_of_one_slow_instance() -> None:
    limit = named(at_server(0.1, 120, 123, **ONE, server_busy=0.98, level=1, in_flight=1.0), "server-compute")
    assert limit.evidence == (
        "compute took 120 of 123 ms a request; requests waited 0.1 ms; "
        "the model's one instance was executing 98.0 % of the time"
    )
    assert limit.advice.startswith("Use a faster device, or a smaller or compiled model. One user sends one")
    more = server_compute(at_server(30, 20, 60, **ONE, server_busy=0.98, level=2))
    assert more is not None
    assert more.evidence.startswith("compute took 20.0 of 60.0 ms a request; requests waited 30.0 ms")
    assert more.advice.endswith("or spread requests over more servers.")


def test_a_long_batching_delay() -> None:
    serving = {"instances": 1, "batching_delay_ns": 200 * MS}
    run = at_server(199, 5, 206, serving=serving, server_busy=0.03, executed_batch=4.0)
    limit = named(run, "server-queue")
    assert limit.evidence == (
        "requests waited 199 of 206 ms in the server's queue; the batcher may hold a request back for 200 "
        "ms; executions had 4.00 images; the model's one instance was executing 3.00 % of the time"
    )
    assert limit.advice.startswith("Lower max_queue_delay_microseconds")


@pytest.mark.parametrize("waited", [1, 800])
def test_slow_decoding_in_the_service(waited: float) -> None:
    """Its one computing thread is idle most of the time, and requests wait for those that decode."""
    parts = {"decode": 180 * MS, "preprocess": 15 * MS, "queue": waited * MS, "compute": 45 * MS}
    run = at_server(waited, 45, waited + 255, **SERVICE, **ONE, server_parts=parts, server_busy=0.3)
    limit = named(run, "server-preprocess")
    assert limit.evidence.startswith(f"decode took 180 of {ms((waited + 255) * MS)} ms a request")
    assert limit.advice.startswith("Make decode cheaper")


def test_a_gateway_that_waits_for_its_upstream_has_no_named_limit() -> None:
    """Whether the upstream's queue, its work or the way there takes the time is not told."""
    parts = {"decode": 1 * MS, "preprocess": 1 * MS, "queue": 1 * MS, "upstream": 30 * MS}
    run = at_server(1, 0, 35, **SERVICE, **ONE | {"server_busy": None}, server_parts=parts)
    assert named(run, "inconclusive").evidence.startswith(
        "the gateway waited 30.0 of 35.0 ms for its upstream"
    )


def test_a_gateway_that_decodes_for_longer_than_its_upstream_takes() -> None:
    parts = {"decode": 18 * MS, "preprocess": 4 * MS, "queue": 1 * MS, "upstream": 10 * MS}
    run = at_server(1, 0, 35, **SERVICE, **ONE | {"server_busy": None}, server_parts=parts)
    assert named(run, "server-preprocess").evidence.startswith("decode took 18.0 of 35.0 ms a request")


DELAYED = {"serving": {"batching_delay_ns": 10 * MS}, "server_busy": 0.3}
UNTOLD: dict[str, Any] = {"server_busy": None, "serving": {"instances": 1}}
IDLE: dict[str, Any] = {"server_busy": 0.6, "serving": {"instances": 1}, "level": 9, "in_flight": 9.0}
IDLE |= {"measure_ns": None}
FULL: dict[str, Any] = {"server_busy": 0.8, "serving": {"instances": 1}, "measure_ns": None}
TWO_EACH: dict[str, Any] = FULL | {"serving": {"instances": 2}}
SOME: dict[str, Any] = FULL | {"serving": {"instances": None}}
STREAMS: dict[str, Any] = {"path": {"http2": Http2(streams=4, streams_allowed=4)}, "stream_wait_ns": 30 * MS}
SEVERAL: dict[str, Any] = {"server.several": "two were seen"}


def of_parts(whole_ms: float, changes: dict[str, Any] | None = None, **each_ms: float) -> Summary:
    parts = {name: took * MS for name, took in each_ms.items()}
    return at_server(0, 0, whole_ms, server_parts=parts, **changes or {})


def stepping(busy: float | None) -> dict[str, Any]:
    return {
        "server.steps": {"decode": EnsembleStep(work_ns=10 * MS, busy=busy), "clip": EnsembleStep(busy=0.2)}
    }


@pytest.mark.parametrize(
    ("holds", "run", "held"),
    [
        # the batcher explains a wait: up to 1.5 times its delay, 0.3 of the time, and the longest part
        (held_back, at_server(15, 4, 40, **DELAYED), True),
        (held_back, at_server(15.01, 4, 40, **DELAYED), False),
        (held_back, at_server(9, 4, 30, **DELAYED), True),
        (held_back, at_server(8.99, 4, 30, **DELAYED), False),
        (held_back, at_server(10, 10, 30, **DELAYED), False),
        (held_back, at_server(10, 4, 30, server_other_ns=10 * MS, **DELAYED), False),
        (held_back, at_server(10, 4, 30, network_ns=9.5 * MS, **DELAYED), True),
        (held_back, at_server(10, 4, 30, network_ns=9.6 * MS, **DELAYED), False),
        (held_back, at_server(10, 4, 30, encode_ns=10 * MS, **DELAYED), False),
        (held_back, at_server(10, 4, 30, decode_ns=10 * MS, **DELAYED), False),
        (held_back, at_server(10, 4, 30, serving={"batching_delay_ns": None}), False),
        (held_back, at_server(10, 4, 30, server_queue_ns=None, **DELAYED), False),
        # requests wait for three fifths of the time, without that for a stream
        (queue_leads, at_server(24, 16, 40, **UNTOLD), True),
        (queue_leads, at_server(23.9, 16.1, 40, **UNTOLD), False),
        (queue_leads, at_server(24, 16.1, 45, **UNTOLD, stream_wait_ns=5 * MS), True),
        (queue_leads, at_server(24, 10, 40, **UNTOLD, server_queue_ns=None), False),
        (queue_leads, at_server(24, 10, 40, **UNTOLD, stream_wait_ns=50 * MS), False),
        # or half as long again as the work, of a server without room: by its share, or as busy as it is
        (queue_leads, at_server(15.1, 10, 40, **UNTOLD), True),
        (queue_leads, at_server(15, 10, 40, **UNTOLD), False),
        (queue_leads, at_server(15.1, 10, 45, **UNTOLD), False),
        (queue_leads, at_server(15.1, 10, 60, **FULL, level=1), True),
        (queue_leads, at_server(15.1, 10, 60, **FULL | {"server_busy": 0.79}, level=1), False),
        # or half of the work, where four wait for each instance: two fifths of those under way
        (queue_leads, at_server(24, 30, 60, **FULL, level=10, in_flight=10.0), True),
        (queue_leads, at_server(24, 30, 60, **SOME, level=10, in_flight=10.0), True),
        (queue_leads, at_server(15, 30, 30, **FULL, level=20, in_flight=20.0), True),
        (queue_leads, at_server(14.9, 30, 30, **FULL, level=20, in_flight=20.0), False),
        (queue_leads, at_server(24, 30, 60, **FULL, level=9, in_flight=9.9), False),
        (queue_leads, at_server(24, 30, 60, **TWO_EACH, level=19, in_flight=19.0), False),
        (queue_leads, at_server(24, 30, 60, **TWO_EACH, level=20, in_flight=20.0), True),
        # instances that idle at times are waited for by many alone, under a load that does not come by chance
        (queue_leads, at_server(24, 10, 40, **IDLE), True),
        (queue_leads, at_server(24, 10, 40, **IDLE | {"server_busy": 0.59}), False),
        (queue_leads, at_server(24, 10, 40, **IDLE | {"load": "open"}), False),
        (queue_leads, at_server(24, 10, 40, **IDLE | {"level": 6}), False),
        (queue_leads, at_server(24, 10, 48, **IDLE | {"level": 8, "stream_wait_ns": 8 * MS}), True),
        (queue_leads, at_server(23.9, 10, 40, **IDLE), False),
        # a server has no room: four fifths busy, or three fifths of the time beside its upstream's
        (loaded, at_server(2, 2, 40, server_busy=0.8), True),
        (loaded, at_server(2, 22, 40, server_busy=0.79), False),
        (loaded, at_server(2, 22, 40, **UNTOLD, server_other_ns=0.0), True),
        (loaded, at_server(1.9, 22, 40, **UNTOLD, server_other_ns=0.0), False),
        (loaded, at_server(2, 22, 40, **UNTOLD, **SEVERAL), False),
        (loaded, of_parts(40, UNTOLD, queue=2, compute=21.9, upstream=9), False),
        (loaded, of_parts(40, UNTOLD, queue=2, compute=22, upstream=9), True),
        (loaded, of_parts(40, UNTOLD | STREAMS, queue=2, compute=22), False),
        # pictures are longer made ready than computed on, by a server that has three fifths of the time
        (decodes, of_parts(33.3, decode=6, preprocess=4, compute=10), True),
        (decodes, of_parts(33.3, decode=6, preprocess=4, compute=10.1), False),
        (decodes, of_parts(33.3, decode=6, preprocess=4, compute=3, upstream=7.1), False),
        (decodes, of_parts(33.4, decode=6, preprocess=4, queue=3, compute=7), False),
        (decodes, of_parts(40, compute=30), False),
        (decodes, of_parts(40, queue=30), False),
        (decodes, of_parts(40, queue=30, decode=1e-6), True),
        (decodes, of_parts(40, SEVERAL, decode=20, compute=10), False),
        (decodes, of_parts(40, stepping(None), decode=20, compute=10), True),
        (decodes, of_parts(40, stepping(0.2), decode=20, compute=10), False),
    ],
)
def test_at_the_edges(holds: Callable[[Summary], bool], run: Summary, held: bool) -> None:
    assert holds(run) is held


HOST: dict[str, Any] = {"backend": "onnx", "host_cpu_pct": 90.0, "local": True, "server_busy": 0.5}
CORES = "the host's cores were 90.0 % busy"


@pytest.mark.parametrize(
    ("share", "changes", "said"),
    [
        (0.6, {"server_busy": None}, CORES),
        (0.59, {"server_busy": 0.79}, ""),
        (0.1, {"server_busy": 0.8}, CORES),
        (0.6, {"host_cpu_pct": 89.9}, ""),
        (0.6, {"host_cpu_pct": None}, ""),
        (0.6, {"each_gpu": (GpuUse(id="a", util_pct=96.0, power_share=0.93),)}, "the GPU was 96.0 % busy, a"),
        (0.6, {"local": False}, ""),  # elsewhere, however short the way is
        (0.6, {"local": None}, ""),
        (0.6, {"facts": BackendFacts(computes=False)}, ""),  # sleeps
    ],
)
def test_which_device_has_no_room(share: float, changes: dict[str, Any], said: str) -> None:
    run = at_server(0, 100 * share, 100, **HOST | changes)
    assert exhausted(run).startswith(said)
    assert bool(exhausted(run)) is bool(said)
    limit = limit_of(run)
    assert limit is not None
    assert (limit.code == "server-compute" and said in limit.evidence) is bool(said)


def step(busy: float | None, queue_ms: float) -> EnsembleStep:
    return EnsembleStep(queue_ns=queue_ms * MS, busy=busy)


@pytest.mark.parametrize(
    ("one", "other", "model", "fullest"),
    [
        (step(0.8, 9), step(0.3, 1), step(0.5, 99), "one"),
        (step(0.79, 9), step(0.3, 1), step(0.5, 1), ""),
        # of those as full as the fullest the one that most wait for
        (step(0.95, 9), step(0.9, 10), step(0.99, 1), "one"),
        (step(0.95, 9), step(0.9, 10), step(0.95, 1), "other"),
        (step(0.8, 9), step(0.99, 1), step(0.5, 1), "other"),
        # where it is not known how busy it was, by three fifths of the time in its queue
        (step(None, 60), step(0.99, 59), step(None, 1), "one"),
        (step(None, 59.9), step(None, 1), step(None, 1), ""),
        (step(None, 60), step(0.99, 61), step(None, 1), "other"),
    ],
)
def test_which_step_is_the_fullest(
    one: EnsembleStep, other: EnsembleStep, model: EnsembleStep, fullest: str
) -> None:
    steps = {"one": one, "other": other, "clip": model}
    run = at_server(0, 0, 110, stream_wait_ns=10 * MS, **{"server.steps": steps})
    assert (fullest_step(run), model_step(run)) == (fullest, "clip")


def test_without_a_requests_time_no_queue_is_most_of_it() -> None:
    untimed = {"service_mean_ns": None, "latency_mean_ns": None, "server.steps": {"one": step(None, 60)}}
    assert fullest_step(at_server(0, 0, 110, **untimed)) == ""


def test_waits_for_a_batch_are_none_for_decoders_unless_all_is_busy() -> None:
    few, full = (DELAYED | {"network_ns": 6 * MS, "server_busy": busy} for busy in (0.3, 0.9))
    codes = [code_of(of_parts(36, it, queue=12, decode=7, compute=5)) for it in (few, full)]
    assert codes == ["server-queue", "server-preprocess"]


OPEN: dict[str, Any] = {"load": "open", "serving": {"instances": 1, "batching_delay_ns": 3 * MS}}
HALF = EnsembleStep(work_ns=5 * MS, busy=0.5, instances=2)
TWO = {"decode": HALF, "clip": EnsembleStep(work_ns=6 * MS, busy=0.6)}
OF_STEPS = "executing 60.0 % of the time; the 2 instances of decode were executing 50.0 % of the time; arr"
OF_TWO: dict[str, Any] = OPEN | {"server_busy": 0.6, "server.steps": TWO}


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (at_server(60, 10, 100, server_busy=0.2), "requests waited 60.0 of 100 ms in the server's queue"),
        (at_server(59.9, 10, 100, server_busy=0.2), ""),
        (at_server(60, 10, 100, server_busy=None), ""),
        # twice what chance explains: 10 x 0.75 / 0.25 + 3 = 33 ms, of all work
        (at_server(66, 10, 100, server_busy=0.75, **OPEN), ""),
        (at_server(66.1, 10, 100, server_busy=0.75, **OPEN), "arrivals by chance explain 33.0 ms of it"),
        (at_server(66.1, 9, 100, server_other_ns=1 * MS, server_busy=0.75, **OPEN), "explain 33.0 ms of it"),
        (at_server(66, 10, 100, server_busy=0.75, **OPEN | {"load": "closed"}), "in the server's queue"),
        (at_server(60.000001, 10, 100, server_busy=0.75, load="open"), "by chance explain 30.0 ms of it"),
        # of an ensemble by its steps: 5 + 9 + 3 = 17 ms
        (at_server(61, 10, 100, **OF_TWO), "by chance explain 17.0 ms"),
        (at_server(61, 10, 100, **OF_TWO), OF_STEPS),
        (at_server(61, 10, 100, **OF_TWO | {"server.steps": TWO | {"x": step(None, 1)}}), ""),
        (at_server(61, 10, 100, server_busy=1.0, **OPEN), ""),
    ],
)
def test_waits_that_a_server_with_room_does_not_explain(run: Summary, why: str) -> None:
    limit = queue_untold(run)
    assert bool(limit) is bool(why)
    assert limit is None or (limit.code == "inconclusive" and why in limit.evidence)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (at_server(0, 20, 40, **SEVERAL), "the server took 50.0 % of the time, and whether it was full is n"),
        (at_server(0, 19.9, 40, **SEVERAL), ""),
        (at_server(0, 20, 40), ""),
        (at_server(0, 20, 40, server_parts={}, **SEVERAL), "how long the servers took is not known: two wer"),
    ],
)
def test_several_servers_that_have_half_of_the_time(run: Summary, why: str) -> None:
    limit = several_untold(run)
    assert bool(limit) is bool(why)
    assert limit is None or limit.evidence.startswith(why)
