"""Cells that run at the same time: what options make of them, their names and order, and what is refused."""

from dataclasses import replace

import pytest

from locustfiles.study import Study
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo
from swarm.output.gate import Gate
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.estimate import estimate_s, in_words
from swarm.plan.matrix import Size, meant, one_repeat, order, taken
from swarm.plan.schedule import costs_of
from swarm.plan.together import split, together
from swarm.study.build_schedule import schedule_of
from tests.swarm.output.test_results_folder import options
from users.endpoint import Endpoint

SIGLIP, CLIP, DINO = (
    Endpoint(name, "onnx", "http", "fp32", "h:1", name) for name in ("siglip", "clip-text", "dino")
)
EVERY = (SIGLIP, CLIP, DINO)
SIZE = Size((1,), (1,), 40, 5.0)
PAIR, TRIPLE = "siglip@r50+clip-text@c8", "dino@b4/r5+siglip@r50+clip-text@c8"


def planned(*given: str, endpoints: tuple[Endpoint, ...] = EVERY) -> list[PlannedRun]:
    schedule, _ = schedule_of(Study(), endpoints, options(*given), LaunchInfo(), Gate(print))
    return list(schedule.planned)


def test_each_load_is_measured_alone_once_and_with_those_of_its_group() -> None:
    cells = together(EVERY, f"{PAIR},{TRIPLE}", SIZE)
    assert [(cell.name, cell.together) for cell in cells] == [
        ("siglip/b1/r50", ""),
        ("clip-text/b1/c8", ""),
        ("dino/b4/r5", ""),
        ("siglip/b1/r50/with-clip-text-c8", PAIR),
        ("clip-text/b1/c8/with-siglip-r50", PAIR),
        ("dino/b4/r5/with-siglip-r50+clip-text-c8", TRIPLE),
        ("siglip/b1/r50/with-dino-b4-r5+clip-text-c8", TRIPLE),
        ("clip-text/b1/c8/with-dino-b4-r5+siglip-r50", TRIPLE),
    ]
    assert {(cell.requests, cell.seconds, cell.split) for cell in cells} == {(40, 5.0, 0.0)}
    assert [(cell.load, cell.level, cell.batch) for cell in cells[:3]] == [
        ("open", 50, 1), ("closed", 8, 1), ("open", 5, 4),
    ]  # fmt: skip


def test_a_group_that_is_given_twice_in_whichever_order_is_one() -> None:
    twice = together(EVERY, f"{PAIR},clip-text@b1/c8 + siglip@r50.0", SIZE)
    assert twice == together(EVERY, PAIR, SIZE)


def test_a_schedule_is_split_by_shares_of_its_rate_and_of_its_requests() -> None:
    cells = split(EVERY, "siglip:0.9,dino:0.1", SIZE, [50], [1, 4])
    assert [(cell.name, cell.together, cell.split, cell.level, cell.requests) for cell in cells] == [
        ("siglip/b1/r45/split-0.9", "split siglip:0.9,dino:0.1 r50", 0.9, 45, 36),
        ("dino/b1/r5/split-0.1", "split siglip:0.9,dino:0.1 r50", 0.1, 5, 4),
        ("siglip/b4/r45/split-0.9", "split siglip:0.9,dino:0.1 b4/r50", 0.9, 45, 36),
        ("dino/b4/r5/split-0.1", "split siglip:0.9,dino:0.1 b4/r50", 0.1, 5, 4),
    ]
    assert {(cell.load, cell.seconds) for cell in cells} == {("open", 5.0)}


def test_groups_stand_together_in_their_order_among_cells_in_an_order_of_chance() -> None:
    cells = together(EVERY, f"{PAIR},{TRIPLE}", SIZE)
    groups = {text: [cell for cell in cells if cell.together == text] for text in (PAIR, TRIPLE)}
    begins = set()
    for repeat in range(1, 13):
        runs = one_repeat(cells, repeat, 7)
        assert {run.repeat for run in runs} == {repeat}
        assert sorted(run.cell.name for run in runs) == sorted(cell.name for cell in cells)
        for text, group in groups.items():
            at = next(place for place, run in enumerate(runs) if run.cell.together == text)
            assert [run.cell for run in runs[at : at + len(group)]] == group
            begins.add((text, at))
    assert len(begins) > 6


def test_a_group_whose_server_is_set_stands_among_those_that_set_it_alike() -> None:
    onnx = replace(SIGLIP, name="onnx-http")
    cells = [
        Cell(onnx, 1, level, 10, 1, queue_delay_us=delay, together=text)
        for delay in (0, 500)
        for level, text in ((1, ""), (2, ""), (4, f"a{delay}"), (8, f"a{delay}"))
    ]
    for repeat in range(1, 9):
        delays = [run.cell.queue_delay_us for run in one_repeat(cells, repeat, 3)]
        assert delays in ([0] * 4 + [500] * 4, [500] * 4 + [0] * 4)


def test_a_pattern_that_means_one_of_a_group_means_all_of_it() -> None:
    cells = together(EVERY, f"{PAIR},{TRIPLE}", SIZE)
    names = [cell.name for cell in meant(cells, "siglip/*/with-clip-text-c8")]
    assert names == ["siglip/b1/r50/with-clip-text-c8", "clip-text/b1/c8/with-siglip-r50"]
    assert [cell.name for cell in meant(cells, "dino/b4/r5")] == ["dino/b4/r5"]


