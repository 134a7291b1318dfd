"""What caused the difference between HTTP and gRPC: a verdict or what it lacks, the arms and the evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reports.format import MISSING, digits, multiple
from reports.limit import UNKNOWN
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, study_table, text
from reports.page.table import Table, TableCell, table_of
from reports.published_figures.figures import RATE, Figures, as_published, beside, published_figures, sourced
from reports.stats.repeats import absence, hedge, taints
from reports.study.study import Study
from reports.summary.summary import Summary
from reports.topics.contention.advice import ADVICE, beside_connections, limits_advice
from reports.topics.contention.arms import BASE_ARMS, PROTOCOLS, ArmRuns, Arms, Case, cases, ratio_of
from reports.topics.contention.experiments import (
    AGAINST,
    CONNECTIONS,
    CPU,
    FOR,
    LIBRARY,
    LOOP,
    MUST_FIT,
    QUESTIONS,
    SLOWER,
    UNTELLING,
    ExperimentAnswer,
    each_user,
)
from reports.topics.contention.senders import (
    sender_pairs,
    senders_record,
    senders_said,
    slower_on_one,
)
from reports.topics.contention.shared_server import explains_nothing

NONE, INCONCLUSIVE = "none", UNKNOWN
UNSURE = 0.67
"""Of HTTP's images/s: where the repeats allow gRPC to have less, it is not known to keep up."""
KIN = (CPU, LOOP, LIBRARY)
"""What a client's process has for itself: more processes help against all of them."""
DECIDING = ("R0", "R1", "R2", "R4", "R5", "R6", "R8", "R9")


@dataclass(frozen=True)
class Conclusion:
    """What slows gRPC in one case: a limit's code, `none`, or `inconclusive`, and why in a sentence.

    `missing` are the arms that it would need, `contradictions` the answers that do not fit together,
    `doubts` what else limits it.
    """

    case: Case
    arms: Arms
    evidence: tuple[ExperimentAnswer, ...]
    cause: str
    why: str
    advice: str = ADVICE[INCONCLUSIVE]
    missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def verdicts(study: Study) -> tuple[Conclusion, ...]:
    """One for each load that was sent over both protocols with more than one kind of channels."""
    return tuple(judge(case, arms) for case, arms in cases(study))


def judge(case: Case, arms: Arms) -> Conclusion:
    """The verdict on one case, from its arms alone."""
    missing = lacking(arms, ("R0", "R2"))
    lines = () if missing else tuple(question(arms) for question in QUESTIONS)
    verdict = Conclusion(case, arms, lines, INCONCLUSIVE, "", missing=missing, doubts=tuple(doubts(arms)))
    found = ratio_of(arms, "R2", "R0")
    if found is None:
        return replace(verdict, why=f"not tested: {'; '.join(missing)}")
    if found.median >= SLOWER:
        return _alike(verdict)
    if found.high >= 1:
        spread = f"{digits(found.low)} to {digits(found.high)} of HTTP's"
        return replace(verdict, why=f"the repeats overlap: gRPC's images/s are {spread}")
    if missing := lacking(arms, ("R4",)):
        return replace(verdict, why=f"not tested: {'; '.join(missing)}", missing=missing)
    return _explained(verdict)


def _alike(verdict: Conclusion) -> Conclusion:
    """gRPC is not slower: what limits both of them then, by the rules for a limit."""
    arms, found = verdict.arms, ratio_of(verdict.arms, "R2", "R0")
    share = f"gRPC on one connection gets {found} of HTTP's images/s"
    if found and found.low < UNSURE:
        return replace(verdict, why=f"{share}: the repeats disagree")
    http, grpc = arms["R0"].limit or INCONCLUSIVE, arms["R2"].limit or INCONCLUSIVE
    limit = f"the limit of both is {http}" if http == grpc else f"HTTP's limit is {http}, gRPC's {grpc}"
    cause = LIBRARY if slower_on_one(sender_pairs(arms)) else NONE
    # Where nothing is slower, nothing speaks for a cause of it.
    told = [
        {it: word for it, word in line.says.items() if word == AGAINST or it == cause}
        for line in verdict.evidence
    ]
    lines = tuple(replace(line, says=says) for line, says in zip(verdict.evidence, told, strict=True))
    advice = ADVICE[LIBRARY] if cause == LIBRARY else limits_advice(arms, grpc)
    why = f"{share}; {limit}{_senders_said(arms)}"
    return replace(verdict, cause=cause, why=why, advice=advice, evidence=lines)


