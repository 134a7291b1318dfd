"""What other cells of a study say of a run's limit: those with more users, and those with more connections.

What is full gives no more to more users, so the next level takes back what it contradicts. With repeats, a
gain is sure where the lowest of the higher level is above the highest of the lower one. That there is none
is sure where no repeat of the one is above any of the other by what a gain would be.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from reports.fold.server import Batches
from reports.format import plural
from reports.limit import UNKNOWN, Limit
from reports.limits.batching import WORTH, of_batches, pooled, server_of
from reports.limits.rules import nothing_measured, room_unseen
from reports.limits.server import held_back
from reports.summary.summary import Summary

NO_GAIN = 0.05
"""Of the images a second: repeats of one cell differ by as much."""
LEAST_STEP = 1.25
"""Times the users or the connections: that fewer more of them bring next to nothing is no wonder."""
CONNECTIONS, OFFERED, NOT_FULL = "connections", "offered-load", "batches-not-full"
FULL = frozenset(
    {
        *("server-queue", "server-compute", "server-preprocess", "server-intake"),
        *("link", "downlink", CONNECTIONS),
    }
)
"""The limits that say that something takes no more load."""
NO_EVIDENCE = ("client-", "server-cold", "throttled", "cpu-stolen")
"""How the limits of runs begin whose images a second are not what server and path could do."""
ADD_USERS = "Add users: the next level of this study got more images/s."
UNTESTED = "untested: no cell of this study has more connections"
UNSOUND = "untested: those cells of this study that have more connections are no evidence"
Groups = Mapping[Hashable, Sequence[Summary]]


@dataclass(frozen=True)
class Neighbour:
    """The sound repeats of another cell, and the images a second of those of a cell that it is beside."""

    runs: Sequence[Summary]
    here: Sequence[float]

    @property
    def rates(self) -> list[float]:
        """Images a second of its repeats."""
        return rates_of(self.runs)

    @property
    def gain(self) -> float:
        """How much more the median is, as a share."""
        return median(self.rates) / median(self.here) - 1

    @property
    def gains(self) -> bool:
        """Whether it surely got so much more that the other was not full."""
        return self.gain > WORTH and min(self.rates) > max(self.here)

    @property
    def stalls(self) -> bool:
        """Whether it surely got next to nothing more."""
        return self.gain < NO_GAIN and max(self.rates) / min(self.here) - 1 < WORTH

    @property
    def connections(self) -> int:
        """The most that were seen; 0 where that is not known."""
        return most_connections(self.runs)

    @property
    def limit(self) -> str:
        """The code of its limit, empty where its repeats have several."""
        codes = {run.limit.code for run in self.runs if run.limit}
        return codes.pop() if len(codes) == 1 else ""

    def said(self, who: str, than: str) -> str:
        """16 users got 45 % more images/s than 4; 16 users gained only 2 % over 4."""
        percent = round(100 * self.gain)
        if percent < 0:
            return f"{who} got {-percent} % fewer images/s than {than}"
        return (
            f"{who} gained only {percent} % over {than}"
            if self.stalls
            else f"{who} got {percent} % more images/s than {than}"
        )


@dataclass(frozen=True)
class Cells:
    """The sound runs of a study by what they have in common."""

    repeats: Groups
    but_level: Groups
    but_channels: Groups
    begun: Groups
    """All runs that were begun, sound or not, as `but_channels` has them."""

    @classmethod
    def of(cls, runs: Sequence[Summary]) -> "Cells":
        """Those of a study's runs."""
        sound = [run for run in runs if is_sound(run)]
        return cls(
            _grouped(sound, _cell),
            _grouped(sound, _but_level),
            _grouped(sound, _but_channels),
            _grouped((run for run in runs if run.started), _but_channels),
        )

    def above(self, run: Summary, least_step: float = 1.0) -> Neighbour | None:
        """The next level with sound runs and so many times the users, all else being equal."""
        here = rates_of(self.repeats.get(run.cell, ()))
        if run.load != "closed" or not here:
            return None
        higher = [one for one in self.but_level.get(_but_level(run), ()) if one.level > run.level]
        levels = {one.level for one in higher if one.level >= least_step * run.level}
        return Neighbour([one for one in higher if one.level == min(levels)], here) if levels else None

    def more_connections(self, run: Summary) -> list[Neighbour]:
        """The cells of the same load whose channels or workers brought more connections."""
        own = self.repeats.get(run.cell, ())
        here, least = rates_of(own), LEAST_STEP * most_connections(own)
        alike = self.but_channels.get(_but_channels(run), ()) if here and least else ()
        found = [Neighbour(those, here) for those in _grouped(alike, _channels).values()]
        return [one for one in found if one.connections >= least]

    def untested(self, run: Summary) -> str:
        """Why more connections are no evidence where `more_connections` finds none."""
        sound, begun = (
            {_channels(one) for one in runs.get(_but_channels(run), ())}
            for runs in (self.but_channels, self.begun)
        )
        return UNSOUND if begun - sound - {_channels(run)} else UNTESTED


