"""The tables of attribution: where the time goes, what is in the way, the path, cold starts, floors."""

from dataclasses import replace
from pathlib import Path as Folder

import pytest

from reports.backend_facts import FLOOR
from reports.fold.path import Path
from reports.limit import Limit
from reports.page.disclosures import disclosures
from reports.study.study import Study, inconclusive_because, load_study
from reports.topics.answer.bottleneck import bottlenecks, bottlenecks_by_run
from reports.topics.load.open_load import open_load
from reports.topics.payloads.matrix import floors, matrix_tables
from reports.topics.report import build_page
from reports.topics.runs.workers import connections_and_path, link_images_per_s
from reports.topics.servers.breakdown import (
    NO_PATH,
    NO_SERVER,
    aligned_ms,
    breakdown_chart,
    where_the_time_goes,
)
from reports.topics.servers.cold_start import cold_starts
from reports.version_1 import OPENVINO
from tests.reports.answers import told
from tests.reports.builder import Book
from tests.reports.lines import triton
from tests.reports.open_load import notes_at, texts
from tests.reports.summary.test_network import summary

MS = 1_000_000
NO_MODEL = "no model computes behind this endpoint."


def with_floor(folder: Folder) -> Study:
    """Two repeats of a cell of 10 ms, one floor of 2 ms that the client held up, a floor of nothing."""
    book = Book(options={"link_mbit": 80})
    for repeat in (1, 2):
        tag = book.add(
            "onnx-http", 1, 1, {"w0": [10 * MS] * 200}, repeat=repeat, counters=triton(200, 1, 8 * MS)
        )
        book.phases(tag, send=MS // 2, receive=MS // 10, decode=MS // 5)
        book.request_bytes(tag, 5_000)
        book.path(
            tag, asked=2, busy_ns=200 * MS, bytes_sent=1_000_000, bytes_received=4_000, segments_out=1_000
        )
    floor = book.add("onnx-http-floor", 1, 1, {"w0": [2 * MS] * 200}, counters=triton(200, 1, 0))
    book.caveat(floor, "client-bound", "worker w0 used 99 % of a core")
    book.add("onnx-grpc-floor", 1, 1, {"w0": [MS] * 200})
    for name in ("onnx-http", "onnx-http-floor", "onnx-grpc-floor"):
        book.endpoint(name, "127.0.0.1:8010")
    book.footer()
    return load_study(book.write(folder))


def test_a_row_has_the_mean_and_the_parts_that_add_up_to_it(tmp_path: Folder) -> None:
    table = where_the_time_goes(with_floor(tmp_path))
    assert table.heads == (
        *("run", "mean", "delay", "send", "net", "queue", "comp", "other", "recv", "dec"),
        *("net?", "unexpl", "%"),
    )
    row = ["onnx-http/b1/c1", "10.0", "0.0", "0.5", "0.0", "0.1", "8.0", "0.1", "0.1", "0.2", "0.5"]
    assert texts(table)[0] == [*row, "0.6", "11"]
    # The queue's 0.05 ms and the rest's are each shown as 0.1.
    assert sum(map(float, row[2:])) + 0.6 == pytest.approx(float(row[1]) + 0.1)
    notes = {cells[0].text: set(notes_at(table, at, 12)) for at, cells in enumerate(table.rows)}
    assert notes == {
        **{"onnx-http/b1/c1": set(), "onnx-http/b1/c1 r2": set()},
        **{"onnx-http-floor/b1/c1": {NO_PATH}, "onnx-grpc-floor/b1/c1": {NO_SERVER, NO_PATH}},
    }


def over_both(folder: Folder, **waits_ns: int) -> Study:
    """A cell over HTTP and one over gRPC, on the suite's own connections, whose calls waited so long."""
    book = Book()
    for protocol in ("http", "grpc"):
        tag = book.add(f"onnx-{protocol}", 1, 1, {"w0": [20 * MS] * 40}, counters=triton(40, 1, 10 * MS))
        book.phases(tag, encode=0, send=MS // 2, wait=15 * MS, receive=MS // 10, decode=MS // 5)
        book.path(tag, asked=1, busy_ns=80 * MS, bytes_sent=40 * 602_112, segments_out=1_000, min_rtt_ns=MS)
        for window in book.measured(tag):
            window["connects"] = 0
    book.phases(tag, **waits_ns)
    return load_study(book.write(folder))


def test_the_waits_of_http2_have_columns_where_some_call_waited(tmp_path: Folder) -> None:
    table = where_the_time_goes(over_both(tmp_path, stream_wait=0, flow_wait=4 * MS))
    assert table.heads[:7] == ("run", "mean", "delay", "conn", "enc", "flow", "send")
    assert "flow: wait for an HTTP/2 window to open" in table.caption
    rows = {row[0]: row for row in texts(table)}
    assert "–" not in rows["onnx-grpc/b1/c1"]
    assert rows["onnx-grpc/b1/c1"][5] == "4.0"
    # HTTP/1.1 has no such window.
    assert [at for at, shown in enumerate(rows["onnx-http/b1/c1"]) if shown == "–"] == [5]
    for row in rows.values():
        parts = (float(shown) for shown in row[2:-1] if shown != "–")
        assert sum(parts) == pytest.approx(float(row[1]), abs=0.3)


def test_waits_of_nothing_are_no_columns_and_no_row_has_a_dash(tmp_path: Folder) -> None:
    table = where_the_time_goes(over_both(tmp_path, stream_wait=0, flow_wait=2_000))
    assert {"stream", "flow"}.isdisjoint(table.heads)
    assert [row for row in texts(table) if "–" in row] == []


def test_a_bar_has_the_waits_of_http2_before_it_sends(tmp_path: Folder) -> None:
    chart = breakdown_chart(over_both(tmp_path, stream_wait=MS, flow_wait=4 * MS))
    assert chart is not None
    named = [part["label"] for part in chart.data["parts"]]
    assert named[:3] == ["stream wait", "flow wait", "send"]
    bars = {bar["name"]: bar["parts"] for bar in chart.data["panels"][0]["bars"]}
    assert (bars["onnx-grpc"]["stream_wait"], bars["onnx-grpc"]["flow_wait"]) == (1.0, 4.0)
    assert {"stream_wait", "flow_wait"}.isdisjoint(bars["onnx-http"])
    assert sum(bars["onnx-grpc"].values()) == pytest.approx(20.0, rel=5e-3)


def test_a_part_has_the_decimals_of_its_mean() -> None:
    parts_ns = (None, 51_234, 49_000, 999.4 * MS, 51_234, 1_657_750_000, -1_000, -120_000, 0.0)
    means_ms = (1e-6, 12.34, 0.5, 999.4, 1_000.0, 1_657.75, 12.34, 12.34, 0.0)
    found = [aligned_ms(part, mean * MS) for part, mean in zip(parts_ns, means_ms, strict=True)]
    assert found == ["–", "0.1", "0.0", "999.4", "0", "1,658", "0.0", "-0.1", "0.0"]


def test_limits_are_named_with_evidence_and_advice_is_said_once(tmp_path: Folder) -> None:
    study = with_floor(tmp_path)
    limits = [
        Limit("connections", f"1 connection, busy {busy} %", "Give each user its own channel.")
        for busy in (95, 80)
    ]
    first, second, *others = study.runs
    unlimited = (replace(run, limit=None) for run in others)
    runs = (replace(first, limit=limits[0]), replace(second, limit=limits[1]), *unlimited)
    limited = replace(study, runs=runs)
    assert texts(bottlenecks(limited)) == [
        [
            *("connections", "2", "onnx-http/b1/c1"),
            *("1 connection, busy 80 to 95 %", "Give each user its own channel."),
        ]
    ]
    assert texts(bottlenecks_by_run(limited)) == [
        ["onnx-http/b1/c1", "connections", "1 connection, busy 95 %"],
        ["onnx-http/b1/c1 r2", "connections", "1 connection, busy 80 %"],
    ]


def test_the_path_is_a_row_and_a_known_link_has_a_ceiling(tmp_path: Folder) -> None:
    table = connections_and_path(with_floor(tmp_path))
    assert table.folded
    assert [row[:4] for row in texts(table)] == [
        ["onnx-http/b1/c1", "2", "1", "–"],
        ["onnx-http/b1/c1 r2", "2", "1", "–"],
    ]
    # 1,066,000 bytes up for 200 images; 10 MB a second
    assert texts(table)[0][-1] == "1,880"
    assert texts(table)[0][7] == "20.0"


def test_the_ceiling_is_that_of_the_busier_way() -> None:
    path = Path(bytes_sent=1_000, segments_out=0, bytes_received=4_000, segments_in=0)
    run = summary(path=path, images=10, link_bytes_per_s=8_000.0)
    assert link_images_per_s(run) == 20.0
    assert link_images_per_s(replace(run, link_bytes_per_s=None)) is None
    assert link_images_per_s(replace(run, path=Path())) is None


def test_cold_starts_have_a_row_for_each_shape(tmp_path: Folder) -> None:
    book = Book()
    for name in ("onnx-http", "openvino-grpc", "pytorch-http"):
        book.endpoint(name, "127.0.0.1:8010")
        book.plan(name, 1, 1)
    book.header["endpoints"]["onnx-http"] |= {"started_ns": 2_500 * MS, "loaded_ns": 1_250 * MS}
    book.header["endpoints"]["pytorch-http"]["started_ns"] = 3_500 * MS
    book.cold("onnx-http", 8, 900 * MS, 90 * MS)
    book.cold("openvino-grpc", 1, 80 * MS, 8 * MS)
    book.cold("onnx-http", 1, 20 * MS, 10 * MS)
    book.cold("not-planned-http", 1, 20 * MS, 10 * MS)
    table = cold_starts(load_study(book.write(tmp_path)))
    assert texts(table) == [
        ["onnx-http", "2.50", "1.25", "8", "900", "90.0"],
        ["onnx-http", "", "", "1", "20.0", "10.0"],
        ["openvino-grpc", "–", "–", "1", "80.0", "8.0"],
        ["pytorch-http", "3.50", "–", "–", "–", "–"],
    ]
    assert [notes_at(table, row, 4) for row in range(4)] == [[]] * 4


def test_what_was_compiled_while_a_server_started_comes_first(tmp_path: Folder) -> None:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.plan("onnx-http", 1, 1)
    compiled = [{"batch": 1, "first_ns": 29_300 * MS, "second_ns": 80 * MS}]
    book.header["endpoints"]["onnx-http"] |= {"loaded_ns": 30_000 * MS, "compiled": compiled}
    book.cold("onnx-http", 1, 90 * MS, 85 * MS)
    table = cold_starts(load_study(book.write(tmp_path)))
    assert texts(table) == [
        ["onnx-http", "–", "30.0", "1", "29,300", "80.0"],
        ["onnx-http", "", "", "1", "90.0", "85.0"],
    ]
    assert [notes_at(table, row, 4) for row in range(2)] == [
        ["compiled while the server started, within its load: for one image, and from two on for any number"],
        [],
    ]


def test_floors_stand_beside_their_cells(tmp_path: Folder) -> None:
    table = floors(with_floor(tmp_path))
    assert texts(table) == [["onnx-http/b1/c1", "10.0 (10.0–10.0)", "2.0", "100 (99.8–100)", "500"]]
    assert notes_at(table, 0, 2) == ["invalidated: client-bound"]
    assert FLOOR in table.caption


def test_floors_are_ranked_with_none_and_spoil_no_verdict(tmp_path: Folder) -> None:
    study = with_floor(tmp_path)
    rows = [row[0].text for table in matrix_tables(study) for row in table.rows]
    assert set(rows) == {"onnx-http"}
    assert not any("-floor" in sentence for sentence in told(study))
    assert FLOOR in build_page(study, "x").banner
    assert inconclusive_because(study) == ()


def test_a_floor_of_open_load_is_in_no_table_of_rates(tmp_path: Folder) -> None:
    book = Book()
    book.add_open("onnx-http-floor", 100, {"w0": [MS] * 100})
    study = load_study(book.write(tmp_path))
    assert open_load(study).rows == ()
    assert told(study) == ()


def test_stand_ins_are_named(tmp_path: Folder) -> None:
    book = Book()
    book.endpoint("emulated-http", "127.0.0.1:8030", weights="")
    book.endpoint("emulated-grpc", "127.0.0.1:8031", weights="")
    book.header["endpoints"]["emulated-http"]["emulated"] = "a100: 3.11 ms + 1.29 ms an image"
    others = ("onnx-http", "null-http", "openvino-grpc-floor", "openvino-grpc")
    for name in ("emulated-http", "emulated-grpc", *others):
        book.plan(name, 1, 1)
    study = load_study(book.write(tmp_path))
    assert study.stand_ins == {
        "emulated-http": f"Emulated (a100: 3.11 ms + 1.29 ms an image): {NO_MODEL}",
        "emulated-grpc": f"Emulated: {NO_MODEL}",
        "null-http": FLOOR,
        "openvino-grpc-floor": FLOOR,
        "openvino-grpc": OPENVINO,
    }
    assert disclosures(study, ["openvino-grpc-floor", "openvino-grpc"]) == (FLOOR, OPENVINO)


def test_a_ledger_of_old_has_the_parts_it_knows_and_no_empty_tables(tmp_path: Folder) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 20}, counters=triton(20, 1, 8 * MS))
    page = build_page(load_study(book.write(tmp_path)), "x")
    tables = {table.title: table for section in page.sections for table in section.tables}
    assert not {"Connections and path", "Cold starts", "Floor"} & set(tables)
    assert texts(tables["Mean latency by its parts, run by run"]) == [
        ["onnx-http/b1/c1", "10.0", "0.0", "0.1", "8.0", "0.1", "1.9", "19"]
    ]
