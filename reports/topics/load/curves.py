"""Throughput and p95 latency against the number of users, with the fitted law and the knee."""

from collections.abc import Iterator, Sequence
from typing import Any

from reports.format import plural
from reports.page.chart import Chart, rounded
from reports.page.disclosures import disclosures
from reports.stats.spread import Spread
from reports.stats.usl import Fit
from reports.study.study_reports import Study
from reports.topics.load.saturation import Curve, Knee, Point, curves

STEPS = 40
TITLE = "Throughput and p95 against users"
CAPTION = (
    "Medians of the repeats, with a line from the lowest to the highest. The ring is the knee: the fewest "
    "users that reach 95 % of the highest throughput. Dotted: the Universal Scalability Law, where the data "
    "carry it."
)
HOLLOW = "Hollow points rest on disqualified runs; neither knee nor law rests on them."
PANELS = ({"key": "rate", "title": "Throughput, images/s"}, {"key": "p95", "title": "p95 latency, ms"})


def curves_chart(study: Study) -> Chart | None:
    """The chart; None where no way was measured at two levels."""
    found = curves(study)
    if not found:
        return None
    doubted = any(point.tainted for curve in found for point in curve.points)
    notes = (*([HOLLOW] if doubted else []), *_knees(found))
    data = {"panels": PANELS, "series": [_series(curve) for curve in found]}
    caption = " ".join((CAPTION, *disclosures(study, [curve.way.endpoint for curve in found])))
    return Chart(TITLE, caption, "curves", data, notes=notes)


def _name(curve: Curve) -> str:
    return f"{curve.name}, batch {curve.batch}"


def _knees(found: Sequence[Curve]) -> Iterator[str]:
    """Where each curve's knee lies, or why it has none; the same said once for all that share it."""
    said: dict[str, list[str]] = {}
    for curve in found:
        said.setdefault(_knee_said(curve), []).append(_name(curve))
    yield from (f"Knee of {'; '.join(names)}: {text}." for text, names in said.items())


def _knee_said(curve: Curve) -> str:
    if not isinstance(curve.knee, Knee):
        return curve.knee.reason
    between = "" if curve.knee.before is None else f", somewhere above {curve.knee.before:g}"
    return "; ".join((f"{plural(round(curve.knee.at.users), 'user')}{between}", *curve.knee.doubts))


def _series(curve: Curve) -> dict[str, Any]:
    return {
        "name": _name(curve),
        "batch": curve.batch,
        "points": [_point(point) for point in curve.points],
        "knee": curve.knee.at.users if isinstance(curve.knee, Knee) else None,
        "fit": _law(curve.fit) if isinstance(curve.fit, Fit) else None,
    }


def _point(point: Point) -> dict[str, Any]:
    spreads = _spread("rate", point.rate) | _spread("p95", point.p95_ms)
    return {"users": point.users, "doubted": point.tainted, **spreads}


def _spread(key: str, spread: Spread | None) -> dict[str, float | None]:
    names = (key, f"{key}_low", f"{key}_high")
    values = (spread.median, spread.low, spread.high) if spread else (None, None, None)
    return {name: rounded(value) for name, value in zip(names, values, strict=True)}


def _law(fit: Fit) -> list[tuple[float | None, float | None]]:
    """The fitted curve between the lowest and the highest level, evenly on the axis of doublings."""
    low, high = fit.levels
    users = (low * (high / low) ** (step / STEPS) for step in range(STEPS + 1))
    return [(rounded(at), rounded(fit.rate_at(at))) for at in users]
