"""Two servers of one kind in one study, interleaved: a slower new one fails, an equal one does not."""

from pathlib import Path

import pytest

from reports.gates.baseline import load_baseline
from reports.gates.judge import judge
from reports.gates.require import GateError
from reports.gates.thresholds import parse_gates
from tests.reports.builder import Book
from tests.reports.gates.book import add, judged, outcomes, require, source
from tests.reports.strangers import GRPC, a_book, stranger

RATIO = require("new / old >= 0.95", of="'images_per_s'")
PAIR = "new/b1/c1 / old/b1/c1"


def interleaved(**planned: dict[str, str]) -> Book:
    """Old and new in turns, the new one 15 % slower."""
    book = a_book()
    servers = {"old": {"server": "gpu:8000"}, "new": {"server": "gpu:9000"}}
    told = {name: stranger(book, name, **server, **planned.get(name, {})) for name, server in servers.items()}
    for repeat in (1, 2, 3):
        for name, ms in (("old", 10.0), ("new", 11.5)):
            # so many requests came back in each second as one user can make
            add(book, name, [ms] * 8, repeat=repeat, each=round(1_000 / ms), axes=told[name])
    book.footer()
    return book


@pytest.mark.parametrize(
    "choice",
    [
        *({"endpoint": "'new'"}, {"server": "'gpu:9*'"}, {"model": "'siglip-2'"}, {"space": "'two'"}),
        *({"codec": "'v2-grpc'"}, {"protocol": "'grpc'", "backend": "'triton'"}),
    ],
)
def test_cells_are_chosen_by_what_a_plan_tells_of_them(choice: dict[str, str], tmp_path: Path) -> None:
    book = interleaved(new=GRPC | {"model": "siglip-2", "space": "two"})
    found = outcomes(judged(tmp_path, require("latency_p50_ms <= 50", **choice), book))
    assert found == {"new/b1/c1": "pass"}


def test_a_ratio_is_of_the_models_that_are_chosen(tmp_path: Path) -> None:
    book = interleaved()
    chosen = require("new / old >= 0.95", of="'images_per_s'", model="'siglip'")
    assert outcomes(judged(tmp_path / "a", chosen, book)) == {PAIR: "fail"}
    with pytest.raises(GateError, match="model 'clip': the study has none such"):
        judged(tmp_path / "b", chosen.replace("siglip", "clip"), book)


def test_the_model_is_chosen_as_the_server_calls_it_where_requests_do_not(tmp_path: Path) -> None:
    book = interleaved(new={"model": ""}, old={"model": ""})
    book.header["endpoints"]["new"]["model"] = "ViT-B-32"
    text = require("latency_p50_ms <= 50", model="'ViT-*'")
    assert outcomes(judged(tmp_path, text, book)) == {"new/b1/c1": "pass"}


def test_what_only_the_baseline_has_is_chosen_by_its_server_too(tmp_path: Path) -> None:
    now, then = interleaved(), interleaved()
    then.header["started_utc"] = "2026-11-20T11:00:00.000Z"
    gone = {"old/b1/c1"}
    now.header["plan"] = [entry for entry in now.header["plan"] if entry["cell"] not in gone]
    now.records = [record for record in now.records if record.get("cell") not in gone]
    gates = parse_gates(require("latency_p50_ms / baseline <= 1", server="'gpu:8000'"), "thresholds.toml")
    before = load_baseline([str(then.write(tmp_path / "then"))])
    with pytest.raises(GateError, match="server 'gpu:8000': the study has none such"):
        judge(gates, source(tmp_path / "now", now), before)
    both = parse_gates(require("latency_p50_ms / baseline <= 1", server="'gpu:*'"), "thresholds.toml")
    told = outcomes(judge(both, source(tmp_path / "again", now), before))
    assert set(told) == {"old/b1/c1", "new/b1/c1"}
    assert set(told.values()) == {"inconclusive"}
