"""What is said of repeats that differ, and how seldom it is said of those that do not."""

from dataclasses import replace
from math import log
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from reports.caveats.client import taken_by_others
from reports.caveats.repeats import RepeatLevel, compare_repeats, levels_differ
from reports.fold.samples import OthersUse
from reports.fold.windows import Results
from reports.histogram.codec import decoded, encoded_ns
from reports.limits.rules import limit_of
from reports.summary.blocks import RunBlocks
from reports.summary.summary import Summary, codes
from tests.reports.limit_runs import HEALTHY, at_server

MS = 1_000_000
NOISE = np.random.default_rng(7).normal(size=(2_000, 3, 12))


def blocks(ms: float, seconds: int = 10) -> RunBlocks:
    """Seconds whose mean latency is now above and now below this by 4 %."""
    made = RunBlocks()
    for at in range(seconds):
        found = Results(ok=20, histograms={})
        found.histograms["latency"] = decoded(encoded_ns([round(ms * (0.96, 1.04)[at % 2] * MS)] * 20)[0])
        made.merge(at, found)
    return made


def compared(*each_ms: float, seconds: int = 10, **changes: object) -> list[str]:
    """The codes of each repeat of a cell by its mean latency."""
    runs = [replace(HEALTHY, repeat=number, **changes) for number, _ in enumerate(each_ms, 1)]
    made = {(run.cell, run.repeat): blocks(ms, seconds) for run, ms in zip(runs, each_ms, strict=True)}
    return [codes(run) for run in compare_repeats(runs, MappingProxyType(made))]


WARMING, DIFFER = "warming-up", "repeats-differ"


@pytest.mark.parametrize(
    ("each_ms", "said"),
    [
        ((41.5, 11.1, 11.0), [WARMING, "", ""]),
        ((41.5, 11.1, 11.0, 11.2, 11.3), [WARMING, "", "", "", ""]),
        # a quarter
        ((12.4, 10, 10), ["", "", ""]),
        ((12.7, 10, 10), [WARMING, "", ""]),
        # the first was faster, or another one is the odd one
        ((10, 20, 20), [DIFFER] * 3),
        ((10, 20, 10), [DIFFER] * 3),
        # the others do not agree, or differ by more than the first does from them
        ((40, 20, 10), [DIFFER] * 3),
        ((30, 20, 17), [WARMING, "", ""]),
        # nobody can tell which of two is right
        ((84, 255), [DIFFER] * 2),
        ((255, 84), [DIFFER] * 2),
        ((10,), [""]),
    ],
)
def test_repeats_that_differ(each_ms: tuple[float, ...], said: list[str]) -> None:
    assert compared(*each_ms) == said


def test_what_is_not_compared() -> None:
    assert compared(41.5, 11, 11, seconds=5) == [WARMING, "", ""]
    assert compared(41.5, 11, 11, seconds=4) == ["", "", ""], "too few seconds to know how they vary"
    for changes in ({"load": "open"}, {"status": "aborted"}, {"profile": "ramp"}):
        assert compared(41.5, 11, 11, **changes) == ["", "", ""]


def test_a_repeat_that_is_invalidated_already_is_left_out() -> None:
    runs = [replace(HEALTHY, repeat=number) for number in (1, 2, 3)]
    made = {(run.cell, run.repeat): blocks(ms) for run, ms in zip(runs, (41.5, 11, 11), strict=True)}
    (first, *_) = compare_repeats(runs, MappingProxyType(made))
    assert first.tainted
    assert [codes(run) for run in compare_repeats([first, *runs[1:]], MappingProxyType(made))] == [
        WARMING,
        "",
        "",
    ]


def levels(noise: np.ndarray, *medians_ms: float) -> list[RepeatLevel]:
    run: Summary = HEALTHY
    return [RepeatLevel(run, log(ms) + each) for each, ms in zip(noise, medians_ms, strict=True)]


@pytest.mark.parametrize(("correlation", "spread"), [(0.0, 0.4), (0.5, 0.2), (0.85, 0.1), (0.85, 0.4)])
def test_alike_repeats_are_hardly_ever_called_different(correlation: float, spread: float) -> None:
    """Of repeats whose seconds vary by so much, in fewer than 1 % of 2,000 studies."""
    series = NOISE.copy()
    for at in range(1, series.shape[-1]):
        series[..., at] = correlation * series[..., at - 1] + np.sqrt(1 - correlation**2) * series[..., at]
    assert sum(levels_differ(levels(spread * each, 10, 10, 10)) for each in series) < 20


def test_repeats_that_differ_by_twice_are_found_through_noise() -> None:
    found = [levels_differ(levels(0.1 * each, 10, 20, 10)) for each in NOISE]
    assert sum(found) > 0.99 * len(found)


def beside(cores: float) -> dict[str, Any]:
    taken = OthersUse(cores, (("yes", cores),))
    run = replace(HEALTHY, others_cpu=taken, host_cpu_pct=99.0, host_cores=2)
    return {"others_cpu": taken, "caveats": tuple(taken_by_others(run))}


def test_repeats_beside_other_processes_are_left_out_where_the_rest_agree() -> None:
    def judged(*repeats: tuple[float, float]) -> list[str]:
        runs = [replace(HEALTHY, repeat=at, **beside(cores)) for at, (_, cores) in enumerate(repeats, 1)]
        made = {(run.cell, run.repeat): blocks(ms) for run, (ms, _) in zip(runs, repeats, strict=True)}
        return [codes(run) for run in compare_repeats(runs, MappingProxyType(made))]

    loud = "disturbed"
    assert judged((84, 0), (255, 1.5), (84, 0), (250, 1.4)) == ["", loud, "", loud]
    assert judged((84, 0), (255, 1.5)) == ["", loud], "of two it is known which one was disturbed"
    assert judged((255, 1.5), (84, 1.5)) == [f"others-cpu, {DIFFER}"] * 2, "others took as much of both"
    assert judged((84, 0.2), (255, 0.5), (84, 0.24)) == ["", loud, ""]
    assert judged((255, 0), (84, 1.5)) == [DIFFER, f"others-cpu, {DIFFER}"], "they made nothing faster"
    assert judged((84, 0), (86, 1.5)) == ["", "others-cpu"], "they did not matter"
    assert judged((10, 0), (84, 0), (255, 1.5)) == [DIFFER, DIFFER, f"others-cpu, {DIFFER}"]


@pytest.mark.parametrize(
    ("others", "busy_pct", "cores", "said"),
    [
        *((0.25, 90.0, 2, True), (0.24, 90.0, 2, False), (0.25, 89.9, 2, False), (1.5, 99.0, None, True)),
        *((6.4, 99.0, 64, True), (6.3, 99.0, 64, False)),
    ],
)
def test_what_others_take_of_a_full_host(
    others: float, busy_pct: float, cores: int | None, said: bool
) -> None:
    taken = OthersUse(others, (("yes", others), ("few", 0.01)))
    run = replace(HEALTHY, others_cpu=taken, host_cpu_pct=busy_pct, host_cores=cores)
    found = list(taken_by_others(run))
    assert [one.code for one in found] == ["others-cpu"] * said
    assert all("yes" in one.text and "few" not in one.text for one in found)


def test_the_servers_compute_is_not_named_where_others_had_its_cores() -> None:
    run = at_server(0.1, 90, 100, server_busy=0.95, host_cores=2, host_cpu_pct=99.0, **beside(1.5))
    busy = replace(run, facts=replace(run.facts, computes=True))
    assert [limit.code for limit in (limit_of(busy), limit_of(replace(busy, local=False))) if limit] == [
        "inconclusive",
        "server-compute",
    ]
