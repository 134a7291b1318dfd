"""What other cells of a study say of a run's limit: those with more users, and those with more connections.

What is full gives no more to more users, so the next level takes back what it contradicts. With repeats, a
gain is sure where the lowest of the higher level is above the highest of the lower one. That there is none
is sure where no repeat of the one is above any of the other by what a gain would be.

Executions that take longer beside others than alone, at the fewest users, slow each other down. Counters
cannot tell what they wait for: a lock, the device, or the cores that they share.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from reports.fold.records import ratio
from reports.fold.server import NOTHING, Batches
from reports.format import digits, ms, plural
from reports.limit import UNKNOWN, Limit
from reports.limits.batching import FILL, WORTH, of_batches, pooled, server_of
from reports.limits.cpu import client_stolen, client_throttled
from reports.limits.http2 import of_connection, streams_for_batches, waits_for_streams
from reports.limits.path import FULL_SHARE
from reports.limits.room import room_unseen
from reports.limits.rules import LEAST_SUCCESSES, nothing_measured
from reports.limits.server import MORE_INSTANCES, exhausted, held_back, wait_for_instance
from reports.limits.shares import MOST, held_ns
from reports.summary.link import carried_per_s, exceeds, link_rate
from reports.summary.summary import Summary, tainting

NO_GAIN = 0.05
"""Of the images a second: repeats of one cell differ by as much."""
LEAST_STEP = 1.25
"""Times the users or the connections: that fewer more of them bring next to nothing is no wonder."""
IN_PROPORTION, DOUBLE = 0.9, 2.0
"""Of the users' ratio, and how many times the users: over a smaller step, one queue that is busy 80 % of the
time gains as much in proportion."""
CONNECTIONS, OFFERED, NOT_FULL = "connections", "offered-load", "batches-not-full"
STREAMS, WINDOW = "streams", "http2-window"
OF_HOSTS = ("link", "downlink")
"""The limits that more hosts raise, each with a link of its own."""
OF_PATH = (*OF_HOSTS, "server-intake")
"""The limits whose advice says that more connections are no help."""
OF_SHARE = ("server-queue", "server-compute", "server-preprocess")
"""The limits that the server's share of the time gives where how busy it was is not known."""
FULL = frozenset({*OF_SHARE, *OF_PATH, CONNECTIONS, STREAMS, WINDOW})
"""The limits that say that something takes no more load."""
NO_EVIDENCE = ("client-", "server-cold")
"""How the limits of runs begin whose images a second are not what server and path could do."""
TAKEN = {"throttled": client_throttled, "cpu-stolen": client_stolen}
"""The limits of which the same holds if the client's rule gives them."""
REFUSED, FAILURES = ("server-full", "rate-limited"), frozenset({"failures"})
"""The limits of runs whose failures are refusals, so that what was admitted is what could be had; and what
invalidates such runs for other uses."""
ADD_USERS = "Add users: the next level of this study got more images/s."
UNFILLED = (
    "More users would not help, since batches are no larger where the requests for a full one wait: see "
    "preferred_batch_size, and set a longer batching delay."
)
GROWN, ALIKE = 1.25, 1.1
"""Times what one takes alone: more is contention, and less is none; runs of one cell differ by as much."""
LEAST_COUNTED = 5
"""Executions of a size in each of the two, so that a mean is no single hiccup."""
SAME_BATCH = 1.05
"""Times the mean executed batch, where the server does not tell executions by size."""
OF_WORK = ("server-queue", "server-compute")
"""The limits that more instances, or a faster device, are advised for."""
CONTENTION = (
    "More instances would not help, since executions slow each other down: look for a lock in the model or "
    "its libraries, and at the device and the cores that they share."
)
WITHIN_COMPUTE = (
    "More users would only wait longer: look for what requests wait for within compute, such as a lock, one "
    "worker for all, or the rest of a batch."
)
UNTESTED = "untested: no cell of this study has more connections"
UNSOUND = "untested: the cells with more connections were invalidated or did not finish"
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
class Beside:
    """The mean time of an execution here, and alone, at the fewest users; of `size` images, if that is known.

    `gain` is how many times the images a second of the fewest users came here.
    """

    here_ns: float
    alone_ns: float
    users: float
    gain: float
    size: int | None = None

    @property
    def growth(self) -> float:
        """Times what it takes alone."""
        return self.here_ns / self.alone_ns


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
        if not run.closed or not here:
            return None
        higher = [one for one in self.but_level.get(_but_level(run), ()) if one.level > run.level]
        levels = {one.level for one in higher if one.level >= least_step * run.level}
        return Neighbour([one for one in higher if one.level == min(levels)], here) if levels else None

    def below(self, run: Summary) -> tuple[float, Neighbour | None]:
        """The next level of at most half the users, all else being equal, and this one beside it."""
        own = self.repeats.get(run.cell, ())
        lower = [one for one in self.but_level.get(_but_level(run), ()) if one.level <= run.level / DOUBLE]
        level = max((one.level for one in lower), default=0.0)
        here = rates_of(one for one in lower if one.level == level)
        return level, Neighbour(own, here) if run.closed and own and here else None

    def fewest(self, run: Summary) -> Sequence[Summary]:
        """The runs of the lowest level, of at most half the users, all else being equal."""
        alike = self.but_level.get(_but_level(run), ()) if run.closed else ()
        level = min((one.level for one in alike), default=0.0)
        return [one for one in alike if one.level == level] if DOUBLE * level <= run.level else ()

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
    code = run.limit.code if run.limit else ""
    if not code or code.startswith(NO_EVIDENCE) or not run.counts.images_per_s:
        return False
    if code in REFUSED:
        return run.status == "done" and run.succeeded >= LEAST_SUCCESSES and tainting(run) <= FAILURES
    return not (run.tainted or nothing_measured(run) or (code in TAKEN and TAKEN[code](run)))


