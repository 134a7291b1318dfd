"""The machine that benchmarks/simulating/baselines.py simulates: what its noise does, and how gates judge."""

import numpy as np
import pytest

from benchmarks.simulating.baselines import (
    EARLIER,
    GATES,
    IN_TURNS,
    REPEATING,
    Machine,
    Session,
    judged,
    pool_ms,
    source,
    verdicts,
)
from benchmarks.simulating.truths import Law
from reports.gates.compared import APART
from reports.gates.verdict import FAIL, PASS

STILL = Machine(Law(request=0.0), walk=0.0, slope=0.0)
SMALL = Session(turns=4, cells=3)
SLOW = {IN_TURNS.names[0]: 1.15}


def p95s_ms(machine: Machine, session: Session, count: int = 1) -> np.ndarray:
    return machine.p95s_ms(session, count, np.random.default_rng(1))


def test_p95_is_that_of_the_requests() -> None:
    assert p95s_ms(STILL, SMALL, 2) == pytest.approx(np.full((2, 4, 2, 3), 30.0))
    assert np.log(pool_ms(Law(per_s=300)) / 30).mean() == pytest.approx(0.25 * 1.645, abs=0.005)


def test_turns_share_a_drift_that_studies_apart_do_not() -> None:
    machine = Machine(STILL.law, walk=0.0, slope=0.1)
    together, apart = (
        np.log(p95s_ms(machine, Session(turns=4, cells=3, in_turns=way), 200)) for way in (True, False)
    )
    differences = [np.abs(logs[:, :, 1] - logs[:, :, 0]).mean() for logs in (together, apart)]
    assert differences[1] / differences[0] == pytest.approx(SMALL.turns)


def test_gates_judge_it_as_they_judge_studies() -> None:
    found = verdicts(p95s_ms(STILL, IN_TURNS)[0], IN_TURNS, GATES, SLOW)
    ratios = [verdict for verdict in found if verdict.ratio]
    assert [verdict.cell for verdict in ratios] == IN_TURNS.names
    assert [verdict.outcome for verdict in ratios] == [FAIL, *[PASS] * 9]
    assert ratios[0].value == pytest.approx(1.15)
    assert "not measured in turns" not in ratios[0].note
    assert [verdict.outcome for verdict in found if not verdict.ratio] == [PASS] * 10


def test_a_baseline_of_studies_made_before_is_judged_as_such() -> None:
    (session,) = p95s_ms(STILL, EARLIER)
    assert session.shape == (3, 6, 10)
    found = [one for one in verdicts(session, EARLIER, GATES, SLOW) if one.ratio]
    assert [verdict.outcome for verdict in found] == [FAIL, *[PASS] * 9]
    assert {(verdict.runs, verdict.note) for verdict in found} == {(1, APART)}


def test_shares_are_in_percent_of_comparisons_and_of_cells() -> None:
    found = judged(p95s_ms(STILL, IN_TURNS, 2), IN_TURNS, GATES, SLOW)
    assert (found.alarmed, found.passed, found.inconclusive, found.caught) == (100, 90, 0, 100)


def test_simulated_studies_have_their_repeats_and_what_they_were_told() -> None:
    (side,) = source(np.array([[[30.0], [33.0], [27.0]]]), ["onnx-http/b1/c1"], [0], REPEATING).sides
    assert side.header["options"] == {"repeats": 3, "repeat_until_decided": 10}
    assert [row.numbers["repeat"] for row in side.rows] == [1, 2, 3]
    assert [row.numbers["latency_p95_ms"] for row in side.rows] == pytest.approx([30, 33, 27])
