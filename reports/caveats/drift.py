"""Which caveats a run deserves because its latency changed while it was measured: when, and by how much."""

from collections.abc import Iterator, Sequence

import numpy as np

from reports.caveat import Caveat, caveat
from reports.caveats.change import LEAST_CHANGE, LatencyChange, LatencySeries, change_of
from reports.fold.records import epoch_s
from reports.fold.run_records import RunRecords
from reports.format import digits, ms
from reports.summary.slices import Slice, sliced, start_up

WARM_UP, MEASURE = "warm-up", "measure"


def drift_caveats(run: RunRecords) -> Iterator[Caveat]:
    """At most one: of a run whose load had no course, and whose measure phase is over."""
    if run.planned["stages"] or run.planned["asked"]:
        return
    begins = [(epoch_s(line["utc"]), line["phase"]) for line in run.of_kind("phase")]
    places = [place for place, (_, phase) in enumerate(begins) if phase == MEASURE]
    if not places or places[0] + 1 == len(begins):
        return
    place = places[0]
    began_s, ended_s = (round(begins[at][0]) for at in (place, place + 1))
    warmed_s = round(begins[place - 1][0]) if place and begins[place - 1][1] == WARM_UP else began_s
    found = changed(_slices(run, warmed_s, began_s), _slices(run, began_s, ended_s))
    if found:
        yield told(found, began_s, run.planned["load"])


def changed(warm_up: Sequence[Slice], measured: Sequence[Slice]) -> LatencyChange | None:
    """What changed in the measure phase: as it shows there, or else together with the warm-up before it.

    Of the warm-up what follows its start-up counts, or all of a short ramp: the load is the same. A step in
    it, or where the measure phase begins, is none of the measure phase, and of a slope only what passes there
    is compared with the least change. Fewer than ten slices together are not judged.
    """
    if not measured:
        return None
    if found := change_of(series(measured)):
        return found
    kept = warm_up[start_up(np.array([one.log_ns for one in warm_up])) :]
    found = change_of(series([*kept, *measured]))
    if found is None:
        return None
    began_s, passed_s = measured[0].at_s, measured[-1].at_s - measured[0].at_s
    later = found.from_s > began_s if found.is_step else abs(found.per_s) * passed_s >= LEAST_CHANGE
    return found if later else None


def series(slices: Sequence[Slice]) -> LatencySeries:
    """What is tested for a change."""
    return LatencySeries(
        np.array([float(one.at_s) for one in slices]), np.array([one.log_ns for one in slices])
    )


def told(found: LatencyChange, began_s: int, load: str) -> Caveat:
    """In words, `began_s` being the second in which the measure phase began.

    Latency that rises under an open load, by a slope or at once, is what too high a rate does.
    """
    went = f"from {ms(found.before_ns)} to {ms(found.after_ns)} ms ({found.percent:+.0f} %)"
    rises = found.size > 0
    queue = load == "open" and rises
    if found.is_step:
        at = f"{found.from_s - began_s:,.0f} s into the measure phase"
        return caveat("rising-latency" if queue else "regime-change", f"mean latency went {went} {at}")
    over_s, early_s = found.to_s - found.from_s, began_s - found.from_s
    early = f", of which {early_s:,.0f} s before the measure phase" if early_s > 0 else ""
    said = f"mean latency {'rose' if rises else 'fell'} {went} over {over_s:,.0f} s{early}"
    a_second = f"{digits(100 * abs(found.per_s))} % a second"
    return caveat("rising-latency" if queue else "drift", f"{said}: {a_second}")


def _slices(run: RunRecords, first_s: int, end_s: int) -> list[Slice]:
    """Of the spans that lie wholly in these seconds, whatever phase their requests began in.

    Under a load that goes on from one phase to the next the requests that end in a second are of both.
    """
    last = end_s - run.bins.width_s
    spans = ((at, run.seconds[at]) for at in sorted(run.seconds) if first_s <= at <= last)
    return sliced(
        [(at, [found.histogram("latency") for found in second.results.values()]) for at, second in spans]
    )
