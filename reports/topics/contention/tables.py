"""HTTP against gRPC as a reader sees it: a sentence, the arms with their figures, the evidence."""

from collections.abc import Iterator, Sequence
from typing import Any

from reports.format import MISSING, digits
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, study_table, text
from reports.page.table import Table, TableCell, table_of
from reports.published_figures.figures import RATE, Figures, as_published, beside, published_figures, sourced
from reports.stats.repeats import Spread, absence, taints
from reports.study.study import Study
from reports.summary.summary import Summary
from reports.topics.contention.arms import ArmRuns, ratio_of
from reports.topics.contention.verdict import NONE, Conclusion, verdicts


def contention_finding(study: Study) -> str:
    """The verdict on each case; empty without any."""
    return " ".join(map(verdict_said, verdicts(study)))


def verdict_said(verdict: Conclusion) -> str:
    """The verdict in a sentence or two, with its doubts."""
    cause = "nothing" if verdict.cause == NONE else verdict.cause
    told = "; ".join([verdict.why, *verdict.doubts])
    begun = told if told.startswith("gRPC") else told[:1].upper() + told[1:]
    return f"What slows gRPC here ({verdict.case}): {cause}. {begun}."


def contention_tables(study: Study) -> Iterator[Table]:
    """The arms and the evidence of each case."""
    figures = published_figures(study)
    for verdict in verdicts(study):
        yield arms_table(study, verdict, figures)
        yield evidence_table(verdict)


def arms_table(study: Study, verdict: Conclusion, figures: Figures) -> Table:
    """One row for each arm: what was varied, and what came of it."""
    columns: Sequence[Columns[ArmRuns]] = (
        cell("arm", _named, numeric=False),
        cell("images/s", _rate),
        cell("published", lambda arm, notes: _published(arm.planned[0], figures, notes)),
        text("over HTTP", lambda arm: _over_http(ratio_of(verdict.arms, arm.code, "R0"))),
        text("TCP", lambda arm: MISSING if arm.connections is None else str(arm.connections)),
        text("channels", lambda arm: arm.planned[0].channels or MISSING, numeric=False),
        text("workers", lambda arm: str(arm.axes.workers)),
        text("limit", lambda arm: arm.limit or MISSING, numeric=False),
    )
    return study_table(
        study,
        f"HTTP against gRPC: {verdict.case}",
        "The same load; what varies is how many TCP connections carry it, and from how many processes. Own: "
        "one for each user; equal: channels of equal arguments; processes: one channel in each. Images/s are "
        "medians (lowest–highest of the repeats) of runs that are not disqualified, or only as client-bound; "
        "TCP are the connections that the kernel saw.",
        columns,
        verdict.arms.values(),
    )


def _named(arm: ArmRuns, notes: StudyNotes) -> TableCell:
    endpoint = arm.planned[0].endpoint
    return notes.head(f"{endpoint}, {arm.words}", endpoint)


def _rate(arm: ArmRuns, notes: StudyNotes) -> TableCell:
    rate, reasons = arm.rate, list(taints(arm.runs or arm.planned))
    lacking = [] if rate or reasons else [absence(arm.planned)]
    return TableCell(str(rate) if rate else MISSING, notes.marks([*reasons, *lacking]))


def _published(run: Summary, figures: Figures, notes: StudyNotes) -> TableCell:
    theirs = beside(run, figures.get(run.link, ())) if as_published(run) else None
    return sourced(RATE(theirs), theirs, notes) if theirs else TableCell(MISSING)


def _over_http(found: Spread | None) -> str:
    return f"{digits(found.median)}×" if found else MISSING


def evidence_table(verdict: Conclusion) -> Table:
    """One row for each question that was asked of the arms, and what the answer says."""
    cause = "nothing slows gRPC" if verdict.cause == NONE else verdict.cause
    caption = f"Verdict: {cause}. {verdict.advice}" if verdict.advice else f"Verdict: {cause}."
    rows = ((line.question, line.verdict, line.figures or MISSING) for line in verdict.evidence)
    return table_of(f"Evidence: {verdict.case}", ("question", "says", "measured"), rows, caption=caption)


def record(verdict: Conclusion) -> dict[str, Any]:
    """The verdict as study.json has it."""
    return {
        "case": verdict.case._asdict(),
        "cause": verdict.cause,
        "why": verdict.why,
        "advice": verdict.advice,
        "missing": list(verdict.missing),
        "contradictions": list(verdict.contradictions),
        "doubts": list(verdict.doubts),
        "arms": [_arm(verdict, arm) for arm in verdict.arms.values()],
        "evidence": [
            {name: getattr(line, name) for name in ("question", "figures", "verdict", "says")}
            for line in verdict.evidence
        ],
    }


def _arm(verdict: Conclusion, arm: ArmRuns) -> dict[str, Any]:
    rate, over_http = arm.rate, ratio_of(verdict.arms, arm.code, "R0")
    return {
        "arm": arm.code,
        "words": arm.name,
        "cell": arm.planned[0].cell,
        "runs": len(arm.runs),
        **arm.axes._asdict(),
        "tcp_connections": arm.connections,
        "images_per_s": rate and rate.median,
        "images_per_s_low": rate and rate.low,
        "images_per_s_high": rate and rate.high,
        "over_http": over_http and over_http.median,
        "limit": arm.limit,
    }


CONTENTION = Question(
    name="contention",
    section="HTTP against gRPC",
    place=1,
    shows=contention_tables,
    finds=contention_finding,
    theme=Theme.CAUSE,
)