def among_neighbours(runs: Sequence[Summary]) -> tuple[Summary, ...]:
    """A study's runs, each with the limit that the others leave standing."""
    curves, cells = pooled(runs), Cells.of(runs)
    limits = [run.limit and standing(run, run.limit, cells, curves.get(server_of(run), {})) for run in runs]
    return tuple(replace(run, limit=limit) for run, limit in zip(runs, limits, strict=True))


def is_sound(run: Summary) -> bool:
    """Whether a run's images a second say what server and path could do at its load."""
    if run.limit is None or run.tainted or nothing_measured(run):
        return False
    return bool(run.counts.images_per_s) and not run.limit.code.startswith(NO_EVIDENCE)


def standing(run: Summary, limit: Limit, cells: Cells, curve: Batches) -> Limit:
    """A run's limit after what executions of all sizes and the neighbours say, or another in its place."""
    above, far = cells.above(run), cells.above(run, LEAST_STEP)
    better = of_batches(run, curve)
    if better and not _refuted(better, above, far):
        return _beside(better, run, above)
    if above and above.gains and limit == room_unseen(run):
        return Limit(OFFERED, f"{_users(above, run)}, so nothing was full", ADD_USERS)
    if limit.code == CONNECTIONS:
        return _connections(run, limit, cells)
    if above and above.gains and limit.code in FULL:
        return _not_full(run, limit, above)
    if far and far.stalls and limit.code == OFFERED:
        return _stalled(run, far)
    return limit


def _refuted(better: Limit, above: Neighbour | None, far: Neighbour | None) -> bool:
    """More users fill batches that are not full, and bring nothing to one that executes images one by one."""
    if better.code == NOT_FULL:
        return far is not None and far.stalls
    return better.code == "batching-off" and above is not None and above.gains


def _beside(better: Limit, run: Summary, above: Neighbour | None) -> Limit:
    if above is None or better.code != NOT_FULL:
        return better
    gained = above.gains and not better.advice.startswith("Add users")
    advice = f"{ADD_USERS} {better.advice}" if gained else better.advice
    return Limit(NOT_FULL, f"{better.evidence}; {_users(above, run)}", advice)


def _not_full(run: Summary, limit: Limit, above: Neighbour) -> Limit:
    said = f"{_users(above, run)}, so nothing was full; {limit.evidence}"
    advice = ADD_USERS
    if limit.code == "server-queue" and held_back(run):
        advice += (
            " Or lower the batching delay (--queue-delay-us), which is most of what a request waits for."
        )
    return Limit(OFFERED, said, advice)


def _stalled(run: Summary, far: Neighbour) -> Limit:
    said = f"{_users(far, run)}, and nothing was seen to be full"
    if far.limit and far.limit not in (OFFERED, UNKNOWN):
        advice = "More users would not help: see the level above, whose limit is named."
        return Limit(UNKNOWN, f"{said}; {plural(round(far.runs[0].level), 'user')} had {far.limit}", advice)
    advice = (
        "More users would not help: look for what states no times of its own and takes requests one by one, "
        "such as a proxy or the server's front end."
    )
    return Limit(UNKNOWN, said, advice)


def _connections(run: Summary, limit: Limit, cells: Cells) -> Limit:
    """Claimed only if more connections carried more, where some cell had more of them."""
    own, above, far = most_connections([run]), cells.above(run), cells.above(run, LEAST_STEP)
    others = cells.more_connections(run)
    best = max(others, key=lambda one: one.gain, default=None)
    if above and above.gains and not (best and best.gain > above.gain):
        return _not_full(run, limit, above)
    if best is None and far and own and far.connections >= LEAST_STEP * own:
        best = far
    if best is None:
        return replace(limit, evidence=f"{limit.evidence}; {cells.untested(run)}")
    said = best.said(plural(best.connections, "connection"), f"{own:,}")
    if not best.stalls:
        return replace(limit, evidence=f"{limit.evidence}; {said}")
    advice = "More connections would not help: look at the link and at what is behind it."
    return Limit(UNKNOWN, f"{said}, so they are not what limits it; {limit.evidence}", advice)


def _users(other: Neighbour, run: Summary) -> str:
    return other.said(plural(round(other.runs[0].level), "user"), f"{run.level:g}")


def rates_of(runs: Iterable[Summary]) -> list[float]:
    """The images a second of those runs that had any."""
    return [rate for run in runs if (rate := run.counts.images_per_s)]


def most_connections(runs: Iterable[Summary]) -> int:
    """That were seen at once in some of these runs; 0 where that is not known."""
    return max((run.tcp_connections or 0 for run in runs), default=0)


def _grouped(runs: Iterable[Summary], key: Callable[[Summary], Hashable]) -> dict[Hashable, list[Summary]]:
    found: dict[Hashable, list[Summary]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def _cell(run: Summary) -> str:
    return run.cell


def _alike(run: Summary) -> tuple[Hashable, ...]:
    way = run.endpoint, run.backend, run.protocol, run.payload, run.batch, run.load
    return *way, run.model, run.codec, run.shares, run.space


def _but_level(run: Summary) -> Hashable:
    return *_alike(run), *run.others()


def _but_channels(run: Summary) -> Hashable:
    return *_alike(run), run.level, *run.others("channels", "topology")


def _channels(run: Summary) -> Hashable:
    return run.channels, run.topology
