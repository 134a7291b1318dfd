"""Cells, their order, and the estimate of the time left."""

from dataclasses import replace
from itertools import groupby, product

import pytest

from reports.fold.windows import Arrivals, RequestCounts
from reports.histogram.percentiles import Distribution
from reports.ledger.axes import Topology
from reports.limit import Limit
from reports.summary.summary import Summary
from swarm.errors import UsageError
from swarm.plan import schedule
from swarm.plan.cell import Cell, PlannedRun, Warm, warmed_by
from swarm.plan.matrix import (
    AMOUNTS,
    Size,
    at_rates,
    concurrent,
    every_batch_and_level,
    matching,
    one_repeat,
    order,
    serial_and_concurrent,
    taken,
)
from swarm.plan.schedule import Outcome
from users.endpoint import Endpoint

A = Endpoint("a-http", "a", "http", "fp32", "h:1", "m")
B = Endpoint("b-grpc", "b", "grpc", "fp32", "h:2", "m")
QUICK = Size(batches=(1, 4, 8), levels=(1, 8), iterations=10, seconds=2)


def test_the_published_matrix_without_measuring_a_cell_twice() -> None:
    cells = serial_and_concurrent([A, B], QUICK)
    assert [cell.name for cell in cells] == [
        "a-http/b1/c1", "a-http/b4/c1", "a-http/b8/c1", "a-http/b1/c8",
        "b-grpc/b1/c1", "b-grpc/b4/c1", "b-grpc/b8/c1", "b-grpc/b1/c8",
    ]  # fmt: skip
    assert [cell.requests for cell in cells[:4]] == [10, 10, 10, 40]
    two = serial_and_concurrent([A], QUICK.given(levels=(1, 2)))
    assert [(cell.name, cell.requests) for cell in two[3:]] == [("a-http/b1/c2", 20)]
    assert concurrent(A, 8, QUICK, 4, instances=2) == Cell(A, 4, 8, 40, 2, instances=2)


def test_the_full_size_has_the_seeds_sixty_requests() -> None:
    full = Size(batches=(1,), levels=(1, 8, 16), iterations=30, seconds=5)
    assert [cell.requests for cell in serial_and_concurrent([A], full)] == [30, 60, 80]


def test_amounts_given_by_option_win() -> None:
    amounts = dict(zip(AMOUNTS, (3, 0, 4, 5), strict=True))
    assert QUICK.given(**amounts) == Size((1, 4, 8), (1, 8), 3, 2, 4, 5)
    assert QUICK.given(seconds=0.5) == Size((1, 4, 8), (1, 8), 10, 0.5, 12)
    assert QUICK.given(batches=(2,), levels=()) == Size((2,), (1, 8), 10, 2, 12)


def test_cells_by_pattern() -> None:
    cells = serial_and_concurrent([A, B], QUICK)
    assert [cell.name for cell in matching(cells, "*-grpc/b1/*")] == ["b-grpc/b1/c1", "b-grpc/b1/c8"]
    assert matching(cells, "") == cells


@pytest.mark.parametrize(
    ("pattern", "closest"),
    [
        ("x", ""),
        ("a-http", "closest: a-http/*, a-http/b8/c1, a-http/b4/c1; "),
        ("b-grcp/b4/c1", "closest: b-grpc/b4/c1, b-grpc/b8/c1, b-grpc/b1/c1; "),
    ],
)
def test_a_pattern_of_no_cell_is_refused_with_those_that_are_like_it(pattern: str, closest: str) -> None:
    with pytest.raises(UsageError) as refused:
        matching(serial_and_concurrent([A, B], QUICK), pattern)
    assert str(refused.value) == (
        f"--cells {pattern}: matches no cell of this study; {closest}there are b1/c1, b4/c1, b8/c1, b1/c8 of "
        "a-http, b-grpc"
    )


def test_of_many_cells_only_some_are_listed_and_the_sentence_stays_whole() -> None:
    many = [replace(A, name=f"endpoint-of-a-long-name-{at}") for at in range(30)]
    cells = serial_and_concurrent(many, QUICK)
    with pytest.raises(UsageError) as refused:
        matching(cells, "nonsense" * 30)
    said = str(refused.value)
    assert said.startswith("--cells nonsensenonsense")
    assert said.endswith("name-7 and 22 more")
    assert " … " not in said