def _senders_said(arms: Arms) -> str:
    """What our own wire and grpcio got, and whether it matters which of them sends; empty without a test."""
    pairs = sender_pairs(arms)
    by_connections = each_user(arms).says.get(CONNECTIONS) == FOR
    return f"; {senders_said(pairs, by_connections)}" if pairs and all(it.as_many for it in pairs) else ""


def _explained(verdict: Conclusion) -> Conclusion:
    """What accounts for gRPC being slower; R0, R2 and R4 have figures."""
    arms, each = verdict.arms, each_user(verdict.arms)
    if not each.answered:
        return replace(verdict, why=f"a channel for each user was no test: {each.figures}")
    said = each.says.get(CONNECTIONS)
    if said == FOR:
        return _concluded(verdict, CONNECTIONS, f"{ADVICE[CONNECTIONS]} {beside_connections(arms)}")
    if said != AGAINST:
        rest = f"its limit is then {arms['R4'].limit or 'not known'}"
        share = f"{ratio_of(arms, 'R4', 'R0')} of HTTP's images/s"
        return replace(verdict, why=f"a connection for each user brings gRPC to {share} only; {rest}")
    by_limits = [
        limit for code in ("R4", "R2") if (limit := arms[code].limit) not in (CONNECTIONS, *UNTELLING)
    ]
    by_test = [CPU for line in verdict.evidence if line.decides and line.says.get(CPU) == FOR]
    unlike = [why for limit in by_limits if (why := explains_nothing(arms, limit))]
    for cause in (*by_limits, *by_test):
        if not explains_nothing(arms, cause):
            return _concluded(verdict, cause, limits_advice(arms, cause) or ADVICE.get(cause, ""))
    changes_nothing = "a connection for each user changes nothing, and no limit of gRPC's was found"
    return replace(verdict, why=next(iter(unlike), changes_nothing))


def _concluded(verdict: Conclusion, cause: str, advice: str) -> Conclusion:
    """The cause, unless an experiment speaks against it or for another one."""
    rivals = [line for line in verdict.evidence if _opposes(line, cause)]
    if rivals:
        told = tuple(f"{line.question} {line.figures}: {line.verdict}" for line in rivals)
        return replace(verdict, why=f"{cause} would explain it, but: {'; '.join(told)}", contradictions=told)
    one, each, http = (verdict.arms[code].rate for code in ("R2", "R4", "R0"))
    why = f"gRPC gets {one} images/s on one connection, {each} with one for each user, and HTTP {http}"
    if cause == CONNECTIONS and "R1" in verdict.arms and (alone := verdict.arms["R1"].rate):
        why += f"; HTTP on one connection gets {alone}"
    why += _senders_said(verdict.arms)
    yet = [f"yet {line.figures}" for line in verdict.evidence if line.says.get(cause) == AGAINST]
    return replace(verdict, cause=cause, why=why, advice=advice, doubts=(*verdict.doubts, *yet))


def _opposes(line: ExperimentAnswer, cause: str) -> bool:
    """Whether an experiment's answer does not fit a cause."""
    if not line.decides or not line.answered:
        return False
    kin: Sequence[str] = KIN if cause in KIN else (cause,)
    against = any(line.says.get(it) == AGAINST for it in kin)
    other = any(word == FOR and it not in kin for it, word in line.says.items())
    unmet = cause == CONNECTIONS and line.question in MUST_FIT and line.says.get(cause) != FOR
    return against or other or unmet


def lacking(arms: Arms, codes: Sequence[str]) -> tuple[str, ...]:
    """The arms without a figure, in words, with the reason."""
    words = {
        code: f"{PROTOCOLS[protocol]}, {said} (--channels {channels})"
        for code, said, protocol, channels in BASE_ARMS
    }
    return tuple(
        f"{words[code]}: {_why_none(arms[code])}" if code in arms else words[code]
        for code in codes
        if code not in arms or arms[code].rate is None
    )


def _why_none(arm: ArmRuns) -> str:
    if not any(run.started for run in arm.planned):
        return "not run"
    codes = dict.fromkeys(caveat.code for run in arm.planned for caveat in run.caveats if caveat.tainted)
    return f"invalidated by {', '.join(codes)}" if codes else "no request succeeded"


def doubts(arms: Arms) -> Iterator[str]:
    """How few runs are behind the arms that decide, and connections that were not counted."""
    behind = [arms[code] for code in DECIDING if code in arms and arms[code].rate]
    if behind and (few := hedge(min(len(arm.runs) for arm in behind))):
        yield few
    if uncounted := [arm.name for arm in behind if arm.connections is None]:
        yield f"the kernel's count of TCP connections is missing for: {'; '.join(uncounted)}"


