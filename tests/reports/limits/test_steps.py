"""Ensembles and services that decode: which step is the limit, by exact mean value analysis of a tandem."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reports.fold.server import EnsembleStep
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, at_server, named

ONE = {"instances": 1, "batching_delay_ns": 0}
ENSEMBLE = {"backend": "onnx", "payload": "jpeg", "endpoint": "onnx-jpeg-http"}


def mean_values(users: int, demands_ms: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Requests a millisecond of a closed network of single instances, and the time in each of them."""
    queued = dict.fromkeys(demands_ms, 0.0)
    rate, times = 0.0, dict(demands_ms)
    for under_way in range(1, users + 1):
        times = {name: demand * (1 + queued[name]) for name, demand in demands_ms.items()}
        rate = under_way / sum(times.values())
        queued = {name: rate * time for name, time in times.items()}
    return rate, times


def tandem(
    users: int, known: bool = True, instances: int = 1, path_ms: float = 1.0, **demands_ms: float
) -> Summary:
    """An ensemble of steps in this order, the last of which is the model, and of a path."""
    rate, times = mean_values(users, {**demands_ms, "path": path_ms})
    waits = {name: times[name] - demand for name, demand in demands_ms.items()}
    steps = {
        name: EnsembleStep(
            queue_ns=waits[name] * MS,
            work_ns=demand * MS,
            instances=instances,
            busy=rate * demand if known else None,
        )
        for name, demand in demands_ms.items()
    }
    *before, model = demands_ms
    parts = {
        "decode": sum(demands_ms[name] for name in before) * MS,
        "queue": sum(waits.values()) * MS,
        "compute": demands_ms[model] * MS,
    }
    run = at_server(
        sum(waits.values()), demands_ms[model], sum(times.values()), serving=ONE, server_parts=parts,
        server_busy=rate * demands_ms[model] if known else None, network_ns=times["path"] * MS,
        unexplained_ns=0.0, level=users, in_flight=float(users), measure_ns=None, **ENSEMBLE,
    )  # fmt: skip
    return replace(run, server=replace(run.server, steps=steps))


def test_a_full_decode_step_is_not_the_models_queue() -> None:
    """Eight users of one instance that decodes for 20 ms; the model is 37 % busy."""
    run = tandem(8, decode_jpeg=20.0, clip=7.4)
    assert run.server.busy == pytest.approx(0.37, abs=0.005)
    limit = named(run, "server-preprocess")
    assert limit.evidence.startswith(
        "requests waited 127 ms for the step decode_jpeg and took 20.0 ms in it, of 160 ms; "
        "the one instance of decode_jpeg was executing 100 % of the time; "
        "the model's instances were executing 37.0 % of the time"
    )
    assert limit.advice.startswith(
        "Try more instances of the step decode_jpeg (instance_group): it is not known"
    )
    assert limit.advice.endswith("or do its work on the client.")


def test_more_instances_do_not_help_where_the_host_has_no_core_left() -> None:
    run = replace(tandem(8, decode_jpeg=20.0, clip=7.4), host_cpu_pct=98.0, local=True)
    limit = named(run, "server-preprocess")
    assert limit.evidence.endswith("the host's cores were 98.0 % busy")
    assert limit.advice.startswith("More instances would not help")


def test_where_the_model_is_the_fullest_step_its_own_queue_decides() -> None:
    limit = named(tandem(8, decode_jpeg=7.4, clip=20.0), "server-queue")
    assert limit.evidence.startswith("requests waited 127 of 160 ms in the server's queue; work on a request "
                                     "took 20.0 ms")  # fmt: skip
    assert "Try more instances" in limit.advice


def test_a_step_that_decodes_longer_than_the_model_computes_is_not_full_for_that() -> None:
    """One user of four instances of each: the decode step takes most of the time and is a quarter busy."""
    run = tandem(1, decode_jpeg=20.0, clip=7.4)
    idle = {
        name: replace(step, instances=4, busy=(step.busy or 0) / 4) for name, step in run.server.steps.items()
    }
    run = replace(run, server=replace(run.server, steps=idle, busy=0.07))
    assert "Add users" in named(run, "offered-load").advice


def test_of_two_full_steps_the_one_that_more_wait_for() -> None:
    run = tandem(16, decode_jpeg=20.0, clip=19.8)
    decode, model = run.server.steps.values()
    wider = {"decode_jpeg": replace(decode, busy=0.96), "clip": replace(model, busy=0.97)}
    assert (decode.queue_ns or 0) > (model.queue_ns or 0)
    named(replace(run, server=replace(run.server, steps=wider)), "server-preprocess")


