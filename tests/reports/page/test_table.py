"""Tables as data: footnotes by letter, the best of a column, and a table of one number as a sentence."""

import pytest

from reports.page.page import Section
from reports.page.table import LONG, Footnotes, Rows, Table, TableCell, letters, table_of, with_best


@pytest.mark.parametrize(
    ("mark", "name"), [(1, "a"), (2, "b"), (26, "z"), (27, "aa"), (52, "az"), (53, "ba"), (703, "aaa")]
)
def test_footnotes_are_letters_which_no_number_can_be_read_with(mark: int, name: str) -> None:
    assert letters(mark) == name


def test_a_cell_names_its_footnotes_and_a_table_lists_them_once() -> None:
    notes = Footnotes()
    first = TableCell("66.7", notes.marks(["one run", "invalidated: aborted"]))
    second = TableCell("70.0", notes.marks(["too few", "one run"]))
    bare = TableCell("80.0", notes.marks([]))
    assert [(cell.names, cell.reference) for cell in (first, second, bare)] == [
        ("a,b", " [a,b]"),
        ("a,c", " [a,c]"),
        ("", ""),
    ]
    table = table_of("Rates", ("cell", "images/s"), [("x", first), ("y", second), ("z", bare)], notes=notes)
    assert table.named_notes == ["[a] one run", "[b] invalidated: aborted", "[c] too few"]


def rows_of(*values: tuple[float | None, ...]) -> Rows:
    return tuple(tuple(TableCell(str(value), (), value) for value in row) for row in values)


def best(rows: Rows) -> list[list[int]]:
    """The places of the best rows, column by column."""
    return [[at for at, row in enumerate(rows) if row[column].best] for column in range(len(rows[0]))]


def test_the_most_or_the_least_of_each_column_is_the_best() -> None:
    rows = rows_of((1, 40), (3, 20), (2, 20))
    assert best(with_best(rows)) == [[1], [0]]
    assert best(with_best(rows, least=True)) == [[0], [1, 2]]


def test_one_number_alone_is_best_of_nothing() -> None:
    assert best(with_best(rows_of((5, 5)))) == [[], []]
    assert best(with_best(rows_of((5, None), (None, None)))) == [[], []]
    assert best(with_best(rows_of((5, 0.0), (None, 1.0), (4, None)))) == [[0], [1]]
    assert with_best(()) == ()


def test_a_number_with_a_footnote_is_never_the_best() -> None:
    values = (TableCell("9", (1,), 9), TableCell("8", (), 8), TableCell("7", (), 7), TableCell("8", (2,), 8))
    rows = tuple((cell,) for cell in values)
    assert best(with_best(rows)) == [[1]]
    assert best(with_best(rows[:2])) == [[]], "one number that counts is best of nothing"


def test_names_are_never_marked() -> None:
    rows = ((TableCell("onnx-http"), TableCell("9", (), 9)), (TableCell("onnx-grpc"), TableCell("8", (), 8)))
    assert best(with_best(rows)) == [[], [0]]


def one_number(*notes: str, caption: str = "Images per second, one user.") -> Table:
    footnotes = Footnotes()
    rows = [("onnx-http", TableCell("66.7", footnotes.marks(notes), 66.7))]
    return table_of(
        "Serial throughput", ("endpoint", "batch 1"), rows, caption=caption, notes=footnotes, numeric=[1]
    )


def test_a_table_of_one_number_is_a_sentence_with_its_unit() -> None:
    assert one_number().sentence == (
        "Serial throughput, onnx-http, batch 1: 66.7. Images per second, one user."
    )
    assert one_number("invalidated: client-bound", "one run", caption="").sentence == (
        "Serial throughput, onnx-http, batch 1: 66.7 (invalidated: client-bound; one run)."
    )


@pytest.mark.parametrize(
    ("heads", "rows", "numeric"),
    [
        (("endpoint", "batch 1"), [("a", 1), ("b", 2)], [1]),
        (("endpoint", "batch 1", "batch 2"), [("a", 1, 2)], [1, 2]),
        (("what", "value"), [("cpu", "Example CPU")], []),
        (("endpoint", "batch 1"), [], [1]),
    ],
)
def test_a_larger_table_and_one_of_words_stay_tables(
    heads: tuple[str, ...], rows: list[tuple[object, ...]], numeric: list[int]
) -> None:
    assert table_of("T", heads, rows, numeric=numeric).sentence == ""


def test_a_section_shows_the_sentence_in_place_of_the_table() -> None:
    long = table_of("Long", ("cell",), [(str(at),) for at in range(LONG + 1)])
    section = Section("Results").of((one_number(), long, None, table_of("Empty", ("cell",), [])))
    assert section.sentences == (one_number().sentence,)
    assert [table.title for table in section.tables] == ["Long"]
    assert not section.empty
    assert Section("Results").of((one_number(),)).tables == ()
    assert not Section("Results").of((one_number(),)).empty


def test_a_table_of_more_than_eight_rows_is_folded() -> None:
    tables = (table_of(str(count), ("cell",), [(str(at),) for at in range(count)]) for count in (8, 9))
    assert [table.folded for table in Section("Results").of(tables).long_folded.tables] == [False, True]
