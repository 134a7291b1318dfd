"""The studies that benchmarks/simulating/gates.py judges: what they hold, and that gates judge them."""

import numpy as np
import pytest

from benchmarks.simulating.gates import CELL, TRUTHS, Stalling, allowed, judged, outcomes, source
from benchmarks.simulating.truths import LOGNORMAL, NS_PER_MS, Run
from reports.stats.shares import LEVEL


def test_what_chance_may_add_gets_less_with_more_studies() -> None:
    assert allowed(10**9) == pytest.approx(100 * LEVEL, rel=1e-3)
    assert allowed(200) == pytest.approx(4.71, abs=0.01)


def test_a_study_is_read_as_its_runs_are() -> None:
    run = Run([np.full(100, 10 * NS_PER_MS)] * 30, [1] * 30)
    study = source([run, run, run])
    assert [taken.row.numbers["requests"] for taken in study.runs[CELL]] == [3_030] * 3
    assert (judged(study, 50, 11 * NS_PER_MS), judged(study, 50, 9 * NS_PER_MS)) == ("pass", "fail")
    assert judged(study, 99, 20 * NS_PER_MS) == "inconclusive"
    assert judged(source([run]), 50, 11 * NS_PER_MS) == "inconclusive"


def test_stalls_are_of_whole_seconds_and_beyond_the_bound() -> None:
    law, random = Stalling(LOGNORMAL, one_of=4), np.random.default_rng(1)
    (run,) = law.draws(1, 200, random)
    bad = [bool((second > law.percentile_ns(99)).all()) for second in run.seconds]
    assert [bool((second > law.percentile_ns(99)).any()) for second in run.seconds] == bad
    assert 30 < sum(bad) < 70


def test_outcomes_are_counted_for_each_percentile() -> None:
    found = outcomes(TRUTHS["lognormal"], 3, 10, 2, np.random.default_rng(1), times=2.0)
    assert {percent: dict(told) for percent, told in found.items()} == {
        50: {"pass": 2},
        95: {"inconclusive": 2},
        99: {"inconclusive": 2},
    }
