"""The cells that have finished, as the page's and the tab's tables show them."""

from typing import Any

from reports.format import MISSING, digits, ms
from reports.summary.summary import Summary

TAB = (
    *(("cell", "Cell"), ("repeat", "Repeat"), ("rate", "Images/s"), ("p50", "p50 (ms)")),
    *(("p95", "p95 (ms)"), ("p99", "p99 (ms)"), ("failures", "Failures"), ("limit", "Bottleneck")),
    ("caveats", "Caveats"),
)
"""Key and head of the columns of the table in Locust's page."""


def cell_of(run: Summary) -> dict[str, Any]:
    """A finished run in words and figures: bottleneck and caveats with what to do about them."""
    limit = run.limit
    return {
        "cell": run.cell,
        "repeat": run.repeat,
        "status": run.status,
        "tainted": run.tainted,
        "images_per_s": MISSING if run.counts.images_per_s is None else digits(run.counts.images_per_s),
        **{name: ms(getattr(run.latency, f"{name}_ns")) for name in ("p50", "p95", "p99")},
        "failures": MISSING if run.counts.failures is None else f"{run.counts.failures:,}",
        "limit": limit and {"code": limit.code, "text": limit.evidence, "advice": limit.advice},
        "caveats": [
            {"code": caveat.code, "text": caveat.text, "advice": caveat.advice, "tainted": caveat.tainted}
            for caveat in run.caveats
        ],
    }


def tab_row(cell: dict[str, Any], number: int) -> dict[str, Any]:
    """One row of the table in Locust's page, which sorts numbers only where they are numbers."""
    return {
        "name": f"{number:05d}",
        "cell": cell["cell"],
        "repeat": cell["repeat"],
        "rate": number_of(cell["images_per_s"]),
        **{name: number_of(cell[name]) for name in ("p50", "p95", "p99", "failures")},
        "limit": cell["limit"]["code"] if cell["limit"] else MISSING,
        "caveats": ", ".join(dict.fromkeys(caveat["code"] for caveat in cell["caveats"])),
    }


def number_of(text: str) -> float | str:
    """What was shown, as a number; a dash stays one."""
    return text if text == MISSING else float(text.replace(",", ""))
