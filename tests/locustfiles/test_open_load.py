"""Open-loop load from the console: rates that are kept, arrivals that are dropped, the search for a rate."""

from pathlib import Path

import pytest

from reports.caveats.rate_bound import RateBound
from reports.study.study import load_study
from reports.topics.load.rate_search import find_bound, searches
from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import study

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_a_rate_is_kept_over_two_workers(start_service: StartService, tmp_path: Path, arrivals: str) -> None:
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '10')}", "--processes", "2")
    load = ("--rates", "50", "--arrivals", arrivals, "--seconds", "4", "--warm-up", "1")
    console = study(tmp_path, *target, *load, "--iterations", "1", "--max-in-flight", "20")
    assert console.wait(60) == 0, console.text
    (row,) = console.cells()
    assert (row["cell"], row["load"], row["level"]) == ("pytorch-http/b1/r50", "open", "50.0")
    if arrivals == "constant":
        assert float(row["offered_per_s"]) == pytest.approx(50, rel=0.01)
    drained = [r for r in console.ledger() if r["kind"] == "drained"]
    assert [r["dropped"] for r in drained] == [0, 0]
    assert sum(r["due"] for r in drained) == sum(r["sent"] for r in drained) == int(row["requests"])
    assert min(r["sent"] for r in drained) >= 0.7 * max(r["sent"] for r in drained)
    assert "Rates kept pytorch-http kept 50/s" in " ".join(console.text.split())


def test_arrivals_beyond_what_may_be_in_flight_wait_and_are_dropped_in_the_end(
    start_service: StartService, tmp_path: Path
) -> None:
    """Two in flight of 100 ms each carry 20 a second; of 100 a second for 3 s, 240 are never sent."""
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '100')}")
    load = ("--rates", "100", "--max-in-flight", "2", "--seconds", "3", "--warm-up", "1", "--iterations", "1")
    console = study(tmp_path, *target, *load)
    console.wait(60)
    (drained,) = [r for r in console.ledger() if r["kind"] == "drained"]
    assert drained["due"] == pytest.approx(300, abs=10)
    assert drained["dropped"] == drained["due"] - drained["sent"]
    assert drained["sent"] == pytest.approx(60, abs=8)
    (row,) = console.cells()
    assert {"dropped-arrivals", "rate-missed"} <= set(row["caveats"].split(";"))
    # The last that was sent had waited since a fifth of the phase was over.
    assert float(row["latency_max_ms"]) == pytest.approx(2_400, rel=0.1)
    assert float(row["service_p50_ms"]) < 200
    assert "DROPPED" in console.text


def test_the_search_finds_what_the_service_can_do(start_service: StartService, tmp_path: Path) -> None:
    """Four in flight of 50 ms each carry 80 a second; beyond that, latency grows without end."""
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '50')}")
    load = ("--find-rate", "p90<=100", "--rates", "30", "--max-in-flight", "4", "--seconds", "3")
    console = study(tmp_path, *target, *load, "--warm-up", "1", "--iterations", "100")
    assert console.wait(400) == 0, console.text
    levels = [float(row["level"]) for row in console.cells()]
    assert levels[:3] == [30, 60, 120]
    met = [float(row["level"]) for row in console.cells() if float(row["latency_p90_ms"]) <= 100]
    assert 60 <= max(met) <= 82
    found = load_study(console.result())
    (search,) = searches(found, RateBound("p90", 100))
    assert search.confirmed
    assert 60 <= search.met[0].level <= 80
    assert "Highest rate that meets p90" in (console.result() / "summary.md").read_text()


def test_a_search_goes_on_over_a_step_at_which_the_client_was_the_limit(
    start_service: StartService, tmp_path: Path
) -> None:
    """What the console says of every run is what the report rests on."""
    target = ("--pytorch-url", f"127.0.0.1:{start_service('--delay-ms', '20')}")
    load = ("--find-rate", "p90<=300", "--rates", "30", "--max-in-flight", "2", "--seconds", "3")
    own = ("-f", "tests/locustfiles/held_up.py")
    console = study(tmp_path, *target, *load, "--warm-up", "1", "--iterations", "100", *own)
    assert console.wait(400) == 0, console.text
    lines = [line for line in console.text.splitlines() if " img/s  p50" in line]
    said = [line.partition("; ")[0] for line in lines]
    assert "pytorch-http/b1/r60" in said[1]
    assert said[1].endswith("tells nothing: the client was the limit")
    assert "pytorch-http/b1/r60" in said[2]
    found = load_study(console.result())
    bound = find_bound(found)
    assert bound is not None
    verdicts = [bound.met_by(run) for run in found.runs]
    words = {True: "ms, met", False: "not met", None: "the limit"}
    judged = [line.partition(";")[0] for line in said]
    assert [line.endswith(words[verdict]) for line, verdict in zip(judged, verdicts, strict=True)] == [
        True
    ] * len(said)
    assert verdicts[:4] == [True, None, True, False]
    (search,) = searches(found, bound)
    assert 60 <= search.met[0].level < search.missed[0].level
