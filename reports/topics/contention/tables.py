"""HTTP against gRPC as a reader sees it: a sentence, the arms with their figures, the evidence."""

from collections.abc import Iterator
from typing import Any

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.table import Footnotes, Table, TableCell
from reports.published_figures.figures import beside
from reports.published_figures.rates import Figures, as_published, sourced
from reports.stats.repeats import absence, taints
from reports.study.study import Study
from reports.topics.contention.arms import ArmRuns, ratio_of
from reports.topics.contention.verdict import NONE, Cause

ARM_HEADS = ("arm", "images/s", "published", "over HTTP", "TCP", "channels", "workers", "limit")


def verdict_said(verdict: Cause) -> str:
    """The verdict in a sentence or two, with its doubts."""
    cause = "nothing" if verdict.cause == NONE else verdict.cause
    told = "; ".join([verdict.why, *verdict.doubts])
    begun = told if told.startswith("gRPC") else told[:1].upper() + told[1:]
    return f"What slows gRPC here ({verdict.case}): {cause}. {begun}."


def contention_tables(study: Study, found: tuple[Cause, ...], figures: Figures) -> Iterator[Table]:
    """The arms and the evidence of each case."""
    for verdict in found:
        yield arms_table(study, verdict, figures)
        yield evidence_table(verdict)


def arms_table(study: Study, verdict: Cause, figures: Figures) -> Table:
    """One row for each arm: what was varied, and what came of it."""
    notes = Footnotes()
    rows = tuple(_row(study, verdict, arm, figures, notes) for arm in verdict.arms.values())
    said = disclosures(study, (arm.planned[0].endpoint for arm in verdict.arms.values()))
    return Table(
        f"HTTP against gRPC: {verdict.case}",
        "The same load; what varies is how many TCP connections carry it, and from how many processes. Own: "
        "one for each user; equal: channels of equal arguments; processes: one channel in each. Images/s are "
        "medians (lowest–highest of the repeats) of runs that are not disqualified, or only as client-bound; "
        "TCP are the connections that the kernel saw.",
        ARM_HEADS,
        rows,
        notes.texts,
        numeric=frozenset({1, 2, 3, 4, 6}),
        shared=tuple(text for text in said if text not in notes.texts),
    )


def _row(
    study: Study, verdict: Cause, arm: ArmRuns, figures: Figures, notes: Footnotes
) -> tuple[TableCell, ...]:
    run, over_http = arm.planned[0], ratio_of(verdict.arms, arm.code, "R0")
    said = stand_in(study, run.endpoint)
    theirs = beside(run, figures.get(run.link, ())) if as_published(run) else None
    rate, reasons = arm.rate, dict.fromkeys(taints(arm.runs) if arm.runs else taints(arm.planned))
    lacking = () if rate or reasons else (absence(arm.planned),)
    return (
        TableCell(f"{run.endpoint}, {arm.words}", notes.marks([said] if said else [])),
        TableCell(str(rate) if rate else MISSING, notes.marks([*reasons, *lacking])),
        sourced(theirs.images_per_s, theirs, notes) if theirs else TableCell(MISSING),
        TableCell(f"{digits(over_http.median)}×" if over_http else MISSING),
        TableCell(MISSING if arm.connections is None else str(arm.connections)),
        TableCell(run.channels or MISSING),
        TableCell(str(arm.axes.workers)),
        TableCell(arm.limit or MISSING),
    )


def evidence_table(verdict: Cause) -> Table:
    """One row for each question that was asked of the arms, and what the answer says."""
    cause = "nothing slows gRPC" if verdict.cause == NONE else verdict.cause
    caption = f"Verdict: {cause}. {verdict.advice}" if verdict.advice else f"Verdict: {cause}."
    rows = tuple(
        (TableCell(line.question), TableCell(line.verdict), TableCell(line.figures or MISSING))
        for line in verdict.evidence
    )
    return Table(f"Evidence: {verdict.case}", caption, ("question", "says", "measured"), rows)


def record(verdict: Cause) -> dict[str, Any]:
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
            {
                "question": line.question,
                "figures": line.figures,
                "verdict": line.verdict,
                "says": dict(line.says),
            }
            for line in verdict.evidence
        ],
    }


def _arm(verdict: Cause, arm: ArmRuns) -> dict[str, Any]:
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
