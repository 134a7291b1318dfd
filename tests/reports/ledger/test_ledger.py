"""The ledger: what is written is read back, and what is none is refused in one sentence."""

import os
import resource
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from reports.ledger.files import MOST_BYTES, parsed_toml, whole_file
from reports.ledger.ledger import (
    LONGEST_LINE,
    LedgerError,
    LedgerWriter,
    check_header,
    damage_refused,
    outline,
    records_of_runs,
)
from tests.reading import read_ledger

HEADER = '{"kind":"header","version":1,"study":"s"}\n'


def ledger_file(folder: Path, text: str) -> Path:
    path = folder / "ledger.jsonl"
    path.write_bytes(text.encode())
    return path


def window(cell: str, second: int, repeat: int = 1) -> str:
    return (
        f'{{"kind":"window","cell":"{cell}","repeat":{repeat},"phase":"measure","second":{second},"ok":1}}\n'
    )


def test_what_was_written_is_read_back_and_what_exists_is_written_on(tmp_path: Path) -> None:
    for records in (
        [{"kind": "header", "version": 2, "title": "naïve\n|"}, {"kind": "run", "cell": "a", "repeat": 1}],
        [{"kind": "from-the-future", "x": [1]}],
    ):
        writer = LedgerWriter(tmp_path / "ledger.jsonl")
        for record in records:
            writer.write(record)
        writer.close()
        writer.close()
    ledger = read_ledger(tmp_path / "ledger.jsonl")
    assert ledger.header == {"kind": "header", "version": 2, "title": "naïve\n|"}
    assert ledger.records == (
        {"kind": "run", "cell": "a", "repeat": 1},
        {"kind": "from-the-future", "x": [1]},
    )
    assert not ledger.cut_line


def test_each_record_is_on_disk_at_once_as_one_compact_line_and_half_a_line_never(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    writer = LedgerWriter(path)
    writer.write({"kind": "cold", "n": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        writer.write({"kind": "cold", "n": float("nan")})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.write({"kind": "cold", "n": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    writer.write({"kind": "cold", "n": 3})
    told = ('{"kind":"cold","n":1,"line":1', 0), ('{"kind":"cold","n":3,"line":2', 3831576865)
    assert path.read_text() == "".join(f'{text},"crc32":{crc32(text.encode(), of)}}}\n' for text, of in told)
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
        (window("a", 1), "line 1 is no header"),
        (
            HEADER.replace("1", "3", 1),
            "has version 3 and this program reads 1 and 2: use the inferswarm that",
        ),
        (HEADER.replace('"version":1,', ""), "has version None and this program reads 1 and 2"),
        (HEADER + '{"kind":"window","cell":"a"}\n', "line 2: a window of no run: fix or delete that line"),
        (HEADER + '{"kind":"caveat","repeat":1}\n', "line 2: a caveat of no run: fix or delete that line"),
        (HEADER + "oops\n" + window("a", 1) * 2, "line 2 is broken: fix or delete that line"),
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


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "No such file or directory"),
        (os.mkdir, "Is a directory"),
        (os.mkfifo, "it is no regular file"),
    ],
)
def test_a_place_without_a_file_is_named(tmp_path: Path, make: Any, why: str) -> None:
    make(tmp_path / "ledger.jsonl")
    with pytest.raises(LedgerError) as refusal:
        outline(tmp_path / "ledger.jsonl")
    said = f"{tmp_path}/ledger.jsonl: cannot be read ({why}): name a directory that a study wrote."
    assert str(refusal.value) == said


def test_a_line_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    path = ledger_file(tmp_path, HEADER)
    os.truncate(path, len(HEADER) + LONGEST_LINE)
    with pytest.raises(LedgerError, match="line 2 is endless: this is not a ledger, or damaged"):
        outline(path)


def test_a_file_of_an_editor_that_marks_its_bytes_is_read(tmp_path: Path) -> None:
    assert outline(ledger_file(tmp_path, "\ufeff" + HEADER)).header["study"] == "s"


def test_a_small_file_is_read_whole_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.touch()
    os.truncate(path, MOST_BYTES)
    assert len(whole_file(path)) == MOST_BYTES
    os.truncate(path, MOST_BYTES + 1)
    for place, why in ((path, "larger than 64 MB"), (tmp_path, "Is a directory"), ("nul\0", "NUL in it")):
        with pytest.raises(OSError, match=why):
            whole_file(place)


def test_toml_has_numbers_of_64_bits_and_an_end() -> None:
    assert parsed_toml(f"a = [{-(2**63)}, {2**63 - 1}]") == {"a": [-(2**63), 2**63 - 1]}
    for text in (f"a = {2**63}", f"a = [1, {{b = {-(2**63) - 1}}}]"):
        with pytest.raises(ValueError, match="it has a number of more than 64 bits"):
            parsed_toml(text)
    with pytest.raises(ValueError, match="it is nested too deeply"):
        parsed_toml("a = " + "[" * 5_000)


SHAPES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a text": ("study title size started_utc", ("x", "")),
    "an object": ("options fingerprint images", ({}, {"a": 1}, {"a": {}}, {"a": {}, "b": 1}, None)),
    "an object of objects": ("endpoints backends", ({}, {"a": {}}, None)),
    "a list of objects": ("plan links hosts", ([], [{}], None)),
}
HEADER_FIELDS: dict[str, Any] = {**dict.fromkeys(("study", "title", "size", "started_utc"), "x"), "plan": []}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_field_of_the_header_has_its_shape_or_is_null_where_it_is_not_required(shape: str) -> None:
    names, good = SHAPES[shape]
    values = [7, "x", None, {}, {"a": 1}, {"a": {}}, [], [{}], [1], [{}, 1], {"a": {}, "b": 1}]
    for name, value in product(names.split(), values):
        header = HEADER_FIELDS | {name: value}
        if value in good and (value is not None or name != "plan"):
            check_header(header, "here")
        else:
            with pytest.raises(LedgerError) as refusal:
                check_header(header, "here")
            said = f"here: the header's {name} is not {shape}: fix line 1, or run the study again."
            assert str(refusal.value) == said


@pytest.mark.parametrize("name", HEADER_FIELDS)
def test_a_field_of_the_header_that_is_required_is_there(name: str) -> None:
    header = {known: value for known, value in HEADER_FIELDS.items() if known != name}
    with pytest.raises(LedgerError, match=f"here: the header lacks {name}: run the study again"):
        check_header(header, "here")


@pytest.mark.parametrize(
    "error",
    [
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        ZeroDivisionError,
        RecursionError,
    ],
)
def test_whatever_damage_brings_about_is_one_sentence_and_its_words_are_cut(error: type[Exception]) -> None:
    with pytest.raises(LedgerError) as refusal, damage_refused("here"):
        raise error("x" * 5_000)
    quoted = f"{error.__name__}('{'x' * 5_000}"[:200]
    said = f"here: a record is not what a ledger holds ({quoted}): it was edited or damaged."
    assert str(refusal.value) == said


def test_an_error_that_no_record_can_bring_about_is_let_through() -> None:
    with pytest.raises(NameError), damage_refused("here"):
        raise NameError("undefined")


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