def taking(most: int) -> Endpoint:
    return replace(A, contract=replace(A.contract, max_batch=most))


def test_batches_that_an_endpoint_does_not_take_are_left_out_and_told() -> None:
    cells = serial_and_concurrent([taking(4), B], QUICK)
    kept, said = taken(cells, ())
    assert [cell.name for cell in kept] == [one.name for one in cells if one.name != "a-http/b8/c1"]
    assert said == ["a-http takes at most 4 items per request: batch 8 is left out"]
    assert taken(serial_and_concurrent([A, B], QUICK), ()) == (serial_and_concurrent([A, B], QUICK), [])
    _, said = taken(serial_and_concurrent([taking(1)], QUICK), ())
    assert said == ["a-http takes at most 1 item per request: batch 4, 8 is left out"]


@pytest.mark.parametrize(("asked", "option"), [((4, 8), "--batches"), ((), "--cells")])
def test_an_endpoint_that_takes_none_of_its_batches_is_refused(asked: tuple[int, ...], option: str) -> None:
    cells = serial_and_concurrent([taking(2), B], QUICK.given(batches=(4, 8), levels=(1,)))
    with pytest.raises(UsageError) as caught:
        taken(cells, asked)
    assert str(caught.value) == f"{option}: a-http takes at most 2 items per request; give --batches up to 2"


def test_every_batch_with_every_number_of_users() -> None:
    cells = every_batch_and_level([A], QUICK.given(batches=(1, 8), levels=(1, 2)))
    assert [(cell.name, cell.requests) for cell in cells] == [
        ("a-http/b1/c1", 10), ("a-http/b1/c2", 20), ("a-http/b8/c1", 10), ("a-http/b8/c2", 20),
    ]  # fmt: skip


def test_repeats_are_interleaved_and_seeded() -> None:
    cells = serial_and_concurrent([A, B], QUICK)
    runs = order(cells, 3, seed=7)
    assert runs == order(cells, 3, seed=7)
    assert runs != order(cells, 3, seed=8)
    for repeat in (1, 2, 3):
        of_repeat = runs[(repeat - 1) * 8 : repeat * 8]
        assert {run.cell for run in of_repeat} == set(cells)
        assert {run.repeat for run in of_repeat} == {repeat}
    assert [run.cell for run in runs[:8]] != [run.cell for run in runs[8:16]]


def test_cells_that_set_their_server_alike_follow_one_another_and_settings_come_by_chance() -> None:
    settings = [(delay, count) for delay in (None, 500) for count in (1, 2)]
    cells = [
        Cell(A, 1, level, 10, 1, queue_delay_us=delay, instances=count)
        for level, (delay, count) in product((1, 2, 4), settings)
    ]
    repeats = [[run.cell for run in one_repeat(cells, repeat, 7)] for repeat in range(1, 13)]
    orders = [[key for key, _ in groupby(found, key=lambda cell: cell.settings)] for found in repeats]
    assert all(sorted(map(str, found)) == sorted(map(str, settings)) for found in orders)
    assert len({found[0] for found in orders}) >= 3
    assert len({tuple(cell.level for cell in found if cell.settings == (None, 1)) for found in repeats}) > 3


@pytest.mark.parametrize(
    ("endpoint", "batch", "warm"),
    [
        *((A, 4, ("a", "m", "fp32", 4)), (replace(A, model=""), 1, ("a", "a", "fp32", 1))),
        (replace(B, server="new", payload="jpeg"), 4, ("new", "m", "jpeg", 4)),
    ],
)
def test_what_a_run_leaves_warm(endpoint: Endpoint, batch: int, warm: Warm) -> None:
    assert warmed_by(PlannedRun(Cell(endpoint, batch, 8, 10, 1), 2).to_record()) == warm
    old = {"backend": "a", "payload": "fp32", "batch": 4}
    assert warmed_by(old) == ("a", "a", "fp32", 4), "as ledgers had it before"


