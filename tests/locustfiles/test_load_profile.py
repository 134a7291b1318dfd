"""Users whose number follows a course, and who think: two workers and a stand-in service."""

from pathlib import Path

import pytest

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import few_pictures, study

pytestmark = [pytest.mark.system, pytest.mark.slow]
COURSE = """
points = [[0, 0.25], [3, 0.25], [3, 1.0], [6, 1.0], [6, 0.5], [9, 0.5]]
stages = ["quiet", "rush", "calm"]
"""


def test_users_come_and_go_and_think(start_service: StartService, tmp_path: Path) -> None:
    """2, 8 and 4 users, each with an answer of 50 ms and 50 ms of thought: 20, 80 and 40 answers a second."""
    (tmp_path / "course.toml").write_text(COURSE)
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '50')}", "--processes", "2")
    load = ("--levels", "8", "--load-profile", str(tmp_path / "course.toml"), "--think", "0.05")
    console = study(tmp_path, *target, *load, *few_pictures(), "--warm-up", "1")
    assert console.wait(60) == 0, console.text
    (row,) = console.cells()
    assert (row["cell"], row["load"], row["think"]) == ("pytorch-http/b1/c8/profile", "closed", "0.05")
    # 420 at most: an answer and a thought are never shorter
    assert 300 <= int(row["requests"]) <= 430
    assert float(row["requests_per_s"]) == pytest.approx(int(row["requests"]) / 9, rel=0.01)
    assert float(row["latency_p50_ms"]) == pytest.approx(52, rel=0.2), "nobody's thought is in it"
    caveats = set(row["caveats"].split(";"))
    assert "varying-load" in caveats
    assert not {"users-missing", "littles-law", "failures", "rate-missed", "counts-mismatch"} & caveats
    report = (console.result() / "summary.md").read_text(encoding="utf-8")
    lines = [
        line.split("|") for line in report.splitlines() if line.startswith("| pytorch-http/b1/c8/profile")
    ]
    stages = {cells[2].strip(): cells for cells in lines if len(cells) == 11}
    assert [stages[name][4].strip() for name in ("quiet", "rush", "calm")] == ["2", "8", "4"]
    served = {name: float(stages[name][5]) for name in ("quiet", "rush", "calm")}
    for name, users in (("quiet", 2), ("rush", 8), ("calm", 4)):
        assert 0.75 * 10 * users <= served[name] <= 1.1 * 10 * users, served
    assert "Load profile" in console.text


def test_users_who_think_are_no_idle_client(start_service: StartService, tmp_path: Path) -> None:
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '20')}", "--processes", "2")
    load = ("--levels", "6", "--cells", "*/c6/*", "--think", "0.2,exponential:0.2", "--seconds", "5")
    console = study(tmp_path, *target, *load, *few_pictures(), "--warm-up", "1")
    assert console.wait(60) == 0, console.text
    rows = {row["think"]: row for row in console.cells()}
    assert set(rows) == {"0.2", "exponential:0.2"}
    # 6 / 0.22: a rate over the phase alone would be off by up to a cycle in 23
    assert float(rows["0.2"]["requests_per_s"]) == pytest.approx(27.3, rel=0.06)
    assert float(rows["0.2"]["users_busy"]) == pytest.approx(1, abs=0.05)
    assert float(rows["exponential:0.2"]["users_busy"]) == pytest.approx(1, abs=0.35)
    for row in rows.values():
        assert not {"users-missing", "client-bound"} & set(row["caveats"].split(";"))
