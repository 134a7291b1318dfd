"""Raw Results on their way to results.parquet."""

import json
import tracemalloc
from pathlib import Path

import pytest
from pyarrow import parquet

from reports.frames.requests import read_requests
from reports.ledger.results import COLUMNS, FILE_NAME
from swarm.distributed.raw_results import RawResults
from swarm.distributed.recorder import Recorder
from tests.swarm.distributed.test_recorder import result
from users.errors import ErrorKind, RequestError


@pytest.fixture
def recorder() -> Recorder:
    made = Recorder()
    made._anchor_ns = 1_000
    made.raw_left = 4
    return made


def test_rows_say_what_each_request_was(recorder: Recorder, tmp_path: Path) -> None:
    recorder.add(result(5_000_000, 20, user=3))
    recorder.add(result(6_000_000, 30, error=RequestError(ErrorKind.TIMEOUT, "late")))
    recorder.add(result(7_000_000, 40, abandoned=True)._replace(server_ns={}))
    store = RawResults(10)
    for rows in recorder.take_raw():
        store.add("w1", rows)
    store.write(tmp_path)
    first, second, third = parquet.read_table(tmp_path / FILE_NAME).to_pylist()
    assert first == {
        "cell": "a/b4/c1", "repeat": 1, "worker": "w1", "user": 3, "images": 4,
        "intended_utc_ns": 4_001_000, "send_delay_ns": 1_000_000, "service_ns": 20,
        "encode_ns": None, "send_ns": None, "wait_ns": None, "receive_ns": None, "decode_ns": 3_000_000,
        "connect_ns": None, "server_ns": 5,
        "request_bytes": 100, "response_bytes": 10, "error": "", "abandoned": False,
        "request_id": "", "stream_wait_ns": None, "flow_wait_ns": None, "request_class": "", "trace_id": "",
    }  # fmt: skip
    assert (second["error"], second["server_ns"]) == ("timeout", 5)
    assert (third["error"], third["abandoned"], third["server_ns"]) == ("", True, None)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_what_is_written_is_what_a_study_s_frames_have(recorder: Recorder, tmp_path: Path) -> None:
    recorder.add(result(5_000_000, 20, user=3))
    recorder.add(result(6_000_000, 30, error=RequestError(ErrorKind.TIMEOUT, "late")))
    store = RawResults(10)
    for rows in recorder.take_raw():
        store.add("w1", rows)
    store.write(tmp_path)
    frame = read_requests(tmp_path)
    assert [*frame] == [*COLUMNS]
    assert list(frame.dtypes.astype(str)) == list(read_requests(tmp_path / "none").dtypes.astype(str))
    shown = ["cell", "worker", "user", "service_ns", "decode_ns", "error", "abandoned", "request_id"]
    assert frame[shown].to_numpy().tolist() == [
        ["a/b4/c1", "w1", 3, 20, 3_000_000, "", False, ""],
        ["a/b4/c1", "w1", 0, 30, 3_000_000, "timeout", False, ""],
    ]


def test_a_traceparent_is_told_whatever_the_phase_and_however_few_are_kept(
    recorder: Recorder, tmp_path: Path
) -> None:
    recorder.raw_left, recorder.traced_per_s = 1, 2
    ids = [f"{number:032x}" for number in range(1, 6)]
    phases = ["warm-up", "measure", "measure", "measure", "measure"]
    for number, (trace_id, phase) in enumerate(zip(ids, phases, strict=True)):
        late_ns = 1_000_000_000 if number == 4 else 0
        recorder.add(result(5_000_000 + late_ns, number, phase=phase)._replace(trace_id=trace_id))
    recorder.add(result(6_000_000, 9))
    told = recorder.take_traced()
    assert [(rows["phase"], rows["columns"]["trace_id"]) for rows in told["traced"]] == [
        ("warm-up", ids[:1]), ("measure", [ids[1], ids[4]]),
    ]  # fmt: skip
    assert (told["untold"], recorder.take_traced()) == (2, {})
    store = RawResults(10)
    for rows in recorder.take_raw():
        store.add("w1", rows)
    store.write(tmp_path)
    assert list(read_requests(tmp_path)["trace_id"]) == [ids[1]]


def test_only_the_measure_phase_and_only_so_many(recorder: Recorder, tmp_path: Path) -> None:
    recorder.add(result(0, 1, phase="warm-up"))
    for start_ns in range(9):
        recorder.add(result(start_ns, 1))
    (rows,) = recorder.take_raw()
    assert len(rows["columns"]["user"]) == 4
    assert recorder.take_raw() == []
    store = RawResults(3)
    store.add("w0", rows)
    store.add("w1", rows)
    store.write(tmp_path)
    table = parquet.read_table(tmp_path / FILE_NAME).to_pylist()
    assert [(row["worker"], row["intended_utc_ns"]) for row in table] == [
        ("w0", 1_000 + start_ns - 1_000_000) for start_ns in range(3)
    ]


def test_waits_are_of_the_successes_of_a_run_that_were_kept_by_their_ids(recorder: Recorder) -> None:
    store, recorder.raw_left = RawResults(7), 99
    late = RequestError(ErrorKind.TIMEOUT, "late")
    for number in range(9):
        error = late if number == 2 else None
        made = result(0, 9, error=error, abandoned=number == 3)
        about = {"request_id": f"id{number}" if number else "", "phases_ns": {"wait": number}}
        recorder.add(made._replace(**about, repeat=1 + number // 6))
        if number % 2:
            for rows in recorder.take_raw():
                store.add("w0", rows)
    found = [store.waits_ns("a/b4/c1", repeat) for repeat in (1, 2)]
    assert found == [{"id1": 1, "id4": 4, "id5": 5}, {"id6": 6}]
    assert store.waits_ns("another", 1) == {}


def test_where_it_cannot_be_written_nothing_is_left(recorder: Recorder, tmp_path: Path) -> None:
    store = RawResults(1)
    recorder.add(result(5_000_000, 20))
    store.add("w1", recorder.take_raw()[0])
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(OSError, match=FILE_NAME):
        store.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_nothing_kept_leaves_no_file(tmp_path: Path) -> None:
    RawResults(5).write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_row_takes_little_memory(tmp_path: Path) -> None:
    recorder, count = Recorder(), 10_000
    recorder.raw_left = count
    for number in range(count):
        recorder.add(result(number * 1_000_000, 1_000_000 + number))
    sent = json.dumps(recorder.take_raw())
    tracemalloc.start()
    store = RawResults(count)
    for _ in range(2):
        store.add("w0", json.loads(sent)[0])
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes / count < 160
    store.write(tmp_path)
    table = parquet.read_table(tmp_path / FILE_NAME)
    assert table.num_rows == count
    assert table["service_ns"].to_pylist() == [1_000_000 + number for number in range(count)]
