"""The frames of a study hold what its CSV files hold, with types, and with doubts beside."""

import csv
import io
import subprocess
import sys
from math import nan
from pathlib import Path
from typing import Any

import pandas
import pytest

import reports
from reports.cells_csv.columns import COLUMNS, TIMELINE, render_csv, render_timeline
from reports.frames.frames import DOUBTS, WORKER_COLUMNS
from reports.ledger.ledger import FILE_NAME, LedgerError
from reports.study.study import load_study
from reports.version_1 import OPENVINO
from tests.reports.builder import Book
from tests.reports.example import MS, example
from tests.reports.frames.gpu_book import gpu_study
from tests.reports.rates_example import rates_example

ROOT = Path(__file__).parents[3]
UTC, COUNT, NAME, TEXT = "datetime64[ns, UTC]", "Int64", "category", "str"


def written(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def as_written(value: Any) -> float | str | None:
    """A value of a frame as a CSV file has it, numbers as such."""
    if isinstance(value, pandas.Timestamp):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, str):
        return value or None
    return None if pandas.isna(value) else round(float(value), 6)


def as_read(field: str, value: Any) -> float | str | None:
    """A field of a CSV file, a number where the frame has one."""
    if not field:
        return None
    return field if isinstance(value, (str, pandas.Timestamp)) else float(field)


@pytest.mark.parametrize("book", [example(), rates_example()])
def test_the_frames_hold_what_the_files_hold(book: Book, tmp_path: Path) -> None:
    study, frames = load_study(book.write(tmp_path)), reports.load(tmp_path)
    for frame, text in ((frames.cells, render_csv(study)), (frames.timeline, render_timeline(study))):
        rows = written(text)
        assert len(rows) >= 7
        for (_, ours), theirs in zip(frame.iterrows(), rows, strict=True):
            found = {column: as_written(ours[column]) for column in theirs}
            assert found == {column: as_read(field, ours[column]) for column, field in theirs.items()}
    assert [*frames.cells] == [*COLUMNS, *DOUBTS]
    assert [*frames.timeline] == [*TIMELINE]
    assert [*frames.workers] == [*WORKER_COLUMNS]


def test_a_type_is_of_its_column_whether_there_are_rows_or_none(tmp_path: Path) -> None:
    never = Book()
    never.plan("onnx-http", 1, 1)
    full, none = reports.load(gpu_study(tmp_path / "full")), reports.load(never.write(tmp_path / "none"))
    for name in ("cells", "timeline", "workers", "requests"):
        assert (len(getattr(none, name)), len(getattr(full, name)) > 2) == (0, True)
        assert types(getattr(none, name)) == types(getattr(full, name)), name
    cells = {"cell": NAME, "limit": NAME, "caveats": TEXT, "repeat": COUNT, "failures": COUNT}
    cells |= {"level": "float64", "latency_p95_ms": "float64", "disqualified": "bool"}
    assert cells.items() <= types(full.cells).items()
    seconds = {"utc": UTC, "t_s": COUNT, "phase": NAME, "gpu_util_pct": "float64"}
    assert seconds.items() <= types(full.timeline).items()
    workers = {"worker": NAME, "users": COUNT, "phase_s": "float64", "doubts": TEXT}
    assert workers.items() <= types(full.workers).items()
    requests = {"cell": NAME, "error": NAME, "intended_utc_ns": UTC, "service_ns": COUNT, "abandoned": "bool"}
    assert requests.items() <= types(full.requests).items()


def types(frame: Any) -> dict[str, str]:
    """The type of each column by name."""
    return {str(name): str(of) for name, of in frame.dtypes.items()}


def test_what_is_not_known_is_missing_or_an_empty_text(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {})
    run = reports.load(book.write(tmp_path)).cells.iloc[0]
    assert (run["images"], run["link"], run["channels"]) == (0, "", "")
    unknown = run[["tcp_connections", "latency_p50_ms", "latency_p50_ms_low", "images_per_s_median"]]
    assert unknown.isna().all()