def test_a_step_behind_what_was_taken_for_the_model() -> None:
    """A Python model that computes beside an ONNX one that prepares: the last step was guessed wrong."""
    limit = named(tandem(8, clip_python=20.0, normalise=2.0), "server-preprocess")
    assert "the one instance of clip_python was executing 100 %" in limit.evidence


def test_without_executions_by_size_the_queue_alone_shows_which_step_is_full() -> None:
    limit = named(tandem(8, known=False, decode_jpeg=20.0, clip=7.4), "server-preprocess")
    assert "waited 127 ms for the step decode_jpeg" in limit.evidence
    assert "executing" not in limit.evidence
    named(tandem(8, known=False, decode_jpeg=7.4, clip=20.0), "server-queue")


def test_three_steps() -> None:
    limit = named(tandem(8, decode_jpeg=4.0, resize=18.0, clip=6.0), "server-preprocess")
    assert "for the step resize" in limit.evidence


@pytest.mark.parametrize("load", ["closed", "open"])
def test_waits_though_instances_are_idle_are_no_lack_of_instances(load: str) -> None:
    changes: dict[str, Any] = {"load": load, "level": 8.0}
    run = at_server(60, 8, 80, serving={"instances": 4, "batching_delay_ns": 0}, server_busy=0.4, **changes)
    limit = named(run, "inconclusive")
    assert limit.evidence == (
        "requests waited 60.0 of 80.0 ms in the server's queue, and why is not known; "
        "the model's 4 instances were executing 40.0 % of the time"
    ) + ("; arrivals by chance explain 5.3 ms of it" if load == "open" else "")
    assert "preferred batch sizes" in limit.advice


def arriving(queue: float, work: float, busy: float, **changes: Any) -> Summary:
    """40 requests a second that come by chance."""
    told: dict[str, Any] = {"load": "open", "arrivals": "poisson", "level": 40.0, "server_busy": busy}
    return at_server(queue, work, queue + work + 2, **told | {"serving": ONE} | changes)


@pytest.mark.parametrize("busy", [0.6, 0.65, 0.7, 0.75, 0.79])
def test_a_queue_of_poisson_arrivals_is_chance(busy: float) -> None:
    """M/M/1 of 20 ms: the mean wait is 20 x busy / (1 - busy)."""
    named(arriving(20 * busy / (1 - busy), 20, busy), "offered-load")
    named(arriving(1.9 * 20 * busy / (1 - busy), 20, busy), "offered-load")


def test_a_queue_that_chance_cannot_make() -> None:
    """Four instances that are 30 % busy: of 12.9 ms by M/M/1, requests wait for 900."""
    four = {"instances": 4, "batching_delay_ns": 0}
    limit = named(at_server(900, 30, 1_000, serving=four, server_busy=0.3, load="open", level=40.0),
                  "inconclusive")  # fmt: skip
    assert limit.evidence == (
        "requests waited 900 of 1,000 ms in the server's queue, and why is not known; the model's 4 "
        "instances were executing 30.0 % of the time; arrivals by chance explain 12.9 ms of it"
    )
    assert limit.advice.startswith("Look for what else holds requests back: preferred batch sizes")
    held = {"instances": 4, "batching_delay_ns": 40 * MS}
    named(arriving(90, 30, 0.3, serving=held), "offered-load")
    named(arriving(2.1 * 20 * 0.65 / 0.35, 20, 0.65), "inconclusive")


def test_one_user_gains_nothing_from_more_instances_of_a_step() -> None:
    run = tandem(1, decode_jpeg=20.0, clip=1.2)
    assert run.server.steps["decode_jpeg"].busy == pytest.approx(0.9, abs=0.01)
    limit = named(run, "server-preprocess")
    assert limit.advice == (
        "For the step decode_jpeg: make it cheaper (smaller pictures, a faster library), or do its work on "
        "the client. One user sends one request at a time, so nothing else makes it faster; more users keep "
        "the server busy."
    )
    assert "Try more instances of" in named(tandem(8, decode_jpeg=20.0, clip=1.2), "server-preprocess").advice


def test_one_user_gains_nothing_from_more_servers() -> None:
    run = at_server(0.1, 40, 42, serving=ONE, server_busy=0.95, level=1, in_flight=1.0)
    limit = named(run, "server-compute")
    assert limit.advice.startswith("Use a faster device, or a smaller or compiled model. One user sends one")
    two = at_server(0.1, 40, 42, serving=ONE, server_busy=0.95, level=2, in_flight=2.0)
    assert "more servers" in named(two, "server-compute").advice


