"""A study as a whole: its header, how it ended, one Summary for every planned run, and its seconds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

from reports.caveat import Trait, coded
from reports.caveats.repeats import compare_repeats
from reports.fold.records import epoch_s
from reports.fold.run_records import Bins, planned_runs, whole_plan
from reports.fold.server_facts import OperatorProfile, operator_profile
from reports.fold.timeline import TimelineSecond, timeline
from reports.format import plural
from reports.histogram.codec import Room
from reports.ledger.axes import ranks
from reports.ledger.ledger import (
    FILE_NAME,
    Outline,
    Record,
    Tag,
    check_header,
    damage_refused,
    outline,
    tag_of,
)
from reports.ledger.records import OF_RUNS, OF_STUDIES
from reports.limits.neighbours import among_neighbours
from reports.published_study import of_published_study
from reports.study.course import CourseRun, course_of
from reports.study.replay import ReplayedRun, replay_of
from reports.study.summarise import summarise
from reports.summary.blocks import NAMES, BlockSeries, RunBlocks, blocks_of
from reports.summary.summary import Summary, Way

MOST_SECONDS, MOST_OF_A_RUN = 20_000, 3_600
"""That a timeline has one by one: more than any chart can show, and 40 MB."""


@dataclass(frozen=True)
class Study:
    """What a ledger comes to; `status` is complete, interrupted, failed, or unfinished without a footer.

    `colds` are the first requests of each batch shape, in the order they were made. `operators` is the
    profile of the servers' model, None where the study had none made. `coarse` says how many
    seconds of the load one of the timeline is. `courses` are of runs whose load had a course, `replays` of
    those that replay a trace. `strange` are kinds of records that this program does not know. `footer` is
    empty without one. `missed` says which listeners of the study's events missed some. `blocks` are the
    seconds of each run's measure phase. `is_spread`: whether the ledger says when images were worked on,
    which those of older versions do not. `damage` says what of the ledger is lost, or was changed.
    """

    header: Record
    status: str
    reason: str
    cut_line: bool
    plan: tuple[Record, ...]
    colds: tuple[Record, ...]
    runs: tuple[Summary, ...]
    timeline: tuple[TimelineSecond, ...]
    coarse: int = 1
    courses: tuple[CourseRun, ...] = ()
    replays: tuple[ReplayedRun, ...] = ()
    operators: OperatorProfile | None = None
    strange: tuple[str, ...] = ()
    footer: Record = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    blocks: Mapping[Tag, RunBlocks] = field(default_factory=dict)
    is_spread: bool = False
    damage: tuple[str, ...] = ()

    @property
    def started(self) -> tuple[Summary, ...]:
        """The runs that were begun, in run order."""
        return tuple(run for run in self.runs if run.started)

    @property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """What the header says of each endpoint: url, model, weights, embedded."""
        endpoints: Mapping[str, Mapping[str, Any]] = self.header.get("endpoints") or {}
        return endpoints

    @cached_property
    def stand_ins(self) -> Mapping[str, str]:
        """By endpoint the sentence that must stand beside its numbers, where there is one."""
        return {run.endpoint: run.stand_in for run in self.runs if run.stand_in}

    @cached_property
    def of_published_study(self) -> bool:
        """Whether what was published, and supposed, of their model may stand beside its figures.

        Never beside those of a mix, or of cells that ran together: requests of one size were sent, to one
        endpoint.
        """
        real = [run for run in self.runs if not run.is_floor]
        if any(run.batch_mix or run.picture_mix or run.replay or run.together for run in real):
            return False
        return of_published_study(str(self.header["study"]), ((run.space, run.backend) for run in real))

    @cached_property
    def floors(self) -> Mapping[str, str]:
        """By endpoint the name of its floor, where it has one."""
        return {str(of): name for name, about in self.described.items() if (of := about.get("floor_of"))}

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The planned endpoints, in the header's order, which no seed has shuffled."""
        planned = {run.endpoint for run in self.runs}
        return (*(name for name in self.described if name in planned), *sorted(planned - set(self.described)))

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The planned ways to the model: by endpoint, then by what varies; no seed has shuffled them."""
        known: dict[Way, tuple[Any, ...]] = {run.way: ranks(run) for run in self.runs}
        place = self.endpoints.index
        return tuple(sorted(known, key=lambda way: (place(way.endpoint), known[way])))

    def ordered(self, runs: Iterable[Summary], then: Callable[[Summary], Any] = lambda _: 0) -> list[Summary]:
        """The runs by their ways, and those of one by what comes `then`."""
        return sorted(runs, key=lambda run: (self.ways.index(run.way), then(run)))

    def named(self, way: Way) -> str:
        """A way as tables call it: the endpoint alone where the study has only one variant."""
        return str(way) if len({known.variant for known in self.ways}) > 1 else way.endpoint

    def seconds_of(self, runs: Iterable[Summary]) -> BlockSeries:
        """The seconds of the measure phases of some runs."""
        return BlockSeries.of([self.blocks[run.cell, run.repeat] for run in runs])

    @property
    def links(self) -> Sequence[Record]:
        """What the header says of the emulated links."""
        links: Sequence[Record] = self.header.get("links") or ()
        return links


def load_study(directory: Path | str, usd_per_hour: float | None = None) -> Study:
    """Reads and folds the ledger of one result directory; LedgerError where that cannot be done.

    `usd_per_hour`, where given, is taken instead of what the study was told.
    """
    path = Path(directory) / FILE_NAME
    with damage_refused(path):
        found = outline(path)
        check_header(found.header, path)
        return _folded(found, {} if usd_per_hour is None else {"usd_per_hour": usd_per_hour})


def _folded(found: Outline, given: Mapping[str, Any]) -> Study:
    """The Study; options that are `given` take the place of the header's."""
    footers, plan = found.of_kind("footer"), whole_plan(found)
    footer = footers[-1] if footers else {}
    header = {**found.header, "options": {**(found.header.get("options") or {}), **given}}
    began, coarse = int(epoch_s(found.header["started_utc"])), coarseness(found)
    runs: dict[Tag, Summary] = {}
    seconds: dict[Tag, tuple[TimelineSecond, ...]] = {}
    courses: dict[Tag, CourseRun] = {}
    replays: dict[Tag, ReplayedRun] = {}
    blocks: dict[Tag, RunBlocks] = {}
    room = Room(sum(extent.size for extent in found.runs.values()))
    kinds = {str(record["kind"]) for record in found.others}
    is_spread = False
    for run in planned_runs(found, Bins(coarse, began), of_second=NAMES):
        kinds |= run.kinds.keys()
        tag = tag_of(run.planned)
        is_spread |= run.windows.is_spread
        runs[tag] = summarise(run, header)
        seconds[tag] = tuple(timeline(run, began))
        if found_course := course_of(run):
            courses[tag] = found_course
        if found_replay := replay_of(run):
            replays[tag] = found_replay
        blocks[tag] = blocks_of(run)
        room.take(blocks[tag].histograms)
    return Study(
        header=found.header,
        status=footer.get("status", "unfinished"),
        reason=footer.get("reason", ""),
        cut_line=found.cut_line,
        plan=tuple(plan),
        colds=tuple(found.of_kind("cold")),
        runs=among_neighbours(compare_repeats([runs[tag_of(entry)] for entry in plan], blocks)),
        timeline=tuple(second for entry in plan for second in seconds[tag_of(entry)]),
        coarse=coarse,
        courses=tuple(courses[tag] for entry in plan if (tag := tag_of(entry)) in courses),
        replays=tuple(replays[tag] for entry in plan if (tag := tag_of(entry)) in replays),
        operators=operator_profile(found.of_kind("operators")),
        strange=tuple(sorted(kinds - OF_RUNS - OF_STUDIES)),
        footer=footer,
        missed=tuple(map(str, footer.get("events") or ())),
        blocks=blocks,
        is_spread=is_spread,
        damage=tuple(found.seals.sentences()),
    )


