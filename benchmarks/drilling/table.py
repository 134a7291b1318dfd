"""The table of the drills, for the terminal and for benchmarks/README.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.drilling.drill import Outcome
from benchmarks.generating.page import write_page
from reports.format import plural

BEGIN, END = "<!-- drills: begin -->", "<!-- drills: end -->"


def line(outcome: Outcome) -> str:
    """A drill that is over, as it comes."""
    drill = outcome.drill
    parts = [
        f"  {drill.name:<18}{outcome.verdict:<9}{drill.cause}",
        f"      expected  {drill.expected.told()}",
        f"      seen      {found(outcome)}",
        *(f"      WRONG     {text}" for text in outcome.wrong),
    ]
    return "\n".join(parts)


def markdown(outcomes: Sequence[Sequence[Outcome]]) -> str:
    """A row for each drill: how often it went as expected, and what was seen the last time."""
    rows = ["| fault | expected | seen | as expected |", "|---|---|---|---|"]
    for of_one in outcomes:
        last, right = of_one[-1], sum(outcome.verdict == "yes" for outcome in of_one)
        verdict = last.verdict if last.skipped else f"{right} of {len(of_one)}"
        cells = (last.drill.cause, last.drill.expected.told(), found(last), verdict)
        rows.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(rows)


def write(facts: str, outcomes: Sequence[Sequence[Outcome]]) -> None:
    """Replace what an earlier run left in benchmarks/README.md."""
    write_page(facts, markdown(outcomes), BEGIN, END)


def about(rounds: int, seconds: float) -> str:
    """When and on what, as a list in Markdown."""
    return "\n".join((
        f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {plural(rounds, 'round')} in {seconds / 60:.1f} minutes",
        f"- {os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}",
    ))  # fmt: skip


def escaped(text: str) -> str:
    """As a cell of a table in Markdown."""
    return text.replace("|", "\\|")


def found(outcome: Outcome) -> str:
    """What was seen, or why nothing was."""
    return outcome.seen or outcome.skipped or "; ".join(outcome.wrong)
