"""A whole study beside a replayed GPU: what its files say is computed here from the replay's own rows."""

from pathlib import Path

import pytest

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import LOCUST, ONCE, Console, few_pictures
from tests.locustfiles.test_events import REPLAYED, WHOLE, read

pytestmark = pytest.mark.system

SIZE = ("--iterations", "3", "--seconds", "5", "--warm-up", "2", "--cells", "*/b1/c1", *ONCE)
FIELDS = ("util_pct", "memory_bytes", "power_w", "sm_clock_mhz")


def test_a_study_tells_of_its_gpu_as_it_was_replayed(start_service: StartService, tmp_path: Path) -> None:
    """Power is what the counter gained from the first measured second to the last, by the seconds between.

    Rows 2 to 6 are measured where nothing is late: (1,001,454.37 - 1,000,397.15) J / 4 s = 264.305 W.
    """
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '40')}", *few_pictures())
    words = [*LOCUST, "--headless", "--results-dir", str(tmp_path), *target, *SIZE]
    console = Console(words, tmp_path, PYTHONPATH=str(REPLAYED))
    assert console.wait(60) in WHOLE, console.text
    replay = [{name: float(text) for name, text in row.items()} for row in read(REPLAYED / "nvml.csv")]
    by_power = {row["power_w"]: row for row in replay}
    seconds = [row for row in read(console.result() / "timeline.csv") if row["gpu_power_w"]]
    rows = [by_power[float(second["gpu_power_w"])] for second in seconds]
    assert rows[0] == replay[0]
    for second, row in zip(seconds, rows, strict=True):
        assert [float(second[f"gpu_{name}"]) for name in FIELDS] == [row[name] for name in FIELDS]
    measured = [at for at, second in enumerate(seconds) if second["phase"] == "measure"]
    first, last = measured[0], measured[-1]
    span_s = float(seconds[last]["t_s"]) - float(seconds[first]["t_s"])
    power_w = (rows[last]["energy_j"] - rows[first]["energy_j"]) / span_s
    (cell,) = read(console.result() / "cells.csv")
    assert float(cell["gpu_power_w"]) == pytest.approx(power_w, abs=1e-5)
    assert float(cell["joules_per_image"]) == pytest.approx(power_w / float(cell["images_per_s"]), rel=1e-5)
    assert cell["gpu_memory_bytes"] == "3103784960"
    assert console.ledger()[0]["fingerprint"]["gpus"] == ["replayed H100 (no measurement)"]
    assert console.ledger()[0]["endpoints"]["pytorch-http"]["local"] is True
    windows = [line for line in console.ledger() if line["kind"] == "window" and line["phase"] == "measure"]
    assert sum(line["spread_milli_images"] for line in windows) == 1_000 * int(cell["images"])
    page = (console.result() / "report.html").read_text()
    for panel in ("utilisation", "memory", "power", "clock"):
        assert f'"title":"GPU {panel}"' in page
