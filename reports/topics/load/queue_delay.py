"""How long a server should let requests wait for others: a load over several queue delays, and the best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from reports.page.grid import COMPARABLE_RUNS, Runs, Value, resting_on
from reports.stats.log_ratio import log_ratio
from reports.stats.spread import Spread, spread_of
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.load.open_load import latency_ms
from reports.topics.payloads.matrix import images_per_s

DELAY = "delay-"
"""What the part of a variant begins with that names a queue delay."""


def p95_ms(run: Summary) -> float | None:
    """The p95 latency in milliseconds."""
    return latency_ms(run, "p95")


@dataclass(frozen=True)
class Setting:
    """One queue delay: all repeats of its cell, and over those that count images per second and p95 in ms."""

    delay_us: int
    runs: Runs
    rate: Spread | None
    p95_ms: Spread | None

    @property
    def sound(self) -> bool:
        """Whether a conclusion may rest on it."""
        behind = resting_on(self.runs, images_per_s)
        return bool(self.rate and self.p95_ms) and not any(run.tainted for run in behind)

    @property
    def name(self) -> str:
        """For people: 0.5 ms."""
        return f"{self.delay_us / 1000:.10g} ms"


@dataclass(frozen=True)
class Best:
    """The setting that is best by some value, and the others that repeats do not tell from it.

    `compared` is whether there are repeats that could, of it and of each other sound one.
    """

    setting: Setting
    alike: tuple[Setting, ...]
    compared: bool


@dataclass(frozen=True)
class Sweep:
    """One load of one endpoint, by queue delay, shortest first; `name` is its way without the delay."""

    name: str
    endpoint: str
    batch: int
    load: str
    level: float
    settings: tuple[Setting, ...]

    @property
    def where(self) -> str:
        """batch 1 and 32 users."""
        many = f"{self.level:g} requests/s" if self.load == "open" else f"{self.level:g} users"
        return f"batch {self.batch} and {'1 user' if many == '1 users' else many}"

    @property
    def unranked(self) -> str:
        """Why no setting has the most images/s: the rate is asked for, or nobody is there to share with."""
        if self.load == "open":
            return "open load: the rate is asked for, and no setting's speed"
        return "one user has nobody to share an execution with" if self.level == 1 else ""

    def fastest(self, bound_ms: float | None = None) -> Best | None:
        """The one with the most images/s, of those with p95 within the bound in each repeat; or None."""
        if self.unranked:
            return None
        kept = [it for it in self._sound() if bound_ms is None or (it.p95_ms and it.p95_ms.high <= bound_ms)]
        return _best(kept, images_per_s, most=True)

    def quickest(self) -> Best | None:
        """The one with the lowest p95; None where none is sound."""
        return _best(self._sound(), p95_ms, most=False)

    def _sound(self) -> list[Setting]:
        return [setting for setting in self.settings if setting.sound]


def _best(settings: Sequence[Setting], value: Value, most: bool) -> Best | None:
    if not settings:
        return None
    sides = {setting.delay_us: _values(setting, value) for setting in settings}
    sign = 1 if most else -1
    best = max(settings, key=lambda setting: sign * median(sides[setting.delay_us]))
    others = [setting for setting in settings if setting is not best]
    compared = all(len(side) >= COMPARABLE_RUNS for side in sides.values())
    alike = [it for it in others if _alike(sides[best.delay_us], sides[it.delay_us])]
    return Best(best, tuple(alike), compared)


def _values(setting: Setting, value: Value) -> list[float]:
    return [found for run in resting_on(setting.runs, value) if (found := value(run))]


def _alike(best: Sequence[float], other: Sequence[float]) -> bool:
    """Whether both have repeats, and an interval of their ratio that holds 1."""
    found = log_ratio(best, other)
    return found.low is not None and not found.significant


def sweeps(study: Study) -> tuple[Sweep, ...]:
    """Each load that was run with two queue delays or more, all else being equal; no floors, no search."""
    if (study.header.get("options") or {}).get("find_rate"):
        return ()
    found: dict[tuple[object, ...], list[Summary]] = {}
    ordered = sorted(study.runs, key=lambda run: study.ways.index(run.way))
    for run in ordered:
        if run.queue_delay_us is not None and not run.is_floor:
            found.setdefault(_else(run), []).append(run)
    made = (_sweep(runs) for runs in found.values())
    every = [sweep for sweep in made if len(sweep.settings) > 1]
    place = study.endpoints.index
    return tuple(sorted(every, key=lambda it: (place(it.endpoint), it.name, it.batch, it.level)))


def _sweep(runs: Runs) -> Sweep:
    run = runs[0]
    return Sweep(_name(run), run.endpoint, run.batch, run.load, run.level, tuple(_settings(runs)))


def _settings(runs: Runs) -> Iterator[Setting]:
    for delay_us in sorted({run.queue_delay_us for run in runs if run.queue_delay_us is not None}):
        own = [run for run in runs if run.queue_delay_us == delay_us]
        behind = resting_on(own, images_per_s)
        yield Setting(delay_us, own, spread_of(behind, images_per_s), spread_of(behind, p95_ms))


def _name(run: Summary) -> str:
    parts = (part for part in run.variant.split("/") if part and not part.startswith(DELAY))
    return f"{run.endpoint} {'/'.join(parts)}".rstrip()


def _else(run: Summary) -> tuple[object, ...]:
    """All that must be alike for runs to differ in the queue delay alone."""
    load = (run.endpoint, run.batch, run.load, run.arrivals, run.level)
    how = (run.channels, run.client, run.link, run.congestion)
    return (*load, *how, run.workers_asked, run.hosts_asked, run.instances_asked, _name(run))
