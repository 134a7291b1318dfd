"""The page of verdicts alone: what a terminal shows after judging."""

from collections.abc import Sequence

from reports.gates.verdict import Verdict
from reports.study.study_reports import Study, notices
from reports.topics.gates import gates_finding
from reports.topics.report import Page, facts, gate_command, gates_section


def gates_page(study: Study, place: str, verdicts: Sequence[Verdict]) -> Page:
    """Which study, what to know of it as a whole, and its gates."""
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        notices=tuple(notices(study)),
        findings=(gates_finding(verdicts),),
        sections=(gates_section(verdicts),),
        commands=(gate_command(place),),
    )
