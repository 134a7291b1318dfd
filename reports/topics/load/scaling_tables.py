"""Tables of growth: throughput against users with its saturation and law, and efficiency over units."""

from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import repeats, resting_on, scarcity, taints
from reports.page.table import Cell, Notes, Table
from reports.published_figures.growth import SCALING, of_growth
from reports.stats.spread import Spread
from reports.stats.usl import Fit, NoFit, Peak
from reports.study.study_reports import Study
from reports.topics.load.saturation import Curve, Knee, NoKnee, curves
from reports.topics.load.scaling import Scaling, Step, scalings
from reports.topics.payloads.matrix import images_per_s

HEADS = (
    *("endpoint", "batch", "saturated at users", "p95 ms there", "p95 ms at the next"),
    *("highest images/s", "σ", "κ", "peak users", "peak images/s", "R²"),
)
NO_FIT, NOT_REACHED, NO_PEAK = "no fit", "not reached", "no peak"
EXTRAPOLATED = "outside the levels that were tested: an extrapolation"


def usl_table(study: Study) -> Table:
    """One row for each way and batch that was run at two or more levels of closed load."""
    notes = Notes()
    found = curves(study)
    rows = tuple(_row(study, curve, notes) for curve in found)
    said = disclosures(study, (curve.way.endpoint for curve in found))
    return Table(
        "Growth with users",
        "Saturated: the fewest users with 95 % of the highest images/s. By the Universal Scalability Law, σ "
        "is the share of the work that is done one at a time, κ what each pair of users costs, with 95 % "
        "intervals; beyond the peak, more users make it slower. docs/analysis.md says when there is no fit.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(HEADS))),
        shared=(repeats(study), *(text for text in said if text not in notes.texts)),
    )


def _row(study: Study, curve: Curve, notes: Notes) -> tuple[Cell, ...]:
    said = stand_in(study, curve.way.endpoint)
    highest = curve.highest
    rate = _spread(highest.rate, notes.marks(taints(highest.runs)))
    return (
        Cell(study.named(curve.way), notes.marks([said] if said else [])),
        Cell(str(curve.batch)),
        *_saturation(curve.knee, notes),
        rate,
        *_law(curve.fit, notes),
    )


def _saturation(knee: Knee | NoKnee, notes: Notes) -> tuple[Cell, ...]:
    if isinstance(knee, NoKnee):
        return Cell(NOT_REACHED if knee.rising else MISSING, notes.marks([knee.reason])), *_dashes(2)
    begins = "" if knee.before is None else f" (above {knee.before:g})"
    users = Cell(f"{knee.at.users:g}{begins}", notes.marks(knee.doubts), knee.at.users)
    return users, _spread(knee.at.p95_ms), _spread(knee.after.p95_ms)


def _spread(found: Spread | None, marks: tuple[int, ...] = ()) -> Cell:
    return Cell(MISSING) if found is None else Cell(str(found), marks, found.median)


def _law(fit: Fit | NoFit, notes: Notes) -> tuple[Cell, ...]:
    if isinstance(fit, NoFit):
        return Cell(NO_FIT, notes.marks([f"{NO_FIT}: {fit.reason}"])), *_dashes(4)
    shares = (Cell(str(share), (), share.value) for share in (fit.sigma, fit.kappa))
    return *shares, *_peak(fit.peak, fit.no_peak, notes), Cell(digits(fit.r_squared), (), fit.r_squared)


def _peak(peak: Peak | None, reason: str, notes: Notes) -> tuple[Cell, Cell]:
    if peak is None:
        return Cell(NO_PEAK, notes.marks([f"{NO_PEAK}: {reason}"])), Cell(MISSING)
    marks = notes.marks([EXTRAPOLATED] if peak.extrapolated else [])
    return Cell(str(peak.users), marks, peak.users.value), Cell(digits(peak.rate), marks, peak.rate)


def _dashes(count: int) -> tuple[Cell, ...]:
    return (Cell(MISSING),) * count


def scaling_table(study: Study) -> Table:
    """One row for each number of model instances, GPUs or workers that a load was run with."""
    notes = Notes()
    found = scalings(study)
    rows = tuple(_step(scaling, step, notes) for scaling in found for step in scaling.steps)
    return Table(
        "Scaling efficiency",
        "Images/s over what the fewest units promise: n times as much for n times as many. Medians, and in "
        "brackets the least and the most that the repeats of both allow. Workers make the same users' "
        "requests: with more of them the rate grows only where the client was in the way. The limit is what "
        "kept each from going faster: only where that is the server does this say how servers grow.",
        ("cell", "of", "units", "images/s", "times", "efficiency %", "limit"),
        rows,
        notes.texts,
        numeric=frozenset({2, 3, 4, 5}),
        shared=(SCALING,) if of_growth(study) and found else (),
    )


def _step(scaling: Scaling, step: Step, notes: Notes) -> tuple[Cell, ...]:
    """The doubts of a rate stand beside it, those of both rates and of their repeats beside their ratios."""
    fewest = min(scaling.by_units)
    runs, least = (resting_on(scaling.by_units[units], images_per_s) for units in (step.units, fewest))
    of_rate, compared = notes.marks(taints(runs)), step.units > fewest
    doubts = [*taints([*runs, *least]), scarcity([len(runs), len(least)])] if compared else []
    of_ratios = notes.marks(text for text in doubts if text)
    head = (Cell(runs[0].cell), Cell(scaling.unit), Cell(str(step.units)), _spread(step.rate, of_rate))
    limits = dict.fromkeys(run.limit.code for run in runs if run.limit)
    ratios = (_spread(step.times, of_ratios), _spread(step.efficiency_pct, of_ratios))
    return *head, *ratios, Cell(", ".join(limits) or MISSING)
