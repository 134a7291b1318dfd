from pathlib import Path

import pytest

from reports.ledger.ledger import LedgerError, LedgerWriter, outline, records_of_runs
from tests.reading import read_ledger

HEADER = '{"kind":"header","version":1,"study":"s"}\n'


def ledger_file(folder: Path, text: str) -> Path:
    path = folder / "ledger.jsonl"
    path.write_bytes(text.encode())
    return path


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger.jsonl")
    writer.write({"kind": "header", "version": 1, "title": "naïve\n|"})
    writer.write({"kind": "run", "cell": "a", "repeat": 1})
    writer.write({"kind": "from-the-future", "x": [1]})
    writer.close()
    writer.close()
    ledger = read_ledger(tmp_path / "ledger.jsonl")
    assert ledger.header["title"] == "naïve\n|"
    assert ledger.of_kind("run") == [{"kind": "run", "cell": "a", "repeat": 1}]
    assert len(ledger.records) == 2
    assert not ledger.cut_line


def test_each_record_is_on_disk_at_once_as_one_compact_line(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger.jsonl")
    writer.write({"kind": "cold", "n": 1})
    assert (tmp_path / "ledger.jsonl").read_text() == '{"kind":"cold","n":1}\n'
    writer.close()


def test_a_number_that_json_lacks_is_refused(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger.jsonl")
    with pytest.raises(ValueError, match="JSON compliant"):
        writer.write({"kind": "cold", "n": float("nan")})
    writer.close()


@pytest.mark.parametrize("cut", ['{"kind":"cold","ce', '{"kind":"cold"', "{", '{"kind":"cold","n":NaN}'])
def test_a_cut_last_line_is_left_out_and_said(tmp_path: Path, cut: str) -> None:
    ledger = read_ledger(ledger_file(tmp_path, HEADER + '{"kind":"cold"}\n' + cut))
    assert ledger.records == ({"kind": "cold"},)
    assert ledger.cut_line


def test_a_whole_last_line_without_its_newline_is_kept(tmp_path: Path) -> None:
    ledger = read_ledger(ledger_file(tmp_path, HEADER + '{"kind":"cold"}'))
    assert ledger.records == ({"kind": "cold"},)
    assert not ledger.cut_line


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty: the study stopped before its header, run it again."),
        ('{"kind":"cold"}\n', "line 1 is no header"),
        ("PK\x03\x04", "line 1 is no header"),
        (HEADER.replace("1", "7", 1), "has version 7 and this program reads 1"),
        (HEADER + "oops\n" + '{"kind":"cold"}\n', "line 2 is broken: fix or delete that line"),
        (HEADER + "[1]\n" + '{"kind":"cold"}\n', "line 2 is broken"),
        (HEADER + "[" * 100_000 + "\n" + '{"kind":"cold"}\n', "line 2 is broken"),
        (HEADER + '{"kind":"cold","n":NaN}\n' + '{"kind":"cold"}\n', "line 2 is broken"),
        (HEADER + '{"kind":"cold","n":[-Infinity]}\n' + '{"kind":"cold"}\n', "line 2 is broken"),
        (HEADER + '{"kind":"cold","n":1e999}\n' + '{"kind":"cold"}\n', "line 2 is broken"),
        (HEADER.replace("1", "NaN", 1), "line 1 is no header"),
    ],
)
def test_what_is_no_ledger_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(LedgerError) as refusal:
        read_ledger(ledger_file(tmp_path, text))
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_numbers_and_texts_are_as_json_has_them_and_half_a_character_is_a_question_mark(
    tmp_path: Path,
) -> None:
    line = '{"kind":"cold","n":[1.5,1e3,18446744073709551616],"t":"\\ud83d\\ude00 \\udce9 \\\\ud800"}\n'
    (record,) = read_ledger(ledger_file(tmp_path, HEADER + line)).records
    assert record["n"] == [1.5, 1000.0, 2**64]
    assert record["t"] == "\U0001f600 ? \\ud800"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: cannot be read \(No such file or directory\)"):
        read_ledger(tmp_path / "ledger.jsonl")


def window(cell: str, second: int, repeat: int = 1) -> str:
    return (
        f'{{"kind":"window","cell":"{cell}","repeat":{repeat},"phase":"measure","second":{second},"ok":1}}\n'
    )


def test_a_first_look_tells_what_is_of_no_run_and_how_far_each_run_reaches(tmp_path: Path) -> None:
    lines = [window("a/b1", 7), window("a/b1", 8), '{"kind":"cold","batch":1}\n', window("a/b1", 7, repeat=2)]
    late = window("a/b1", 8)
    found = outline(ledger_file(tmp_path, HEADER + "".join(lines) + late + '{"kind":"footer"}\n'))
    assert [record["kind"] for record in found.others] == ["cold", "footer"]
    assert found.of_kind("cold") == [{"kind": "cold", "batch": 1}]
    assert (found.header["study"], found.lines, found.cut_line) == ("s", 7, False)
    first, second = found.runs["a/b1", 1], found.runs["a/b1", 2]
    assert (first.last, first.size, first.seconds) == (6, 3 * len(late), {7: 2, 8: 6})
    assert (second.last, second.seconds) == (5, {7: 5})


def test_a_run_is_known_by_its_name_as_json_has_it_however_its_lines_begin(tmp_path: Path) -> None:
    edited = '{"cell": "na\u00efve, \\"x\\"", "kind": "run", "repeat": 1, "second": 9}\n'
    found = outline(ledger_file(tmp_path, HEADER + window('na\\u00efve, \\"x\\"', 7) + edited))
    assert {tag: run.seconds for tag, run in found.runs.items()} == {('naïve, "x"', 1): {7: 2, 9: 3}}


def test_records_of_runs_have_their_lines_and_leave_out_what_was_cut(tmp_path: Path) -> None:
    lines = window("a", 1) + '{"kind":"cold"}\n' + window("b", 2)
    found = outline(ledger_file(tmp_path, HEADER + lines + window("c", 3)[:-9]))
    assert (found.lines, found.cut_line) == (4, True)
    assert [(number, record["cell"]) for number, record in records_of_runs(found)] == [(2, "a"), (4, "b")]


def test_a_line_that_was_written_since_the_first_look_is_not_read(tmp_path: Path) -> None:
    path = ledger_file(tmp_path, HEADER + window("a", 1))
    found = outline(path)
    path.write_text(path.read_text() + window("b", 2))
    assert [record["cell"] for _, record in records_of_runs(found)] == ["a"]


def test_a_line_that_only_begins_as_a_runs_does_is_broken(tmp_path: Path) -> None:
    found = outline(ledger_file(tmp_path, HEADER + window("a", 1)[:-9] + "\n" + window("a", 2)))
    with pytest.raises(LedgerError, match="line 2 is broken: fix or delete that line"):
        list(records_of_runs(found))
