"""The ledgers by which sizes are measured are ledgers: they fold to the numbers that were written."""

from pathlib import Path

import pytest

from benchmarks.long_ledger import PER_SECOND, planned, write_study
from benchmarks.sizes import shapes
from reports.study.study import load_study


def test_a_study_that_was_made_up_has_the_runs_that_were_asked_for(tmp_path: Path) -> None:
    plan = [planned("onnx-grpc", 4, level) for level in (1, 8)]
    write_study(tmp_path, plan, seconds=3, workers=2)
    study = load_study(tmp_path)
    assert (study.status, study.cut_line, study.coarse) == ("complete", False, 1)
    assert [(run.cell, run.status, run.workers) for run in study.runs] == [
        ("onnx-grpc/b4/c1", "done", 2),
        ("onnx-grpc/b4/c8", "done", 2),
    ]
    first, _ = study.runs
    assert (first.counts.requests, first.counts.images) == (6 * PER_SECOND, 24 * PER_SECOND)
    assert first.counts.requests_per_s == pytest.approx(2 * PER_SECOND)
    assert first.latency.p50_ns == pytest.approx(20e6, rel=0.1)
    assert [doubt.code for doubt in first.caveats if doubt.tainted] == []
    assert len(study.timeline) == 2 * (5 + 3)


def test_the_shapes_are_a_full_study_a_thousand_cells_a_thousand_workers_and_a_day() -> None:
    full, many, wide, day = shapes()
    assert (len(full.plan), full.seconds, full.workers, full.bound_s) == (105, 15, 2, 5)
    assert (len({run["cell"] for run in many.plan}), len(many.plan)) == (1_000, 1_000)
    assert (len(wide.plan), wide.seconds, wide.workers) == (1, 300, 1_000)
    assert (len(day.plan), day.seconds, day.workers) == (1, 24 * 3_600, 4)