def test_a_run_as_the_ledger_lists_it() -> None:
    asked = replace(B, codec="v2-grpc", space="clip", server="new")
    cell = Cell(
        asked, 4, 1, 10, 2.0, channels="shared", client="library", topology=Topology(4, 2), link="lan"
    )
    cell = replace(cell, queue_delay_us=5000, instances=2)
    assert PlannedRun(replace(cell, congestion="bbr", variant="shared/4w2h"), 2).to_record() == {
        "cell": "b-grpc/b4/c1/shared/4w2h",
        "endpoint": "b-grpc",
        "backend": "b",
        "protocol": "grpc",
        "payload": "fp32",
        "batch": 4,
        "load": "closed",
        "level": 1,
        "arrivals": "",
        "max_in_flight": 0,
        "queue_delay_us": 5000,
        "instances": 2,
        "requests": 10,
        "seconds": 2.0,
        "channels": "shared",
        "client": "library",
        "workers": 4,
        "hosts": 2,
        "link": "lan",
        "congestion": "bbr",
        "variant": "shared/4w2h",
        "profile": "",
        "think": "",
        "compression": "",
        "shared_memory": "",
        "batch_mix": "",
        "picture_mix": "",
        "replay": "",
        "together": "",
        "split": 0.0,
        "repeat": 2,
        "model": "m",
        "codec": "v2-grpc",
        "space": "clip",
        "server": "new",
    }
    assert PlannedRun(Cell(B, 4, 1, 10, 2.0), 1).to_record()["server"] == "b", (
        "its backend, where none is named"
    )


def test_open_load_is_named_by_its_rate_and_carried_by_as_many_users_as_may_be_in_flight() -> None:
    cells = at_rates([A, B], QUICK, (50, 12.5), arrivals="poisson", max_in_flight=40)
    assert [cell.name for cell in cells] == [
        "a-http/b1/r50", "a-http/b1/r12.5", "b-grpc/b1/r50", "b-grpc/b1/r12.5",
    ]  # fmt: skip
    assert {(cell.load, cell.arrivals, cell.users, cell.open) for cell in cells} == {
        ("open", "poisson", 40, True)
    }
    assert Cell(A, 1, 8, 1, 1).users == 8
    assert [cell.name for cell in at_rates([A], QUICK, (50,), (1, 8))] == ["a-http/b1/r50", "a-http/b8/r50"]


def outcome(run: PlannedRun, failed: int = 0, dropped: int = 0, answered: bool = True) -> Outcome:
    cell = {name: getattr(run.cell.endpoint, name) for name in ("backend", "protocol", "payload")}
    about = {"endpoint": run.cell.endpoint.name, "batch": run.cell.batch, "load": "closed", "level": 1}
    summary = Summary(
        **{**cell, **about, "cell": run.cell.name, "repeat": 1, "status": "done"},
        counts=RequestCounts(requests=10, failures=failed, images_per_s=53.3),
        sent=Arrivals(dropped=dropped),
        latency=Distribution(p50_ns=211_040_000, p95_ns=233_000_000) if answered else Distribution(),
        limit=Limit("server-compute", "the server took 98 % of the time", "Use a faster device."),
    )
    return Outcome(run, summary)


def test_time_left_follows_the_work_left() -> None:
    small, large = PlannedRun(Cell(A, 1, 1, 10, 0), 1), PlannedRun(Cell(A, 32, 1, 10, 1), 1)
    now = iter([5.0, 15.0, 30.0])
    pace = schedule.Pace([small, large], lambda: next(now))
    # the small one cost 30 for itself, 160 for its warm-up and 10 images; the other has 32 times as many
    assert schedule.costs_of([small.to_record(), large.to_record()]) == [200, 510]
    assert schedule.costs_of([small.to_record() | {"requests": None}] * 2) == [190, 30]
    # a rate takes the time of its seconds, or of its requests
    paced = small.to_record() | {"load": "open", "level": 2, "seconds": 20.0}
    assert schedule.costs_of([paced, paced | {"requests": 100}]) == [190 + 260, 30 + 650]
    line = pace.line(outcome(small))
    assert line.endswith(f"  {schedule.remaining(10 * 510 / 200)} left")
    assert line.startswith("[1/2] a-http/b1/c1    53.3 img/s"), "as wide as the longest name"
    assert pace.line(outcome(large)).startswith("[2/2]")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.6, "1m00s"), (185, "3m05s"), (3599, "59m59s"), (3600, "1h00m"), (7800, "2h10m")],
)
def test_the_time_that_remains(seconds: float, text: str) -> None:
    assert schedule.remaining(seconds) == text


