"""Thresholds that may stop a study: what the current measure phase says about them, second by second.

A machine that is slow for some seconds is no broken bound. So all seconds together may have been unlucky by
as much as seconds that vary and are alike explain (`unlucky`), and the bound must be broken beyond that, by
what the requests themselves tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt

from scipy.special import ndtri

from reports.caveats.client import own_slowness
from reports.fold.run_records import RunRecords
from reports.format import NS_PER_MS
from reports.gates.absolute import of_seconds, percentile_ns
from reports.gates.require import FAILURE_RATIO, PERCENTILES
from reports.gates.select import cells_of
from reports.gates.thresholds import Threshold
from reports.gates.verdict import Claim, measured
from reports.histogram.percentiles import Distribution
from reports.ledger.ledger import Tag, tag_of
from reports.stats.shares import LEAST_BLOCKS, Share
from reports.summary.blocks import MOST_BLOCKS, BlockSeries, Counts, RunBlocks
from swarm.output.run_fold import LiveSecond
from users.load.assignment import MOST_AT_ONCE

CERTAIN = 0.001
"""The highest chance that a threshold stops a study that meets its bound, all runs and looks together."""
LOOK_S = 5
"""Seconds between looks; the first comes after this long, or after abort_after_s."""
ALIKE = 0.8
"""The most that a second's slowness, or its failures, correlates with the next second's."""
TIMES_VARY, FAILURES_VARY = 0.15, 1.0
"""How much seconds differ at most: standard deviations of the logarithms of their times, and of the
odds that a request fails."""


@dataclass(frozen=True)
class StopReason:
    """Which threshold stopped the study, and for what: `why` is a sentence without its cell and full stop.

    The ledger's footer has it as it is.
    """

    threshold: int
    require: str
    cell: str
    repeat: int
    why: str


class EarlyStop:
    """Follows the seconds of a study.

    There are to be so many `runs` at most, which share the chance that a threshold stops them wrongly.
    """

    def __init__(self, thresholds: Iterable[Threshold], runs: int) -> None:
        self._thresholds, self._runs = tuple(thresholds), runs
        self._phases: dict[Tag, Phase] = {}
        """Of the latest runs, those under way among them."""
        self.stop: StopReason | None = None
        """The claim that has become certain, if any."""

    def on_second(self, second: LiveSecond) -> None:
        """Takes in a second of the run under way; only those of its measure phase count."""
        if "measure" not in second.here.phases or second.revision or self.stop:
            return
        tag = tag_of(second.run.planned)
        if tag not in self._phases:
            latest = list(self._phases.items())[1 - MOST_AT_ONCE :]
            self._phases = {**dict(latest), tag: self._begun(second.run)}
        self.stop = self._phases[tag].add(second)

    def _begun(self, run: RunRecords) -> Phase:
        planned = {run.planned["cell"]: {**run.planned, **run.planned["topology"]._asdict()}}
        chosen = [one for one in self._thresholds if cells_of(one, planned)]
        return Phase(run, chosen, self._runs)


class Phase:
    """A measure phase so far, one of so many `runs`, for the thresholds that are of its cell."""

    def __init__(self, run: RunRecords, thresholds: Sequence[Threshold], runs: int) -> None:
        self.run = run
        self._thresholds, self._runs = thresholds, runs
        self._looks = {one.number: 0 for one in thresholds}
        self._first_s = 0
        self._blocks = RunBlocks()

    def add(self, second: LiveSecond) -> StopReason | None:
        """Takes in a second, and says what is certain with those before it."""
        if not self._thresholds:
            return None
        self._first_s = self._first_s or second.at
        if found := second.here.results.get("measure"):
            self._blocks.merge(second.at, found)
        if len(self._blocks) > MOST_BLOCKS:
            self._blocks.widen()
        looks = (self._look_at(one, second.at + 1 - self._first_s) for one in self._thresholds)
        return next(filter(None, looks), None)

    def _look_at(self, threshold: Threshold, elapsed_s: int) -> StopReason | None:
        if threshold.counts:
            # Where nothing may fail, one failure says all.
            due = self._blocks.failures > 0 and elapsed_s >= (threshold.abort_after_s or 0)
            return self._stop(threshold, self._seconds()) if due else None
        look, before = look_at(threshold, elapsed_s), self._looks[threshold.number]
        self._looks[threshold.number] = look
        if look == before or not self._beyond(threshold):
            return None
        seconds, chance = self._seconds(), chance_of(look, self._runs)
        certain = is_certain(threshold, seconds, self._blocks.width_s, chance)
        return self._stop(threshold, seconds) if certain and not self._excused(threshold) else None

    def _seconds(self) -> BlockSeries:
        return BlockSeries.of([self._blocks])

    def _beyond(self, threshold: Threshold) -> bool:
        """Whether the estimate itself is beyond what is tolerated, as it hardly ever is."""
        whole = self.run.windows
        if threshold.require.column not in PERCENTILES:
            return whole.failures > threshold.tolerated * whole.finished
        name, percent = PERCENTILES[threshold.require.column]
        value_ns = percentile_ns(whole.histogram(name), whole.failures, percent)
        return value_ns > threshold.tolerated * NS_PER_MS

    def _stop(self, threshold: Threshold, seconds: BlockSeries) -> StopReason:
        evidence = of_seconds(threshold, seconds, 1)
        claim = Claim(threshold=threshold, cell=self.run.planned["cell"], evidence=evidence)
        why = f"{measured(claim)}: the study was stopped"
        cell, repeat = tag_of(self.run.planned)
        return StopReason(threshold.number, threshold.require.text, cell, repeat, why)

    def _excused(self, threshold: Threshold) -> bool:
        """Whether times may be the generator's own, and so say nothing of the server; failures never are."""
        if threshold.require.column not in PERCENTILES:
            return False
        latency = Distribution.of(self.run.windows.histogram("latency"))
        return bool(own_slowness(self.run.health.found(), latency))