def standing(run: Summary, limit: Limit, cells: Cells, curve: Batches) -> Limit:
    """A run's limit after what executions of all sizes and the neighbours say, or another in its place."""
    above, far = cells.above(run), cells.above(run, LEAST_STEP)
    if better := _batches(run, curve, above, far):
        return better
    if above and above.gains and limit == room_unseen(run):
        return Limit(OFFERED, f"{_users(above, run.level)}, so nothing was full", ADD_USERS)
    if limit.code in (CONNECTIONS, STREAMS) or (limit.code == WINDOW and of_connection(run)):
        return _connections(run, limit, cells)
    if more := _more_carried(run, limit, cells, above):
        return more
    if above and above.gains and limit.code in FULL:
        return _not_full(run, limit, above)
    if found := compare_with_fewest(run, cells.fewest(run)):
        if slowed := find_contention(run, limit, found):
            return slowed
        if limit == wait_for_instance(run) and runs_free(run, found):
            return wait_for_instance(run, MORE_INSTANCES)
    if not far and (grown := _in_proportion(run, limit, cells)):
        return grown
    if far and far.stalls and limit.code == OFFERED:
        return _stalled(run, far)
    return limit


def _batches(run: Summary, curve: Batches, above: Neighbour | None, far: Neighbour | None) -> Limit | None:
    """What executions of all sizes say, with what more users gained; None where these refute it.

    They fill batches that are not full, unless the batcher leaves the requests for a full one waiting, here
    or there. They bring nothing to a server that executes images one by one.
    """
    better = of_batches(run, curve)
    if better is None or better.code != NOT_FULL:
        return None if better and better.code == "batching-off" and above and above.gains else better
    if waits_for_streams(run):
        return streams_for_batches(run, better)
    advice = better.advice
    if far and far.stalls and advice != FILL:
        if not any(_leaves_waiting(one, curve) for one in far.runs):
            return None
        above, advice = far, UNFILLED
    elif above and above.gains and not advice.startswith("Add users"):
        advice = f"{ADD_USERS} {advice}"
    beside = "" if above is None else f"; {_users(above, run.level)}"
    return Limit(NOT_FULL, f"{better.evidence}{beside}", advice)