CAUSES = {
    NONE: "nothing slows it",
    INCONCLUSIVE: "the cause is not known",
    CONNECTIONS: "too few TCP connections",
    CPU: "the client's CPU",
    LOOP: "the client's event loop",
    LIBRARY: "the client's gRPC library",
}
"""In words; other causes are limits by their names."""


def contention_answer(study: Study) -> AnswerRow | None:
    """The cause in each case, and why; None without any."""
    found = verdicts(study)
    if not found:
        return None
    each = [f"{_cause(verdict)}{f' ({verdict.case})' if found[1:] else ''}" for verdict in found]
    said = "; ".join(each)
    return AnswerRow("What slows gRPC", f"{said[:1].upper()}{said[1:]}.", " ".join(map(verdict_said, found)))


def _cause(verdict: Conclusion) -> str:
    """In a few words, unconfirmed where an arm that decides has a single run."""
    behind = [arm for code, arm in verdict.arms.items() if code in DECIDING and arm.rate]
    single = verdict.cause != INCONCLUSIVE and any(len(arm.runs) == 1 for arm in behind)
    return f"{cause_said(verdict)}{' (unconfirmed: 1 run)' if single else ''}"


def cause_said(verdict: Conclusion) -> str:
    """The cause in a few words."""
    return CAUSES.get(verdict.cause, verdict.cause.replace("-", " "))


def verdict_said(verdict: Conclusion) -> str:
    """Why, with its doubts, and what to do where a cause was found."""
    told = "; ".join([verdict.why, *verdict.doubts])
    begun = told if told.startswith("gRPC") else told[:1].upper() + told[1:]
    return f"{begun}." if verdict.cause in (NONE, INCONCLUSIVE) else f"{begun}. {verdict.advice}"


def contention_tables(study: Study) -> Iterator[Table]:
    """The arms and the evidence of each case."""
    figures = published_figures(study)
    for verdict in verdicts(study):
        yield arms_table(study, verdict, figures)
        yield evidence_table(verdict)


def arms_table(study: Study, verdict: Conclusion, figures: Figures) -> Table:
    """One row for each arm: what was varied, and what came of it."""
    ratios = {code: ratio_of(verdict.arms, code, "R0") for code in verdict.arms}
    published: Columns[ArmRuns] = cell(
        "published", lambda arm, notes: _published(arm.planned[0], figures, notes)
    )
    columns: Sequence[Columns[ArmRuns]] = (
        cell("arm", _named, numeric=False),
        cell("images/s", _rate),
        *([published] if study.of_published_study else []),
        text("over HTTP", lambda arm: f"{multiple(it.median)}×" if (it := ratios[arm.code]) else MISSING),
        text("TCP", lambda arm: MISSING if arm.connections is None else str(arm.connections)),
        text("channels", lambda arm: arm.planned[0].channels or MISSING, numeric=False),
        text("workers", lambda arm: str(arm.axes.workers)),
        text("limit", lambda arm: arm.limit or MISSING, numeric=False),
    )
    return study_table(
        study,
        f"HTTP against gRPC: {verdict.case}",
        "The same load; what varies is how many TCP connections carry it, and from how many processes. Own: "
        "one for each user; equal: channels of equal arguments, which grpcio joins; processes: one channel "
        "in each. Own wire is the suite's own HTTP/2, grpcio the library. Images/s are medians "
        "(lowest–highest of the repeats) of runs that are not invalidated, or only as client-bound; "
        "TCP are the connections that the kernel saw.",
        columns,
        verdict.arms.values(),
    )


def _named(arm: ArmRuns, notes: StudyNotes) -> TableCell:
    endpoint = arm.planned[0].endpoint
    return TableCell(f"{endpoint}, {arm.words}")


def _rate(arm: ArmRuns, notes: StudyNotes) -> TableCell:
    rate, reasons = arm.rate, list(taints(arm.runs or arm.planned))
    lacking = [] if rate or reasons else [absence(arm.planned)]
    return TableCell(str(rate) if rate else MISSING, notes.marks([*reasons, *lacking]))


def _published(run: Summary, figures: Figures, notes: StudyNotes) -> TableCell:
    theirs = beside(run, figures.get(run.link, ())) if as_published(run) else None
    return sourced(RATE(theirs), theirs, notes) if theirs else TableCell(MISSING)


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
        "senders": senders_record(sender_pairs(verdict.arms)),
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
    "contention", "HTTP against gRPC", (contention_tables,), contention_answer, Theme.CAUSE, place=1
)