@pytest.mark.parametrize(
    ("each_ms", "lost", "latencies", "rates"),
    [
        ([10, 20, 40, 90], [4], [20, 10, 40], [50, 25, 100]),
        ([10, 30], [1, 2], [20, 10, 30], [200 / 3, 100 / 3, 100]),  # where each is disqualified all count
        ([10], [], [10, nan, nan], [100, nan, nan]),
    ],
)
def test_repeats_stand_beside_each_run_as_the_report_counts_them(
    each_ms: list[int], lost: list[int], latencies: list[float], rates: list[float], tmp_path: Path
) -> None:
    book = Book()
    for repeat, p50_ms in enumerate(each_ms, 1):
        tag = book.add("onnx-http", 1, 1, {"w0": [p50_ms * MS] * 40}, repeat=repeat)
        if repeat in lost:
            book.caveat(tag, "worker-lost", "w1 stopped answering")
    cells = reports.load(book.write(tmp_path)).cells
    assert cells["disqualified"].tolist() == [at in lost for at in range(1, len(each_ms) + 1)]
    for name, around in (("latency_p50_ms", latencies), ("images_per_s", rates)):
        (row,) = (
            cells[[f"{name}_{of}" for of in ("median", "low", "high")]].drop_duplicates().to_numpy().tolist()
        )
        assert row == pytest.approx(around, rel=1e-3, nan_ok=True)


def test_workers_are_told_apart(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 2, {"w0": [10 * MS] * 200, "w1": [30 * MS] * 200}, failures={"timeout": 3})
    workers = reports.load(book.write(tmp_path)).workers
    assert workers[["worker", "requests", "failures"]].to_numpy().tolist() == [["w0", 203, 3], ["w1", 203, 3]]
    assert workers["latency_p50_ms"].tolist() == pytest.approx([10, 30], rel=1e-3)
    assert workers["doubts"][0].startswith("p50 66.7 % below the others' median: a hint of trouble")
    assert workers["doubts"][1].startswith("p50 200 % above the others' median: a hint of trouble")


def test_what_holds_for_the_whole_study_is_told(tmp_path: Path) -> None:
    study = reports.load(example().write(tmp_path))
    assert study.notices[0] == "The study ended as interrupted: stopped after 36 of 37 runs."
    assert OPENVINO in study.notices
    head, *told = repr(study).splitlines()
    assert head == f"{tmp_path}: rows: 36 of cells, 68 of timeline, 38 of workers"
    assert tuple(told) == study.notices


def test_a_price_that_is_given_takes_the_place_of_the_study_s(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 40})
    book.write(tmp_path)
    assert reports.load(tmp_path).cells["images_per_usd"].isna().all()
    (cheap,), (dear,) = (reports.load(tmp_path, usd).cells["images_per_usd"] for usd in (1, 4))
    assert cheap == pytest.approx(4 * dear)


@pytest.mark.parametrize("place", ["nowhere", "empty", "a-file", "nul\0"])
def test_what_is_no_study_is_refused_in_a_sentence(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a-file").write_text("cell,repeat\n")
    with pytest.raises(LedgerError) as refused:
        reports.load(tmp_path / place)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / place / FILE_NAME}: cannot be read (")
    assert said.endswith("): name a directory that a study wrote.")


def test_a_damaged_ledger_is_refused_in_a_sentence(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 40})
    book.records.append(
        {"kind": "sample", **tag, "phase": "measure", "second": 1, "pending_requests": "many"}
    )
    with pytest.raises(LedgerError, match="a record is not what a ledger holds") as refused:
        reports.load(book.write(tmp_path))
    assert "\n" not in str(refused.value)


def test_only_frames_take_pandas(tmp_path: Path) -> None:
    """Half a second that `show` and the others need not wait."""
    example().write(tmp_path)
    show = f"reports.__main__.main(['show', {str(tmp_path)!r}, '--quiet'])"
    told = "sorted({'pandas', 'pyarrow'} & set(sys.modules))"
    code = (
        f"import sys, reports.__main__; {show}; print({told}); reports.load({str(tmp_path)!r}); print({told})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n['pandas', 'pyarrow']\n", done.stderr