def _leaves_waiting(run: Summary, curve: Batches) -> bool:
    found = of_batches(run, curve)
    return found is not None and found.advice == FILL


def _not_full(run: Summary, limit: Limit, above: Neighbour) -> Limit:
    said = f"{_users(above, run.level)}, so nothing was full; {limit.evidence}"
    advice = ADD_USERS
    if limit.code == "server-queue" and held_back(run):
        advice += (
            " Or lower the batching delay (--queue-delay-us), which is most of what a request waits for."
        )
    return Limit(OFFERED, said, advice)


def _stalled(run: Summary, far: Neighbour) -> Limit:
    said = f"{_users(far, run.level)}, and nothing was seen to be full"
    if far.limit and far.limit not in (OFFERED, UNKNOWN):
        advice = "More users would not help: see the level above, whose limit is named."
        return Limit(UNKNOWN, f"{said}; {plural(round(far.runs[0].level), 'user')} had {far.limit}", advice)
    advice = (
        "More users would not help: look for what states no times of its own and takes requests one by one, "
        "such as a proxy or the server's front end."
    )
    return Limit(UNKNOWN, said, advice)


def _more_carried(run: Summary, limit: Limit, cells: Cells, above: Neighbour | None) -> Limit | None:
    """Too few connections, where more of them surely gained, and more than more users did.

    A link at the rate that it was told to have stays full, unless those exceed this rate.
    """
    if limit.code not in OF_PATH:
        return None
    others = cells.more_connections(run)
    if limit.code in OF_HOSTS:
        others = [one for one in others if (one.runs[0].hosts or 1) <= (run.hosts or 1)]
    best = most_of(others)
    if best is None or not best.gains or (above and above.gains and above.gain >= best.gain):
        return None
    if limit.code == "link" and _at_told_rate(run) and not any(exceeds(one) for one in best.runs):
        return None
    way, said = best.runs[0].channels, f"{_more(best, run)}, so there is room for more; {limit.evidence}"
    more = f"connections, as there: --channels {way}" if way != run.channels else "workers, as there"
    return Limit(CONNECTIONS, said, f"A cell of this study got more images/s: use more {more}.")


def _at_told_rate(run: Summary) -> bool:
    rate, (carried, _) = link_rate(run), carried_per_s(run)
    return rate is not None and carried is not None and carried >= FULL_SHARE * rate


def _in_proportion(run: Summary, limit: Limit, cells: Cells) -> Limit | None:
    """The highest level, which is full by the server's share alone, though its images grew as the users did.

    That does not show room either: all instances may be busy just now.
    """
    told = run.server.busy is not None or any(step.busy is not None for step in run.server.steps.values())
    if limit.code not in OF_SHARE or told or held_back(run) or exhausted(run):
        return None
    level, grown = cells.below(run)
    if grown is None or not grown.gains or 1 + grown.gain < IN_PROPORTION * run.level / level:
        return None
    why = (
        f"{_users(grown, level)}, nearly in proportion, and how busy the server's instances were is not "
        f"known; {limit.evidence}"
    )
    return Limit(UNKNOWN, why, "Measure with more users, and see whether the rate grows.")


def _connections(run: Summary, limit: Limit, cells: Cells) -> Limit:
    """Claimed only if more connections carried more, where some cell had more of them."""
    own, above, far = most_connections([run]), cells.above(run), cells.above(run, LEAST_STEP)
    best = most_of(cells.more_connections(run))
    if above and above.gains and not (best and best.gain > above.gain):
        return _not_full(run, limit, above)
    if best is None and far and own and far.connections >= LEAST_STEP * own:
        best = far
    if best is None:
        return replace(limit, evidence=f"{limit.evidence}; {cells.untested(run)}")
    if best.gain > WORTH:
        return replace(limit, evidence=f"{limit.evidence}; {_more(best, run)}")
    how = "not help" if best.stalls else "help little"
    why = f"{_more(best, run)}, so they are not what limits it; {limit.evidence}"
    return Limit(UNKNOWN, why, f"More connections would {how}: look at the link and at what is behind it.")