@pytest.mark.parametrize(("users", "help_"), [(1, "or do it on the client. One user"), (4, "on more cores")])
def test_what_helps_one_user_whose_pictures_are_long_decoded(users: int, help_: str) -> None:
    parts = {"decode": 30 * MS, "queue": 0.1 * MS, "compute": 12 * MS}
    run = at_server(0.1, 12, 45, server_parts=parts, server_busy=0.2, level=users, in_flight=float(users))
    limit = named(run, "server-preprocess")
    assert limit.evidence.startswith("decode took 30.0 of 45.0 ms a request")
    assert limit.advice.startswith("Make decode cheaper (smaller pictures, a faster library)")
    assert help_ in limit.advice


@pytest.mark.parametrize(("waited", "code"), [(200, "server-preprocess"), (140, "server-compute")])
def test_a_step_of_unknown_busy_time_beside_a_full_model(waited: float, code: str) -> None:
    """Requests wait for 200 of 250 ms for a step that the server counts no executions of."""
    run = at_server(waited, 12, 250, serving=ONE, server_busy=0.82, level=16, in_flight=16.0)
    steps = {
        "decode_jpeg": EnsembleStep(queue_ns=waited * MS, work_ns=20 * MS),
        "clip": EnsembleStep(queue_ns=1 * MS, work_ns=12 * MS, instances=1, busy=0.82),
    }
    limit = named(replace(run, server=replace(run.server, steps=steps)), code)
    if code == "server-preprocess":
        assert limit.evidence.startswith("requests waited 200 ms for the step decode_jpeg and took 20.0 ms")
        assert limit.advice.startswith("Try more instances of the step decode_jpeg")


@pytest.mark.parametrize(
    ("users", "busy", "code"),
    [
        (16, 0.7, "server-queue"),  # ten wait for one instance at all times
        (16, 0.55, "inconclusive"),
        (4, 0.7, "inconclusive"),
    ],
)
def test_pauses_between_short_executions(users: int, busy: float, code: str) -> None:
    run = at_server(10, 1, 14, serving=ONE, server_busy=busy, level=users, in_flight=float(users))
    named(replace(run, counts=replace(run.counts, measure_ns=None)), code)


def test_where_how_busy_is_unknown_the_queues_share_names_it() -> None:
    run = at_server(60, 8, 80, serving=ONE, server_busy=None, level=8, in_flight=8.0)
    named(run, "server-queue")


SEVERAL = "the server counted only 500 of 1,000 requests that succeeded: several servers may stand behind it"


def test_replicas_that_are_half_idle_are_not_a_full_server() -> None:
    """One user of four: the time is the server's, and three of them have nothing to do."""
    run = at_server(0.1, 40, 42, serving=ONE, server_busy=None, level=1, in_flight=1.0)
    named(run, "server-compute")
    several = replace(run, server=replace(run.server, several=SEVERAL))
    limit = named(several, "inconclusive")
    assert limit.evidence == (
        f"the server took 95.5 % of the time, and whether it was full is not known: {SEVERAL}"
    )
    assert limit.advice.startswith("Give the endpoint the address of one replica")


def test_the_parts_of_several_servers_that_were_read_in_turn_are_unknown() -> None:
    run = at_server(300, 40, 350, serving=ONE, server_parts={}, server_busy=None, level=4, in_flight=4.0)
    limit = named(replace(run, server=replace(run.server, several=SEVERAL)), "inconclusive")
    assert limit.evidence == f"how long the servers took is not known: {SEVERAL}"
    assert limit.advice.startswith("Give the endpoint the address of one replica")
    beside = replace(run, server=replace(run.server, several=SEVERAL), together="a@c1+b@c1")
    assert named(beside, "inconclusive").advice.startswith("Load each endpoint alone")


def test_several_servers_that_take_little_of_the_time() -> None:
    run = at_server(0.1, 6, 20, server_busy=None, level=1, in_flight=1.0)
    named(replace(run, server=replace(run.server, several=SEVERAL)), "offered-load")


def test_a_queue_before_one_of_several_servers() -> None:
    run = at_server(300, 40, 350, serving=ONE, server_busy=None, level=16, in_flight=16.0)
    limit = named(replace(run, server=replace(run.server, several=SEVERAL)), "server-queue")
    assert limit.evidence.endswith(SEVERAL)
    assert limit.advice.startswith("See that requests are spread evenly")


@pytest.mark.parametrize("several", ["", SEVERAL])
def test_decoders_of_the_service(several: str) -> None:
    parts = {"decode": 180 * MS, "preprocess": 15 * MS, "queue": 1 * MS, "compute": 45 * MS}
    run = at_server(1, 45, 255, backend="pytorch", server_parts=parts, server_busy=None)
    limit = named(
        replace(run, server=replace(run.server, several=several)),
        "inconclusive" if several else "server-preprocess",
    )
    first = "Give the endpoint the address of one replica" if several else "Make decode cheaper"
    assert limit.advice.startswith(first)
