"""Percentiles of the latest seconds, as the live chart shows them: one second seldom has results enough."""

from dataclasses import replace
from itertools import islice

from reports.fold.timeline import PERCENTS
from reports.histogram.buckets import Buckets, percentiles_ns, together
from reports.histogram.percentiles import least_results
from swarm.events import WindowEvent

MOST_SECONDS = 60
"""That are taken together: older ones are no longer what the server does now."""


class RecentLatencies:
    """The latencies of the latest seconds of one phase of each run that is under way."""

    def __init__(self) -> None:
        self._phases: dict[tuple[str, int], tuple[str, dict[int, Buckets]]] = {}

    def forget(self, cell: str, repeat: int) -> None:
        """A run is over."""
        self._phases.pop((cell, repeat), None)

    def with_percentiles(self, window: WindowEvent) -> WindowEvent:
        """A second with the percentiles of it and of as many before it as they take."""
        run = (window.cell, window.repeat)
        phase, seconds = self._phases.get(run, ("", {}))
        if phase != window.phase:
            seconds = {}
        self._phases[run] = window.phase, seconds
        ended = together(one.histogram("latency") for one in window.results.values())
        seconds[window.second] = ended
        latest = sorted((at for at in seconds if at <= window.second), reverse=True)
        for old in latest[MOST_SECONDS:]:
            del seconds[old]
        held = [seconds[at] for at in latest[:MOST_SECONDS]] if ended.total else []
        p50, p95, p99 = (_percentile_ns(held, percent) for percent in PERCENTS)
        return replace(window, latency_p50_ns=p50, latency_p95_ns=p95, latency_p99_ns=p99)


def _percentile_ns(latest_first: list[Buckets], percent: float) -> float | None:
    """Of the first few that have results enough; None where all of them have not."""
    results = 0
    for place, one in enumerate(latest_first, 1):
        results += one.total
        if results >= least_results(percent):
            return percentiles_ns(together(islice(latest_first, place)), [percent])[0]
    return None
