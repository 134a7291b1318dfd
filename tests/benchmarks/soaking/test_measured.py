"""What a soak takes from its ledger, and what a study says of itself."""

from pathlib import Path

import pytest

from benchmarks.soaking.measured import soak_of
from benchmarks.soaking.validity import validity_of
from reports.ledger.ledger import FILE_NAME
from tests.benchmarks.soaking.ledgers import ledger
from tests.reports.builder import Book

MS = 1_000_000


def test_a_ledger_tells_of_minutes_and_losses(tmp_path: Path) -> None:
    ledger(tmp_path, 320, failures=1)
    soak = soak_of(tmp_path)
    (cell,) = soak.cells
    assert (soak.status, cell.ok, cell.lost) == ("complete", 320 * 5, 320 + 3)
    assert cell.minutes == pytest.approx(320 / 60)
    per_minute = cell.by_minute(60)
    assert [minute[0] for minute in per_minute] == pytest.approx([3.0, 4.0, 5.0, 6.0], rel=0.001)
    assert 100 < cell.ledger_bytes / 320 < 2_000


def test_a_ledger_that_was_cut_off_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    ledger(tmp_path, 100)
    path = tmp_path / FILE_NAME
    path.write_text(path.read_text()[:-9])
    soak = soak_of(tmp_path)
    assert (soak.status, [cell.ok for cell in soak.cells], soak.unmeasured) == ("", [500], [])


def test_a_ledger_tells_what_disqualifies_and_which_exit_code_it_explains(tmp_path: Path) -> None:
    book = Book()
    floor = book.add("onnx-grpc-floor", 1, 1, {"w0": [MS] * 400})
    model = book.add("onnx-grpc", 1, 1, {"w0": [MS] * 400})
    book.footer()
    sound = validity_of(book.write(tmp_path / "sound"), 0)
    assert sound.doubts == {floor["cell"]: [], model["cell"]: []}
    assert (sound.code, sound.expected) == (0, 0)
    book.caveat(floor, "worker-lost", "worker w1 was lost")
    book.caveat(floor, "unsteady", "it warmed up for too short a time")
    spoilt = validity_of(book.write(tmp_path / "spoilt"), 0)
    assert [doubt.code for doubt in spoilt.doubts[floor["cell"]]] == ["worker-lost"]
    assert spoilt.expected == 0
    only = Book()
    only.add("onnx-grpc-floor", 1, 1, {"w0": [MS] * 400})
    only.footer()
    assert validity_of(only.write(tmp_path / "only"), 3).expected == 3
