"""Step 6B sets the number of instances, and a sweep the queue delay, of a real tritonserver."""

import locust  # noqa: F401  (first: it patches sockets and threads)

from pathlib import Path
from typing import Any

import pytest

from locustfiles.step6b import Step6b
from tests.locustfiles.console import LOCUST, ONCE, SHORT, Console, few_pictures
from users.endpoint import Endpoint

TRITON = Endpoint("onnx-http", "onnx", "http", "fp32", "h:8010", "clip")


@pytest.mark.parametrize(("size", "count"), [("quick", 7 + 2), ("full", 3 * 7)])
def test_its_cells(size: str, count: int) -> None:
    cells = Step6b().cells([TRITON], Step6b.sizes[size])
    assert len({cell.name for cell in cells}) == len(cells) == count
    assert {cell.level for cell in cells if cell.instances == 1} == {1, 4, 8, 16, 32, 64, 128}
    assert {cell.instances for cell in cells if cell.level == 32} == {1, 2, 4}
    assert {cell.batch for cell in cells} == {1}


@pytest.mark.system
def test_tritons_statistics_count_other_batches_with_another_queue_delay(tmp_path: Path) -> None:
    # Of four users' requests the first goes alone without a delay, and with one waits for the others.
    command = [LOCUST[0], "-f", "locustfiles/step6b.py", "--headless", "--results-dir", str(tmp_path)]
    sweep = ("--queue-delay-us", "0,100000", "--cells", "*/c4/1-instance/*", "--emulate", "5+0")
    console = Console([*command, *sweep, *SHORT, *ONCE, *few_pictures()], tmp_path)
    assert console.wait(60) in (0, 3), console.text  # 3 on a host too busy to carry the load
    records = console.ledger()
    delays = {r["cell"]: r["batching_delay_ns"] for r in records if r["kind"] == "serving"}
    names = [f"emulated-http/b1/c4/1-instance/delay-{delay}ms" for delay in (0, 100)]
    assert delays == dict(zip(names, (0, 100_000_000), strict=True))
    alone, together = (executed_batch(records, name) for name in names)
    assert together == pytest.approx(4, abs=0.2)
    assert alone < 3.5
    summary = (console.result() / "summary.md").read_text()
    for heading in ("### Queue delay", "### Best queue delay", "### Beside step 6B: users"):
        assert heading in summary


def executed_batch(records: list[dict[str, Any]], cell: str) -> float:
    """Images in an execution over the measure phase, by Triton's own count."""
    before, after = (r["counters"] for r in records if r["kind"] == "server" and r["cell"] == cell)
    grown = {name: after[name] - before[name] for name in ("images", "executions")}
    return float(grown["images"] / grown["executions"])
