"""The machine that benchmarks/gates.py simulates: what its noise does, and that gates judge its studies."""

import numpy as np
import pytest

from benchmarks.gates import APART, CELLS, GATES, ONE_CELL, REPEATING, SESSION, verdicts
from benchmarks.noise import Noise, Session, p95s
from benchmarks.simulated import simulated
from reports.gates.compared import APART as STUDIES_APART
from reports.gates.verdict import FAIL, PASS

STILL = Noise(request=0.0, second=0.0, run=0.0, walk=0.0, slope=0.0)
SMALL = Session(turns=4, cells=3, seconds=6, per_second=50)


def test_without_noise_every_run_is_alike() -> None:
    assert np.array_equal(p95s(STILL, SMALL, 2, seed=1), np.ones((2, 4, 2, 3), np.float32))


def test_the_same_seed_is_the_same_machine() -> None:
    assert np.array_equal(p95s(Noise(), SMALL, 30, seed=1), p95s(Noise(), SMALL, 30, seed=1))
    assert not np.array_equal(p95s(Noise(), SMALL, 30, seed=1), p95s(Noise(), SMALL, 30, seed=2))


def test_p95_is_that_of_the_requests() -> None:
    noise = Noise(request=0.25, second=0.0, run=0.0, walk=0.0, slope=0.0)
    logs = np.log(p95s(noise, Session(turns=4, cells=3, per_second=1_000), 30, seed=1))
    assert logs.mean() == pytest.approx(0.25 * 1.645, abs=0.005)


def test_turns_share_a_drift_that_studies_apart_do_not() -> None:
    noise = Noise(request=0.0, second=0.0, run=0.0, walk=0.0, slope=0.1)
    together, apart = (np.log(p95s(noise, SMALL, 200, 1, in_turns=way)) for way in (True, False))
    differences = [np.abs(logs[:, :, 1] - logs[:, :, 0]).mean() for logs in (together, apart)]
    assert differences[1] / differences[0] == pytest.approx(SMALL.turns)


def test_gates_judge_it_as_they_judge_studies() -> None:
    (session,) = p95s(STILL, SESSION, 1, seed=1)
    found = verdicts(session, GATES, {CELLS[0]: 1.15}, in_turns=True)
    ratios = [verdict for verdict in found if verdict.ratio]
    assert [verdict.cell for verdict in ratios] == CELLS
    assert [verdict.outcome for verdict in ratios] == [FAIL, *[PASS] * 9]
    assert ratios[0].value == pytest.approx(1.15)
    assert "not measured in turns" not in ratios[0].note
    assert [verdict.outcome for verdict in found if not verdict.ratio] == [PASS] * 10


def test_a_baseline_of_studies_made_before_is_judged_as_such() -> None:
    (session,) = p95s(STILL, APART, 1, seed=1, in_turns=False)
    assert session.shape == (3, 6, 10)
    found = [one for one in verdicts(session, GATES, {CELLS[0]: 1.15}, in_turns=False) if one.ratio]
    assert [verdict.outcome for verdict in found] == [FAIL, *[PASS] * 9]
    assert {(verdict.runs, verdict.note) for verdict in found} == {(1, STUDIES_APART)}


def test_simulated_studies_have_their_repeats_and_what_they_were_told() -> None:
    values = np.array([[[1.0], [1.1], [0.9]]], np.float32)
    (side,) = simulated(values, ONE_CELL, [0], {}, REPEATING).sides
    assert side.header["options"] == {"repeats": 3, "repeat_until_decided": 10}
    assert [row.numbers["repeat"] for row in side.rows] == [1, 2, 3]
    assert [row.numbers["latency_p95_ms"] for row in side.rows] == pytest.approx([30, 33, 27])
