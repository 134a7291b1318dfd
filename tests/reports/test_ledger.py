from pathlib import Path

import pytest

from reports.ledger import LedgerError, LedgerWriter, read_ledger

HEADER = '{"kind":"header","version":1,"study":"s"}\n'


def ledger_file(folder: Path, text: str) -> Path:
    path = folder / "ledger.jsonl"
    path.write_bytes(text.encode())
    return path


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger.jsonl")
    writer.write({"kind": "header", "version": 1, "title": "naïve\n|"})
    writer.write({"kind": "run", "cell": "a"})
    writer.write({"kind": "from-the-future", "x": [1]})
    writer.close()
    writer.close()
    ledger = read_ledger(tmp_path / "ledger.jsonl")
    assert ledger.header["title"] == "naïve\n|"
    assert ledger.of_kind("run") == [{"kind": "run", "cell": "a"}]
    assert len(ledger.records) == 2
    assert not ledger.cut_line


def test_each_record_is_on_disk_at_once_as_one_compact_line(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger.jsonl")
    writer.write({"kind": "run", "n": 1})
    assert (tmp_path / "ledger.jsonl").read_text() == '{"kind":"run","n":1}\n'
    writer.close()


def test_a_number_that_json_lacks_is_refused(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger.jsonl")
    with pytest.raises(ValueError, match="JSON compliant"):
        writer.write({"kind": "run", "n": float("nan")})
    writer.close()


@pytest.mark.parametrize("cut", ['{"kind":"run","ce', '{"kind":"run"', "{"])
def test_a_cut_last_line_is_left_out_and_said(tmp_path: Path, cut: str) -> None:
    ledger = read_ledger(ledger_file(tmp_path, HEADER + '{"kind":"run"}\n' + cut))
    assert ledger.records == ({"kind": "run"},)
    assert ledger.cut_line


def test_a_whole_last_line_without_its_newline_is_kept(tmp_path: Path) -> None:
    ledger = read_ledger(ledger_file(tmp_path, HEADER + '{"kind":"run"}'))
    assert ledger.records == ({"kind": "run"},)
    assert not ledger.cut_line


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty: the study stopped before its header, run it again."),
        ('{"kind":"run"}\n', "line 1 is no header"),
        ("PK\x03\x04", "line 1 is no header"),
        (HEADER.replace("1", "7", 1), "has version 7 and this program reads 1"),
        (HEADER + "oops\n" + '{"kind":"run"}\n', "line 2 is broken: mend or delete that line"),
        (HEADER + "[1]\n" + '{"kind":"run"}\n', "line 2 is broken"),
    ],
)
def test_what_is_no_ledger_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(LedgerError) as refusal:
        read_ledger(ledger_file(tmp_path, text))
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: cannot be read \(No such file or directory\)"):
        read_ledger(tmp_path / "ledger.jsonl")