def test_a_group_takes_as_long_as_its_longest() -> None:
    runs = order(together(EVERY, PAIR, Size((1,), (1,), 1_000, 5.0)), 1, 7)
    # alone 1,000 requests at 50/s take 20 s, and the users 5 s; together 20 s
    assert estimate_s(runs, 12) == 2 * 12 + 20 + 5 + 20
    costs = {
        run.cell.name: cost
        for run, cost in zip(runs, costs_of([run.to_record() for run in runs]), strict=True)
    }
    assert sorted(costs.values()) == [0, 450, 1_030, 1_190]
    assert (
        in_words(order(split(EVERY, "siglip:0.9,dino:0.1", SIZE, [8], [1]), 1, 0), 12) == "2 runs, about 20 s"
    )


def test_options_make_the_plan_of_a_study() -> None:
    runs = planned("--together", PAIR, "--repeats", "2", "--arrivals", "poisson", "--cells", "*/with-*")
    assert [(run.cell.name, run.repeat, run.cell.arrivals) for run in runs] == [
        (name, repeat, arrivals)
        for repeat in (1, 2)
        for name, arrivals in (
            ("siglip/b1/r50/with-clip-text-c8", "poisson"), ("clip-text/b1/c8/with-siglip-r50", ""),
        )
    ]  # fmt: skip
    by_rate = planned("--split", "siglip:0.5,dino:0.5", "--rates", "50", "--repeats", "1")
    assert [run.cell.name for run in by_rate] == ["siglip/b1/r25/split-0.5", "dino/b1/r25/split-0.5"]


GIVE = "give NAME@rN, requests/s, or NAME@cN, users, joined by +, e.g. siglip@r50+clip-text@c8"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        *(
            (["--together", text], f"--together {text}: {GIVE}")
            for text in ("siglip", "siglip@r0+dino@c1", "siglip@50+dino@c1", "siglip@c1.5+dino@c1", "a@r1+")
        ),
        (["--together", "siglip@c1"], f"--together siglip@c1: give 2 to 4 endpoints, e.g. {PAIR}"),
        (
            ["--together", "siglip@c1+siglip@c2"],
            "--together siglip@c1+siglip@c2: name each endpoint once",
        ),
        (
            ["--together", "siglip@r50+clip-tex@c8"],
            "--together clip-tex@c8: this study has no endpoint clip-tex; closest: clip-text; there are"
            " siglip, clip-text, dino",
        ),
        *(
            (["--together", PAIR, *more], f"--together: sets the load itself; leave out {more[0]}")
            for more in (
                ["--rates", "5"], ["--levels", "1"], ["--batches", "2"], ["--floor"],
                ["--find-rate", "p95<=9"], ["--batch-mix", "1:0.5,4:0.5"],
            )
        ),
        (
            ["--together", PAIR, "--split", "a:0.5,b:0.5", "--rates", "5"],
            "--together: sets the load itself; leave out --split",
        ),
        (
            ["--together", PAIR, "--channels", "shared,pool:2"],
            "--channels: cells of --together run at the same time; give one value",
        ),
        (
            ["--split", "siglip:0.9,dino:0.1", "--rates", "5", "--levels", "8"],
            "--split: sets the load itself; leave out --levels",
        ),
        (
            ["--split", "siglip:0.9,dino:0.1"],
            "--split: applies only to open-loop load; also give --rates",
        ),
        (
            ["--split", "siglip:0.9,old:0.1", "--rates", "5"],
            "--split siglip:0.9,old:0.1: this study has no endpoint old; there are siglip, clip-text, dino",
        ),
        (
            ["--split", "siglip:1", "--rates", "5"],
            "--split siglip:1: give 2 to 4 endpoints, e.g. old:0.9,new:0.1",
        ),
        (
            ["--split", "siglip:0.9,dino:0.2", "--rates", "5"],
            "--split siglip:0.9,dino:0.2: give the shares of all requests, which add up to 1, e.g."
            " old:0.9,new:0.1; these add up to 1.1",
        ),
        (
            ["--split", "siglip:0.998,dino:0.002", "--rates", "50,5"],
            "--split siglip:0.998,dino:0.002: dino gets 0.01 of 5 requests/s, and must get at least 0.05;"
            " give it a larger share, or a higher rate",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_run_together_is_refused_with_a_sentence(given: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        planned(*given)
    assert str(refused.value) == sentence


def test_a_batch_that_an_endpoint_does_not_take_is_refused_and_no_group_is_cut() -> None:
    one = replace(DINO, contract=replace(DINO.contract, max_batch=1))
    few = (SIGLIP, CLIP, one)
    with pytest.raises(UsageError) as refused:
        planned("--together", TRIPLE, endpoints=few)
    assert str(refused.value) == (
        "--together dino@b4/r5: dino takes at most 1 item per request; give a batch up to 1"
    )
    with pytest.raises(UsageError) as refused:
        planned("--split", "siglip:0.5,dino:0.5", "--rates", "5", "--batches", "2", endpoints=few)
    assert str(refused.value) == (
        "--split siglip:0.5,dino:0.5: dino takes at most 1 item per request; give a batch up to 1"
    )
    mixed = [
        replace(cell, batch=4) if cell.together else cell for cell in together(few, "siglip@c1+dino@c1", SIZE)
    ]
    with pytest.raises(UsageError, match="dino takes at most 1 item"):
        taken(mixed, ())
