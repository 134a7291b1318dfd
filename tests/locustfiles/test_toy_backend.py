"""A backend in one file that is none of ours, from its options to the report: tests/toy_backend.py."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.locustfiles.console import LOCUST, ONCE, Console, few_pictures
from tests.stand_ins import stand_in

pytestmark = pytest.mark.system

FILES = "tests/toy_backend.py,locustfiles/step7.py"
STANDS_IN = "Toy: a stand-in for an engine that is not there."
SLEEPS = "Emulated: no model computes behind this endpoint."


def run(folder: Path, address: str, *more: str) -> Console:
    """A short study of both toys, on one server."""
    urls = ("--toy-url", address, "--toy-metrics-url", f"{address}/metrics", "--nap-url", address)
    # Long enough for a second to be sampled in each run.
    amounts = ("--iterations", "3", "--seconds", "1.5", "--warm-up", "0.3", *ONCE)
    asked = ("--endpoints", "toy-*,nap-*", "--cells", "*/b1/c1", *amounts, *few_pictures())
    command = [LOCUST[0], "-f", FILES, "--headless", "--results-dir", str(folder), *urls, *asked, *more]
    return Console(command, folder)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with stand_in("toy_server.py") as found:
        yield found


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, address: str) -> Console:
    """A study that has ended well."""
    with run(tmp_path_factory.mktemp("toy"), address, "--instances", "2") as console:
        assert console.wait(60) in (0, 3), console.text
        return console


def test_its_facts_stand_in_the_ledgers_header(ended: Console) -> None:
    header = ended.ledger()[0]
    assert header["version"] == 2
    assert header["backends"].keys() == {"toy", "nap"}
    assert header["backends"]["toy"]["stands_for"] == "trt"
    assert header["backends"]["nap"] == {
        "computes": False, "emulated": True, "floor": False, "compiled": False,
        "stands_for": "", "passes_to": "", "stand_in": "",
    }  # fmt: skip
    weights = {name: about["weights"] for name, about in header["endpoints"].items()}
    assert weights == {"toy-http": "made up", "nap-http": "none"}


def test_its_figures_and_facts_stand_in_the_table(ended: Console) -> None:
    rows = {row["endpoint"]: row for row in ended.cells()}
    facts = {name: (row["backend"], row["stand_in"]) for name, row in rows.items()}
    assert facts == {"toy-http": ("toy", STANDS_IN), "nap-http": ("nap", SLEEPS)}
    for row in rows.values():
        assert (row["failures"], float(row["server_compute_ms"])) == ("0", 2.0)
        assert int(row["requests"]) >= 3
        assert "probe-mismatch" not in row["caveats"]


def test_its_facts_stand_beside_its_figures_in_the_report(ended: Console) -> None:
    for name in ("summary.md", "report.html"):
        text = (ended.result() / name).read_text()
        assert STANDS_IN in text
        assert SLEEPS in text


def test_its_settings_and_metrics_are_read_and_set(ended: Console) -> None:
    records = ended.ledger()
    assert {record["instances"] for record in records if record["kind"] == "serving"} == {2}
    pending = [record.get("pending_requests") for record in records if record["kind"] == "sample"]
    assert 3 in pending
    counted = [record["counters"] for record in records if record["kind"] == "server"]
    assert counted[-1]["requests"] > counted[0]["requests"] > 0


def test_what_it_cannot_be_set_to_is_said_before_any_load(tmp_path: Path, address: str) -> None:
    with run(tmp_path, address, "--queue-delay-us", "0") as console:
        assert console.wait(60) == 2
    assert f"toy-http {address}: a toy waits for nobody, so --queue-delay-us has nothing" in console.text


def test_what_it_finds_wrong_with_a_target_is_said(tmp_path: Path) -> None:
    with stand_in("fake_service.py") as other, run(tmp_path, other) as console:
        assert console.wait(60) == 2
    assert "answers, but not as expected" in console.text or "is no toy" in console.text


def test_a_report_is_made_again_without_the_backends_file(ended: Console) -> None:
    """The ledger says it all: nothing of the toy is imported to read it."""
    from reports.study.study import load_study

    study = load_study(ended.result())
    assert study.stand_ins == {"toy-http": STANDS_IN, "nap-http": SLEEPS}
    assert [run.facts.computes for run in study.runs] == [run.endpoint == "toy-http" for run in study.runs]
    assert json.loads((ended.result() / "study.json").read_text())["status"] == "complete"