def look_at(threshold: Threshold, elapsed_s: int) -> int:
    """Which look at a threshold is due after so many seconds of a phase, from 1 on; 0 before the first."""
    first_s = max(float(LOOK_S), threshold.abort_after_s or 0)
    return 1 + int((elapsed_s - first_s) // LOOK_S) if elapsed_s >= first_s else 0


def chance_of(look: int, runs: int) -> float:
    """What one look may spend of the chance to be wrong: those of all looks at so many runs add up to it."""
    return CERTAIN / runs / (look * (look + 1))


def unlucky(threshold: Threshold, seconds: int, chance: float) -> Threshold:
    """The same with the bound that so many seconds exceed only with this chance while its own is kept."""
    require, deviations = threshold.require, float(-ndtri(chance)) * sqrt(variance(seconds))
    if require.column in PERCENTILES:
        bound = require.bound * exp(TIMES_VARY * deviations)
    else:
        odds = require.bound * exp(FAILURES_VARY * deviations)
        bound = odds / (1 - require.bound + odds)
    # a fail takes more than what is tolerated, too
    stricter = replace(require, bound=max(bound, threshold.tolerated))
    return replace(threshold, require=stricter, least_effect=0.0)


def variance(seconds: int) -> float:
    """Of the mean of so many values of variance 1 whose neighbours are alike (AR(1))."""
    rest = 2 * ALIKE * (1 - ALIKE**seconds) / (1 - ALIKE)
    return (seconds * (1 + ALIKE) - rest) / (1 - ALIKE) / seconds**2


def is_certain(threshold: Threshold, seconds: BlockSeries, width_s: int, chance: float) -> bool:
    """Whether blocks of so many seconds each show it, at this chance of being wrong.

    A percentile's bound is broken for certain where successes beyond it are too many of all requests, or
    failures alone are.
    """
    if len(seconds.blocks) < LEAST_BLOCKS:
        return False
    strict = unlucky(threshold, width_s * len(seconds.blocks), chance / 2).require
    failures, finished = seconds.failed()
    if strict.column not in PERCENTILES:
        return _is_above(share_of(failures, finished, width_s), strict.bound, chance / 2)
    name, percent = PERCENTILES[strict.column]
    late, _ = seconds.beyond(name, strict.bound * NS_PER_MS)
    if _is_above(share_of(late, finished, width_s), 1 - percent / 100, chance / 4):
        return True
    return is_certain(failing_beyond(threshold, 1 - percent / 100), seconds, width_s, chance / 4)


def failing_beyond(threshold: Threshold, share: float) -> Threshold:
    """A bound on failures in place of one on a percentile, which leaves this share of requests beyond it."""
    require = replace(threshold.require, column=FAILURE_RATIO, bound=share)
    return replace(threshold, require=require, least_effect=0.0)


def _is_above(found: Share, allowed: float, chance: float) -> bool:
    return found.share > allowed and found.p_beyond(allowed, above=True) <= chance


def share_of(hits: Counts, requests: Counts, width_s: int) -> Share:
    """The share of hits; what its blocks differ by beyond chance is as alike as it may be at most.

    How alike they are is not taken from them, as a verdict does: few blocks do not tell.
    """
    whole, count = float(requests.sum()), len(requests)
    share = float(hits.sum()) / max(1.0, whole)
    by_chance = share * (1 - share) / max(1.0, whole)
    if by_chance <= 0:
        return Share(share, whole)
    errors = hits - share * requests
    beyond_chance = max(0.0, float(errors @ errors) * count / (count - 1) / whole**2 - by_chance)
    alike = count * variance(count * width_s) / variance(width_s)
    return Share(share, whole * by_chance / (by_chance + beyond_chance * alike))