def test_progress_lines() -> None:
    run = PlannedRun(Cell(A, 4, 1, 10, 1), 1)
    assert schedule.line(3, 20, outcome(run), 130) == (
        "[ 3/20] a-http/b4/c1               53.3 img/s  p50   211  p95   233 ms  server-compute  2m10s left"
    )
    assert schedule.line(20, 20, outcome(run, failed=10, answered=False), 0) == (
        "[20/20] a-http/b4/c1              no successful request  10 FAILED  server-compute"
    )
    assert schedule.line(20, 20, Outcome(run, None), 0).endswith("/b4/c1              no successful request")
    (rate,) = at_rates([A], QUICK, (50,), arrivals="constant", max_in_flight=8)
    assert schedule.line(3, 0, outcome(PlannedRun(rate, 1), dropped=7), 0) == (
        "[  3] a-http/b1/r50              53.3 img/s  p50   211  p95   233 ms  7 DROPPED  server-compute"
    )


def test_a_terminal_gets_faults_in_red_the_bottleneck_in_yellow_and_the_time_left_dim() -> None:
    run = PlannedRun(Cell(A, 4, 1, 10, 1), 1)
    shown = schedule.painted(schedule.line(3, 20, outcome(run, failed=4), 130))
    assert shown.endswith("\x1b[31m4 FAILED\x1b[0m  \x1b[33mserver-compute\x1b[0m  \x1b[2m2m10s left\x1b[0m")
    assert schedule.painted("servers: starting onnx...") == "servers: starting onnx..."


@pytest.mark.parametrize("end", ["", "  2m10s left"])
@pytest.mark.parametrize(
    ("code", "yellow"),
    [
        *((code, True) for code in ("link", "connections", "throttled", "cpu-stolen", "rate-limited")),
        *((code, True) for code in ("nagle", "server-preprocess", "client-ports", "inconclusive")),
        *((code, False) for code in ("offered-load", "batches-not-full")),
    ],
)
def test_every_bottleneck_is_yellow_but_not_room(code: str, yellow: bool, end: str) -> None:
    shown = schedule.painted(f"[ 3/20] a-http/b4/c1  53.3 img/s  p50   211  p95   233 ms  {code}{end}")
    assert (f"  \x1b[33m{code}\x1b[0m" in shown) == yellow
    assert shown.count("\x1b[33m") == yellow


def test_a_profile_makes_cells_as_long_and_as_many() -> None:
    size = Size((1,), (), 30, 5, profile="ramp:20,hold:40,cool:20")
    (cell,) = at_rates([A], size, (6,), arrivals="constant", max_in_flight=100)
    assert (cell.name, cell.profile) == ("a-http/b1/r6/profile", size.profile)
    # 0.6 to 6 in 20 s, 40 s of 6, 20 s of 0.6
    assert (cell.requests, cell.seconds) == (66 + 240 + 12, 80)
    record = PlannedRun(cell, 1).to_record()
    assert record["stages"] == [
        ["ramp", 20.0, pytest.approx(0.6), 6],
        ["hold", 40.0, 6, 6],
        ["cool-down", 20.0, pytest.approx(0.6), pytest.approx(0.6)],
    ]
    assert at_rates([A], size, (0.5,), max_in_flight=100)[0].level == 0.5
    with pytest.raises(
        UsageError, match=r"--rates 0\.4: with a load profile, the rate must be at least 0.5 requests/s"
    ):
        at_rates([A], size, (0.4,), arrivals="constant", max_in_flight=100)