def _more(other: Neighbour, run: Summary) -> str:
    return other.said(plural(other.connections, "connection"), f"{most_connections([run]):,}")


def _users(other: Neighbour, than: float) -> str:
    return other.said(plural(round(other.runs[0].level), "user"), f"{than:g}")


def most_of(others: Iterable[Neighbour]) -> Neighbour | None:
    """The one that gained most; None without any."""
    return max(others, key=lambda one: one.gain, default=None)


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


def compare_with_fewest(run: Summary, fewest: Sequence[Summary]) -> Beside | None:
    """The two of a run and those of its cell's fewest users; None where no size tells of both."""
    rates = [one.counts.images_per_s or 0.0 for one in fewest]
    if not rates or not median(rates):
        return None
    users, gain = fewest[0].level, (run.counts.images_per_s or 0.0) / median(rates)
    batches = [one.server.batches for one in fewest]
    counts = {
        size: (done.count, sum(one.get(size, NOTHING).count for one in batches))
        for size, done in run.server.batches.items()
    }
    size = max(counts, key=lambda one: min(counts[one]), default=None)
    if size is not None:
        alone = [one[size] for one in batches if size in one]
        if min(counts[size]) < LEAST_COUNTED:
            return None
        alone_ns = sum(one.time_ns for one in alone) / sum(one.count for one in alone)
        return Beside(run.server.batches[size].mean_ns, alone_ns, users, gain, size)
    told = [one.server.compute_ns for one in fewest if _executed_alike(run, one) and one.server.compute_ns]
    if not told or not run.server.compute_ns:
        return None
    return Beside(run.server.compute_ns, median(told), users, gain)


def _executed_alike(run: Summary, other: Summary) -> bool:
    """Whether both executed as much at once, or neither tells."""
    here, there = run.server.executed_batch, other.server.executed_batch
    if here is None or there is None:
        return here is there
    return 1 / SAME_BATCH <= (ratio(here, there) or 0.0) <= SAME_BATCH


def find_contention(run: Summary, limit: Limit, found: Beside) -> Limit | None:
    """Executions that slow each other, in place of a limit; None where they do not, or hold up little.

    Of one instance only one runs at a time.
    """
    instances = run.serving.instances if run.serving else None
    waited_ns = found.here_ns - found.alone_ns
    leads = limit.code in (OFFERED, UNKNOWN) and waited_ns >= MOST * (held_ns(run) or 0.0)
    if found.growth < GROWN or instances == 1 or not (leads or limit.code in OF_WORK):
        return None
    what = "compute of a request" if found.size is None else f"an execution of {plural(found.size, 'image')}"
    users = plural(round(found.users), "user")
    said = [f"{what} took {ms(found.here_ns)} ms, and {ms(found.alone_ns)} ms at {users}"]
    if run.server.busy is not None and instances:
        said.append(
            f"{digits(run.server.busy * instances)} of {instances:,} instances were executing at once"
        )
    device = exhausted(run)
    rest = [device] if device else []
    if found.gain > ALIKE:
        said.append(f"the rate was {digits(found.gain)} times that of {users}")
        return Limit("server-compute", "; ".join([*said, *rest]), CONTENTION)
    batch = "" if run.server.executed_batch is not None else ", or work on others of their batch"
    said.append(f"the rate was that of {users}, so {ms(waited_ns)} ms of it are waiting{batch}")
    if instances is None:
        return Limit("server-queue", "; ".join([*said, *rest]), WITHIN_COMPUTE)
    return Limit("server-compute", "; ".join([*said, *rest]), CONTENTION)


def runs_free(run: Summary, found: Beside) -> bool:
    """Whether several instances are shown not to slow each other."""
    several = run.serving is not None and (run.serving.instances or 0) > 1
    return several and found.users == 1 and found.growth <= ALIKE
