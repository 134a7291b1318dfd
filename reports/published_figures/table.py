"""The table of the seeds' hypotheses: what this study makes of each, and by which figures."""

from dataclasses import replace

from reports.page.table import Cell, Notes, Table
from reports.published_figures.judge import NOT_TESTED, Hypothesis, hypotheses
from reports.published_figures.rates import published_figures
from reports.study.study_reports import Study

ELSEWHERE = "over this study's own path, where theirs was the internet"


def judged(study: Study) -> tuple[Hypothesis, ...]:
    """All five; doubted, too, where no run went over a link that models the path of a published study."""
    found = hypotheses(study)
    return found if published_figures(study) else tuple(map(_doubted, found))


def _doubted(it: Hypothesis) -> Hypothesis:
    if it.verdict == NOT_TESTED:
        return it
    return replace(it, doubt="; ".join(text for text in (ELSEWHERE, it.doubt) if text))


def hypotheses_table(study: Study) -> Table:
    """One row for each; none where nothing was run."""
    notes = Notes()
    rows = tuple(
        (
            Cell(it.code),
            Cell(it.claim),
            Cell(it.verdict, notes.marks([it.doubt] if it.doubt else [])),
            Cell(it.published),
            Cell(it.figures),
        )
        for it in judged(study)
    )
    return Table(
        "The seeds' hypotheses",
        "Judged from this study's figures; “they” is what the published studies concluded. About equal is "
        "0.9 to 1.1 where the repeats allow no more than 0.8 to 1.25. H1 holds, too, where every one of "
        "three or more repeats is lower, however little.",
        ("", "hypothesis", "here", "they (published)", "figures"),
        rows if study.started else (),
        notes.texts,
    )
