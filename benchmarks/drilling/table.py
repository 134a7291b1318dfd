"""The table of the drills, for the terminal and for benchmarks/README.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.drilling.drill import Outcome

PAGE = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- drills: begin -->", "<!-- drills: end -->"


def line(outcome: Outcome) -> str:
    """A drill that is over, as it comes."""
    drill = outcome.drill
    parts = [
        f"  {drill.name:<16}{outcome.verdict:<9}{drill.cause}",
        f"      expected  {drill.expected.told()}",
        f"      seen      {outcome.seen or outcome.skipped}",
        *(f"      WRONG     {text}" for text in outcome.wrong),
    ]
    return "\n".join(parts)


def markdown(outcomes: Sequence[Sequence[Outcome]]) -> str:
    """A row for each drill: how often it went as expected, and what was seen the last time."""
    rows = ["| fault | expected | seen | as expected |", "|---|---|---|---|"]
    for of_one in outcomes:
        last, right = of_one[-1], sum(outcome.verdict == "yes" for outcome in of_one)
        verdict = last.verdict if last.skipped else f"{right} of {len(of_one)}"
        cells = (last.drill.cause, last.drill.expected.told(), last.seen or last.skipped, verdict)
        rows.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(rows)


def escaped(text: str) -> str:
    """As a cell of a table in Markdown."""
    return text.replace("|", "\\|")
