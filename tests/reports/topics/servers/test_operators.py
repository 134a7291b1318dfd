"""The operator profile in a report: beside the published, or a notice where it failed."""

from pathlib import Path
from typing import Any

import pytest

from reports.ledger.ledger import LedgerError
from reports.page.table import Table
from reports.study.study import Study, load_study, notices
from reports.topics.servers.operators import ON_GPU, ONLY_CPU, operator_tables, published
from tests.reports.builder import Book
from tests.reports.example import MS
from tests.reports.open_load import notes_at, texts

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def operator(name: str, nodes: int, time_ns: int, share: float) -> dict[str, Any]:
    return {"operator": name, "nodes": nodes, "time_ns": time_ns, "share": share}


def latency(batch: int, mean_ns: float, min_ns: float, max_ns: float) -> dict[str, Any]:
    return {"batch": batch, "iterations": 10, "mean_ns": mean_ns, "min_ns": min_ns, "max_ns": max_ns}


RECORD: dict[str, Any] = {
    **{"kind": "operators", "model": "ViT-B-32", "weights": "random (seed 0)", "onnxruntime": "1.31.1"},
    **{"batch": 1, "inferences": 10, "inference_ns": 50_400_000, "file_bytes": 351_491_576, "opset": 17},
    **{"file_nodes": 2_091, "executed_nodes": 960, "session_ns": [1_430_000_000, 625_000_000, 572_000_000]},
    **{"asked": [CPU], "providers": {CPU: 960}, "fallbacks": []},
    "operators": [
        *(operator("MatMul", 61, 37_500_000, 0.75), operator("Concat", 98, 12_100_000, 0.242)),
        *(operator("Add", 49, 200_000, 0.004), operator("Sqrt", 24, 150_000, 0.003)),
        operator("Clip", 1, 50_000, 0.001),
    ],
    "latencies": [latency(1, 50_000_000, 48_000_000, 61_000_000), latency(64, 3e9, 2.9e9, 3.2e9)],
}


def written(path: Path, **changes: object) -> Study:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.records.append({**RECORD, **changes})
    book.add("onnx-http", 1, 1, {"w0": [9 * MS] * 30})
    book.footer()
    return load_study(book.write(path))


def by_title(study: Study) -> dict[str, Table]:
    return {table.title: table for table in operator_tables(study)}


def test_shares_stand_beside_the_published(tmp_path: Path) -> None:
    table = by_title(written(tmp_path))["Operators of the model"]
    assert texts(table)[:5] == [
        ["MatMul", "61", "37.5", "75.0", "75.7"],
        ["Concat", "98", "12.1", "24.2", "–"],
        ["Add", "49", "0.2", "0.4", "1.2"],
        ["2 other types", "25", "0.2", "0.4", "–"],
        ["Gemm", "–", "–", "–", "7.1"],
    ]
    assert len(table.rows) == 4 + 8
    assert notes_at(table, 0, 4) == [f"published: {published()['source']}"]
    assert "Of 10 profiled inferences of batch 1, 50.4 ms each with the profiler on" in table.caption
    assert ON_GPU not in table.caption


def test_the_file_and_its_session(tmp_path: Path) -> None:
    table = by_title(written(tmp_path))["ONNX Runtime 1.31.1: file and session"]
    assert texts(table) == [
        ["file, MiB; published as MB", "335", "335"],
        ["nodes in the file", "2,091", "2,272"],
        ["nodes that ran", "960", "–"],
        ["opset", "17", "14"],
        ["session creation, ms", "1,430; then 625, 572", "278.9"],
        ["nodes by provider", f"{CPU} 960", "–"],
        ["fallen back on the CPU", ONLY_CPU, "none"],
    ]


def test_inferences_by_batch(tmp_path: Path) -> None:
    table = by_title(written(tmp_path))["ONNX Runtime alone, by batch"]
    assert texts(table) == [["1", "50.0", "48.0", "61.0", "29.9"], ["64", "3,000", "2,900", "3,200", "–"]]


def test_on_another_provider_what_fell_back_is_named(tmp_path: Path) -> None:
    fell = [{"operator": "Shape", "nodes": 60}, {"operator": "Gather", "nodes": 2}]
    more = {"asked": [CUDA, CPU], "providers": {CUDA: 898, CPU: 62}, "fallbacks": fell}
    found = by_title(written(tmp_path, **more))
    rows = {row[0]: row[1] for row in texts(found["ONNX Runtime 1.31.1: file and session"])}
    assert rows["fallen back on the CPU"] == "Shape 60, Gather 2"
    assert rows["nodes by provider"] == f"{CUDA} 898, {CPU} 62"
    assert ON_GPU in found["Operators of the model"].caption
    none = by_title(written(tmp_path / "none", **{**more, "fallbacks": []}))
    assert texts(none["ONNX Runtime 1.31.1: file and session"])[-1][1] == "none"


def test_a_profile_that_failed_is_a_notice(tmp_path: Path) -> None:
    book = Book()
    book.records.append({"kind": "operators", "error": "inferswarm profile ended with 2: no file"})
    book.add("onnx-http", 1, 1, {"w0": [9 * MS] * 30})
    book.footer()
    study = load_study(book.write(tmp_path))
    assert "The operators were not profiled: inferswarm profile ended with 2: no file." in notices(study)
    assert list(operator_tables(study)) == []
    assert study.status == "complete"


@pytest.mark.parametrize(
    "damage", [{"operators": 3}, {"latencies": [{}]}, {"session_ns": [None]}, {"providers": []}]
)
def test_a_damaged_one_is_refused_in_a_sentence(tmp_path: Path, damage: dict[str, object]) -> None:
    with pytest.raises(LedgerError, match="a record is not what a ledger holds"):
        written(tmp_path, **damage)
