"""Is the server warm? Decided from the last seconds of a warm-up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from reports.histogram import codec
from swarm.distributed.phase_stats import PhaseStats, SecondStats

WINDOWS = 3
LEAST_RESULTS = 3
RATE_TOLERANCE = 0.10
TIME_TOLERANCE = 0.20
TIME_SLACK_NS = 500_000
"""Half a millisecond matters to nobody here, and is a large share of a null model's time."""


@dataclass(frozen=True)
class Slice:
    """Whole seconds in a row with enough results to judge."""

    seconds: int
    finished: int
    p95_ns: float

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return self.finished / self.seconds


def doubt(seconds: Sequence[SecondStats], compute_ns: Sequence[float]) -> str:
    """Why the server cannot be called steady yet, or nothing.

    `compute_ns`: the server's compute time per execution in each second that had one; empty where it does not
    say. Steady: the last three windows agree on throughput within 10 % (and one request, which an edge may
    cut), and on the 95th percentile within 20 %; so do the last three compute times.
    """
    if len(seconds) < WINDOWS:
        return f"too few seconds for {WINDOWS} windows"
    slices = sliced(seconds)[-WINDOWS:]
    if len(slices) < WINDOWS:
        return f"too few results for {WINDOWS} windows"
    rates, p95s_ns = [found.per_s for found in slices], [found.p95_ns for found in slices]
    edge = max(1 / found.seconds for found in slices)
    if spread(rates) > RATE_TOLERANCE * median(rates) + edge:
        return f"throughput still moves: {listed(rates)} requests/s"
    if spread(p95s_ns) > TIME_TOLERANCE * median(p95s_ns) + TIME_SLACK_NS:
        return f"p95 still moves: {listed([value / 1e6 for value in p95s_ns])} ms"
    last_ns = compute_ns[-WINDOWS:]
    if compute_ns and len(last_ns) < WINDOWS:
        return f"too few compute times for {WINDOWS} windows"
    if last_ns and spread(last_ns) > TIME_TOLERANCE * median(last_ns) + TIME_SLACK_NS:
        return f"the server's compute time still moves: {listed([value / 1e6 for value in last_ns])} ms"
    return ""


class Steadiness:
    """Ends a warm-up: once the server is steady, or after `cap_s`, and then with a doubt."""

    def __init__(self, cap_s: float) -> None:
        self._cap_s = cap_s
        self._judged = -1
        self.doubt = "not judged"

    def over(self, phase_stats: PhaseStats, elapsed_s: float) -> bool:
        """Whether the warm-up may end; judged anew with each complete second."""
        if phase_stats.complete != self._judged:
            self._judged = phase_stats.complete
            self.doubt = doubt(phase_stats.seconds, phase_stats.compute_ns)
        if self.doubt and elapsed_s >= self._cap_s:
            self.doubt = f"not steady after {self._cap_s:g} s of warm-up: {self.doubt}"
            return True
        return not self.doubt


def sliced(seconds: Sequence[SecondStats]) -> list[Slice]:
    """Seconds joined from the last one backwards, until each slice has enough results; oldest first."""
    slices: list[Slice] = []
    held: list[SecondStats] = []
    for second in reversed(seconds):
        held.append(second)
        finished = sum(one.finished for one in held)
        latencies = [text for one in held for text in one.latencies]
        if finished >= LEAST_RESULTS and latencies:
            (p95_ns,) = codec.percentiles_ns(codec.merged(latencies), [95.0])
            slices.insert(0, Slice(len(held), finished, p95_ns or 0.0))
            held = []
        if len(slices) == WINDOWS:
            break
    return slices


def spread(values: Sequence[float]) -> float:
    """The greatest difference."""
    return max(values) - min(values)


def listed(values: Sequence[float]) -> str:
    """`14.1, 18.2, 12`."""
    return ", ".join(f"{value:.3g}" for value in values)
