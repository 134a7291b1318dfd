"""The table of the seeds' hypotheses, where a study tests one of the first three."""

from reports.beside.tables import published_figures
from reports.contention.verdict import verdicts
from reports.format import MISSING
from reports.hypotheses.judge import NOT_TESTED, Hypothesis, hypotheses
from reports.study import Study
from reports.tables.table import Cell, Notes, Table

ASKED = ("H1", "H2", "H3")


def judged(study: Study) -> tuple[Hypothesis, ...]:
    """All of them where the study is like the seeds' and tests one of those on gRPC, otherwise none.

    It is like theirs where it went over a link that models one of theirs, or varied the channels.
    """
    if not published_figures(study) and not verdicts(study):
        return ()
    found = hypotheses(study)
    return found if any(it.verdict != NOT_TESTED for it in found if it.code in ASKED) else ()


def hypotheses_table(study: Study) -> Table:
    """One row for each that was judged."""
    notes = Notes()
    rows = tuple(
        (
            Cell(it.code),
            Cell(it.claim),
            Cell(it.verdict, notes.marks([it.doubt] if it.doubt else [])),
            Cell(it.published),
            Cell(it.figures or MISSING),
        )
        for it in judged(study)
    )
    return Table(
        "The seeds' hypotheses",
        "Judged from this study's figures; “they” is what the published studies concluded. About equal is "
        "0.9 to 1.1 where the repeats allow no more than 0.8 to 1.25. H1 holds, too, where every one of "
        "three or more repeats is lower, however little.",
        ("", "hypothesis", "here", "they (published)", "figures"),
        rows,
        notes.texts,
    )
