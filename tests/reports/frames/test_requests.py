"""The single requests of a study as a frame, and files that are none."""

import os
from pathlib import Path

import pandas
import pyarrow
import pytest
from pyarrow import parquet

import reports
from reports.frames.requests import read_requests
from reports.ledger.ledger import LedgerError
from reports.ledger.results import COLUMNS, FILE_NAME
from tests.reports.frames.gpu_book import gpu_study


def test_each_request_is_a_row(tmp_path: Path) -> None:
    requests = reports.load(gpu_study(tmp_path)).requests
    assert [*requests] == [*COLUMNS]
    assert " ".join(COLUMNS) == (
        "cell repeat worker user images intended_utc_ns send_delay_ns service_ns encode_ns send_ns wait_ns "
        "receive_ns decode_ns connect_ns server_ns request_bytes response_bytes error abandoned request_id "
        "stream_wait_ns flow_wait_ns request_class trace_id"
    )
    assert len(requests) == 3 * 2 * 8 * 40 + 24
    first = requests.iloc[0]
    assert (first["cell"], first["repeat"], first["worker"], first["error"]) == (
        "onnx-http/b1/c8",
        1,
        "w0",
        "",
    )
    assert first["intended_utc_ns"] == pandas.Timestamp("2026-11-21T11:00:00Z")
    assert (first["send_delay_ns"], first["abandoned"]) == (0, False)
    assert 15e6 < first["service_ns"] < 30e6
    assert pandas.isna(first["encode_ns"])
    assert requests["error"].value_counts().to_dict() == {"": 1_920, "unreachable": 24}


def test_requests_and_seconds_have_the_same_clock(tmp_path: Path) -> None:
    study = reports.load(gpu_study(tmp_path))
    requests = study.requests.assign(utc=study.requests["intended_utc_ns"].dt.floor("s"))
    joined = requests.merge(study.timeline, on=["cell", "repeat", "utc"], validate="many_to_one")
    assert len(joined) == len(requests)
    assert joined.groupby("utc")["gpu_sm_clock_mhz"].min().tolist() == [1_980] * 5 + [645] + [1_980] * 2


def test_a_study_that_kept_none_has_none(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    gpu_study(tmp_path / "with")
    none = read_requests(tmp_path)
    assert (len(none), [*none]) == (0, [*COLUMNS])
    assert list(none.dtypes.astype(str)) == list(read_requests(tmp_path / "with").dtypes.astype(str))


def test_a_file_from_before_requests_had_ids_is_read(tmp_path: Path) -> None:
    path = gpu_study(tmp_path) / FILE_NAME
    now, table = read_requests(tmp_path), parquet.read_table(path)
    at = table.column_names.index("cell")
    plain = table.set_column(at, "cell", table.column("cell").cast(pyarrow.string()))
    parquet.write_table(plain.drop_columns(["request_id"]), path)
    pandas.testing.assert_frame_equal(read_requests(tmp_path), now, check_categorical=False)


def test_a_file_from_before_calls_waited_for_http2_and_requests_had_classes_is_read(tmp_path: Path) -> None:
    path = gpu_study(tmp_path) / FILE_NAME
    now, waits = read_requests(tmp_path), ["stream_wait_ns", "flow_wait_ns"]
    later = [*waits, "request_class", "trace_id"]
    assert [*COLUMNS[-4:]] == later
    parquet.write_table(parquet.read_table(path).drop_columns(["connect_ns", *later]), path)
    older = read_requests(tmp_path)
    pandas.testing.assert_frame_equal(older, now, check_categorical=False)
    assert older[waits].isna().all(axis=None)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def of_another(path: Path) -> None:
    parquet.write_table(pyarrow.table({"cell": ["a"], "bytes": [1]}), path)


def with_texts(path: Path) -> None:
    table = parquet.read_table(path)
    at = table.column_names.index("service_ns")
    parquet.write_table(table.set_column(at, "service_ns", pyarrow.array(["long"] * len(table))), path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [truncated, of_another, with_texts, a_folder, a_pipe])
def test_a_file_that_is_none_is_refused_in_a_sentence(spoil: object, tmp_path: Path) -> None:
    assert callable(spoil)
    spoil(gpu_study(tmp_path) / FILE_NAME)
    study = reports.load(tmp_path)
    assert len(study.cells) == 3
    with pytest.raises(LedgerError) as refused:
        study.requests  # noqa: B018 (it is read when it is asked for)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / FILE_NAME}: cannot be read (")
    assert "\n" not in said