def coarseness(found: Outline, most: int = MOST_SECONDS, most_of_a_run: int = MOST_OF_A_RUN) -> int:
    """How many seconds must be one in the timeline, so that neither all runs nor any one has too many."""
    counts = [len(run.seconds) for run in found.runs.values()]
    return max(1, ceil(sum(counts) / most), ceil(max(counts, default=0) / most_of_a_run))


def notices(study: Study) -> Iterator[str]:
    """What a reader must know of the study as a whole before any number."""
    reason = f": {study.reason}" if study.reason else ""
    if study.status == "unfinished":
        yield "The ledger has no footer: the study is still running, or it crashed."
    elif study.status != "complete":
        yield f"The study ended as {study.status}{reason}."
    if study.cut_line:
        yield "The ledger's last line is cut off; it was left out, and everything before it was read."
    yield from study.damage
    for sentence in study.missed:
        yield f"{sentence} No figure here depends on it."
    if missing := len(study.runs) - len(study.started):
        yield f"Not started: {missing} of {plural(len(study.runs), 'planned run')}."
    if said := built_anew(study.started):
        yield said
    if study.operators and study.operators.error:
        yield f"The operators were not profiled: {study.operators.error}."
    if study.strange:
        yield (
            f"Left out, because this version does not know such records: {', '.join(study.strange)}. "
            "The inferswarm that wrote the ledger does."
        )
    if study.coarse > 1:
        yield (
            f"Seconds were merged by {study.coarse} for the timeline: there are too many to show each. "
            "All other numbers use every second."
        )


def built_anew(runs: Sequence[Summary]) -> str:
    """The sentence on runs whose requests the client library made and sent; empty without any."""
    built = sum(run.built_anew for run in runs)
    if not built:
        return ""
    some = built < len(runs)
    whose = f" of {built} of {plural(len(runs), 'run')}" if some else ""
    return (
        f"Requests{whose} were built while measuring and sent by the client library (client: library): "
        f"both count in {'their latencies' if some else 'every latency'}."
    )


def inconclusive_because(study: Study) -> tuple[str, ...]:
    """Why a study allows no verdict, each reason once; empty where it allows one.

    The reasons are `study-` and the study's status where it is not complete, `no-data` where no request of it
    succeeded, and the codes of its runs' caveats that invalidate. Those of floors do not count: no verdict
    rests on them, and without a model the client is easily the limit.
    """
    ended = [] if study.status == "complete" else [f"study-{study.status}"]
    judged = [run for run in study.started if not run.is_floor]
    silent = [] if any(run.succeeded for run in judged) else ["no-data"]
    searched = bool((study.header.get("options") or {}).get("find_rate"))
    spoiling = coded(Trait.SPOILS_SEARCH) if searched else coded(Trait.TAINTS) - coded(Trait.IS_BOUNDED)
    spoilt = [caveat.code for run in judged for caveat in run.caveats if caveat.code in spoiling]
    return tuple(dict.fromkeys([*ended, *silent, *spoilt]))
