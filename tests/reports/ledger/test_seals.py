"""Ledgers that were damaged after they were written: a word is said, or every number is the same."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.cells_csv.columns import render_csv, render_timeline
from reports.ledger.ledger import LedgerError, LedgerWriter
from reports.ledger.seals import MOST_NAMED, Seals
from reports.study.study import Study, load_study, notices
from tests.reports.damage import small
from tests.reports.study.test_fold import codes

Lines = list[bytes]
DAMAGED = "ledger-damaged"


def sealed_lines(folder: Path, records: list[dict[str, Any]]) -> Lines:
    """As a study writes them."""
    folder.mkdir()
    writer = LedgerWriter(folder / "ledger.jsonl")
    for record in records:
        writer.write(record)
    writer.close()
    return (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """The lines of a study, of another one, and those of the first as older versions wrote them."""
    place, made = tmp_path_factory.mktemp("sealed"), small()
    records = [made.header, *made.records]
    other = [made.header | {"started_utc": "2026-11-22T11:00:00Z"}, *made.records]
    older = [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]
    return {
        "own": sealed_lines(place / "own", records),
        "other": sealed_lines(place / "other", other),
        "older": older,
    }


def loaded(folder: Path, lines: Lines) -> Study:
    (folder / "ledger.jsonl").write_bytes(b"".join(lines))
    return load_study(folder)


def figures(study: Study) -> tuple[str, str]:
    """Every number that others read of it."""
    return render_csv(study), render_timeline(study)


def damage_in(study: Study) -> set[str]:
    return {run.cell for run in study.runs if DAMAGED in codes(run)}


def drop(lines: Lines, _: Lines, chance: random.Random) -> None:
    at = chance.randrange(1, len(lines) - 1)
    del lines[at : at + chance.choice((1, 1, 3))]


def swap(lines: Lines, _: Lines, chance: random.Random) -> None:
    one, two = chance.sample(range(1, len(lines)), 2)
    lines[one], lines[two] = lines[two], lines[one]


def move(lines: Lines, _: Lines, chance: random.Random) -> None:
    lines.insert(chance.randrange(1, len(lines)), lines.pop(chance.randrange(1, len(lines))))


def double(lines: Lines, _: Lines, chance: random.Random) -> None:
    lines.insert(chance.randrange(1, len(lines)), lines[chance.randrange(1, len(lines))])


def change(lines: Lines, _: Lines, chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    line = bytearray(lines[at])
    place = chance.randrange(len(line))
    line[place] = ord(chance.choice("0123456789")) if chance.random() < 0.8 else chance.randrange(256)
    lines[at] = bytes(line)


def cut(lines: Lines, _: Lines, chance: random.Random) -> None:
    at = chance.randrange(1, len(lines))
    lines[at] = lines[at][: chance.randrange(len(lines[at]))] + b"\n" * chance.randrange(2)


def cut_off(lines: Lines, _: Lines, chance: random.Random) -> None:
    at = chance.randrange(1, len(lines))
    lines[at:] = [lines[at][: chance.randrange(len(lines[at]))]]


def insert(lines: Lines, other: Lines, chance: random.Random) -> None:
    at = chance.randrange(1, len(other))
    lines.insert(chance.choice((at, chance.randrange(1, len(lines)))), other[at])


def replaced(lines: Lines, other: Lines, chance: random.Random) -> None:
    at = chance.randrange(1, len(lines))
    lines[at] = other[at]


WAYS: tuple[Callable[[Lines, Lines, random.Random], None], ...] = (
    *(drop, swap, move, double, change, cut, cut_off, insert, replaced),
)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_damaged_is_said_or_every_number_is_the_same(
    way: Callable[[Lines, Lines, random.Random], None], book: dict[str, Lines], tmp_path: Path
) -> None:
    whole = loaded(tmp_path, book["own"])
    right, said = figures(whole), [*notices(whole)]
    silent = 0
    for seed in range(34):
        lines = [*book["own"]]
        way(lines, book["other"], random.Random(seed))
        try:
            study = loaded(tmp_path, lines)
        except LedgerError:
            continue
        told = [sentence for sentence in notices(study) if sentence not in said]
        same = figures(study) == right
        silent += same and not told
        assert told or same, (way.__name__, seed)
        # Where numbers differ, it is of runs that are invalidated for it, or the study has no end.
        if not same and study.footer:
            assert damage_in(study), (way.__name__, seed, told)
    assert silent < 10  # else nothing was damaged


def test_a_ledger_is_whole_with_seals_and_without(book: dict[str, Lines], tmp_path: Path) -> None:
    sealed, older = loaded(tmp_path, book["own"]), loaded(tmp_path, book["older"])
    assert figures(sealed) == figures(older)
    assert [*notices(sealed)] == [*notices(older)]
    assert not damage_in(sealed) | damage_in(older)
    assert [json.loads(line)["line"] for line in book["own"]] == [*range(1, len(book["own"]) + 1)]


@pytest.mark.parametrize("kind", ["own", "older"])
@pytest.mark.parametrize(
    ("start", "end"), [(b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n"), (b"", b"\n\n"), (b"", b" \n\r\n \n")]
)
def test_what_an_editor_does_to_lines_changes_nothing(
    book: dict[str, Lines], tmp_path: Path, kind: str, start: bytes, end: bytes
) -> None:
    whole = loaded(tmp_path, book[kind])
    edited = loaded(tmp_path, [start, *(line.replace(b"\n", end) for line in book[kind])])
    assert figures(edited) == figures(whole)
    assert [*notices(edited)] == [*notices(whole)]


def test_a_second_study_in_a_ledger_is_refused_or_left_out(book: dict[str, Lines], tmp_path: Path) -> None:
    whole = loaded(tmp_path, book["own"])
    both = loaded(tmp_path, book["own"] + book["other"])
    assert figures(both) == figures(whole)
    assert len([*notices(both)]) > len([*notices(whole)])
    with pytest.raises(LedgerError, match=f"line {1 + len(book['older'])} begins another study"):
        loaded(tmp_path, book["older"] * 2)


def test_a_line_that_is_lost_invalidates_its_run_alone(book: dict[str, Lines], tmp_path: Path) -> None:
    """A window of it: its requests are too few, which is no cause of its own."""
    windows = [at for at, line in enumerate(book["own"]) if b'"kind":"window"' in line]
    for at in (windows[0], windows[-1]):
        cell = json.loads(book["own"][at])["cell"]
        study = loaded(tmp_path, [*book["own"][:at], *book["own"][at + 1 :]])
        assert damage_in(study) == {cell}
        assert f"Line {at + 1} of the ledger: lost." in [*notices(study)]
        run = next(run for run in study.runs if DAMAGED in codes(run))
        assert run.tainted
        assert not {"results-lost", "counts-mismatch", "cut-short"} & set(codes(run))


@pytest.mark.parametrize("event", ["start", "end"])
def test_a_run_whose_edge_is_lost_is_there(book: dict[str, Lines], tmp_path: Path, event: str) -> None:
    edges = [at for at, line in enumerate(book["own"]) if f'"event":"{event}"'.encode() in line]
    at = edges[1]
    study = loaded(tmp_path, [*book["own"][:at], *book["own"][at + 1 :]])
    record = json.loads(book["own"][at])
    (run,) = [one for one in study.runs if (one.cell, one.repeat) == (record["cell"], record["repeat"])]
    assert (run.status, DAMAGED in codes(run), "unfinished" in codes(run)) == ("unfinished", True, False)


def test_a_header_that_was_changed_invalidates_all(book: dict[str, Lines], tmp_path: Path) -> None:
    header = book["own"][0]
    for changed in (
        header.replace(b'"link_mbit":1000', b'"link_mbit":9000'),
        header.replace(b',"line":1', b""),
        header[:-3] + (b"0" if header[-3:-2] != b"0" else b"1") + header[-2:],
    ):
        assert changed != header
        study = loaded(tmp_path, [changed, *book["own"][1:]])
        assert damage_in(study) == {run.cell for run in study.runs if run.started}
        assert any("its header, was changed" in sentence for sentence in notices(study))


def test_lines_that_were_written_anew_invalidate_all(book: dict[str, Lines], tmp_path: Path) -> None:
    study = loaded(tmp_path, [json.dumps(json.loads(line)).encode() + b"\n" for line in book["own"]])
    assert damage_in(study) == {run.cell for run in study.runs if run.started}


def test_what_fits_is_told_from_what_does_not() -> None:
    lines = [b'{"a":1,"line":1,"crc32":0}']
    seals = Seals()
    assert seals.open_line(lines[0], 1) == b'{"a":1}'
    assert seals.header_changed
    older = Seals()
    assert [older.open_line(line, at) for at, line in enumerate((b"{}", b"x"), 1)] == [b"{}", b"x"]
    assert [*older.sentences()] == []


def test_numbers_from_a_stranger_take_no_memory(tmp_path: Path, book: dict[str, Lines]) -> None:
    import zlib

    body = b'{"kind":"cold","line":999999999999999'
    seed = json.loads(book["own"][0])["crc32"]
    far = b'%s,"crc32":%d}\n' % (body, zlib.crc32(body, seed))
    study = loaded(tmp_path, [book["own"][0], *([book["own"][1]] * 9), far])
    shown = [sentence for sentence in notices(study) if "of the ledger" in sentence]
    assert any("Lines 3 to 999999999999998" in sentence for sentence in shown)
    assert any(f"and {8 - MOST_NAMED} more" in sentence for sentence in shown)
