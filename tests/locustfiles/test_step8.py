"""Step 8 from the console, on a stand-in service and a stand-in Kubernetes that goes from 2 replicas to 4."""

import sys
from pathlib import Path

import pytest

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import LOCUST, Console, few_pictures
from tests.processes import free_port, is_listening, wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow]
FAKE = str(Path(__file__).parent.parent / "fake_kubernetes.py")


def step8(folder: Path, *arguments: str) -> Console:
    """A headless study."""
    options = ("--headless", "--results-dir", str(folder), *few_pictures(), *arguments)
    return Console([*LOCUST[:-1], "locustfiles/step8.py", *options], folder)


def test_a_load_that_is_scaled_for(start_service: StartService, tmp_path: Path) -> None:
    service, api = start_service("--delay-ms", "40"), free_port()
    folder = tmp_path / "api"
    folder.mkdir()
    options = ("--service", f"127.0.0.1:{service}", "--at", "80:4", "--lag-s", "1")
    Console([sys.executable, FAKE, str(api), *options], folder)
    wait_until(lambda: is_listening(api), 20)
    target = ("--pytorch-url", f"127.0.0.1:{service}", "--kube-url", f"http://127.0.0.1:{api}")

    refused = step8(tmp_path / "api", *target, "--kube-deployment", "other")
    assert refused.wait(60) == 2
    assert "--kube-deployment other: namespace inferswarm-server has no such deployment" in refused.text

    load = ("--rates", "20", "--load-profile", "ramp:2,hold:5,cool:2", "--warm-up", "1")
    results = tmp_path / "results"
    results.mkdir()
    console = step8(results, *target, *load)
    assert console.wait(90) == 0, console.text
    (row,) = console.cells()
    assert (row["cell"], row["channels"]) == ("pytorch-http/b1/r20/profile", "per-request")
    # 2 to 20 a second in 2 s, 20 for 5 s, 2 for 2 s
    assert int(row["requests"]) == 126
    assert "varying-load" in row["caveats"].split(";")
    assert not {"rate-missed", "counts-mismatch", "failures"} & set(row["caveats"].split(";"))
    samples = [r for r in console.ledger() if r["kind"] == "sample" and r["phase"] == "measure"]
    ready = [sample["ready_replicas"] for sample in samples]
    assert (ready[0], ready[-1], set(ready)) == (2, 4, {2, 4})
    report = (console.result() / "summary.md").read_text(encoding="utf-8")
    stages = [line for line in report.splitlines() if line.startswith("| pytorch-http/b1/r20/profile")]
    by_stage = {cells[2].strip(): cells for line in stages if len(cells := line.split("|")) > 10}
    assert [by_stage[name][4].strip() for name in ("ramp", "hold", "cool-down")] == ["2 to 20", "20", "2"]
    assert by_stage["hold"][10].strip() == "2 to 4"
    assert "from 2 to 4 ready replicas" in report
