"""The page of verdicts alone: what a terminal shows after judging."""

from collections.abc import Sequence

from reports.gates.table import gates_finding
from reports.gates.verdict import Verdict
from reports.page import Page, facts, gate_command, gates_section
from reports.study import Study, notices


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
