"""From options to the schedule of a study: its own cells, those that options ask for, or a search."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

from reports.caveats.rate_bound import RateBound, rate_bound
from reports.ledger.records import MOST_RUNS
from reports.slo import Slo
from swarm.closest import some
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo
from swarm.options.model import AXES, Options, flag
from swarm.output.gate import Gate
from swarm.plan.cell import Cell
from swarm.plan.matrix import AMOUNTS, Size, StudyDefinition, at_peaks, at_rates, matching, meant, taken
from swarm.plan.replay import remarks, replayed
from swarm.plan.schedule import RepeatingSchedule, Schedule
from swarm.plan.sweep import cross, mixed
from swarm.plan.together import split, together
from swarm.targets.model_settings import wants
from users.endpoint import Endpoint


def schedule_of(
    study: StudyDefinition,
    endpoints: Sequence[Endpoint],
    options: Options,
    launch: LaunchInfo,
    gate: Gate,
    workers: int = 0,
    check_servers: Callable[[Sequence[Cell]], None] = lambda cells: None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Schedule, Size]:
    """What to run on `workers` processes, 0 for as many as come, and with which amounts.

    `check_servers` asks whether servers can be set as cells say. Raises UsageError where the options name
    nothing that can be run, or the gate nothing that is.
    """
    size, bound = size_of(study, options)
    offered = [cell for cell in crossed(study, endpoints, options) if launch.offers(cell)]
    cells, left_out = taken(matching(offered, options.cells), options.batches)
    if options.replay:
        left_out += remarks(endpoints, options.read_trace(), options.replay)
    for sentence in left_out:
        say(sentence)
    for name, axis in AXES.items():
        if options.given(name) and not any(axis.applies(cell) for cell in cells):
            raise UsageError(f"{flag(name)}: applies to {axis.of}, and no cell uses one; leave it out")
    check_slo(cells, options.slo)
    launch.check(cells, workers)
    check_servers(cells)
    most = options.repeat_until_decided or size.repeats
    gate.check(cells, endpoints, count_runs(cells, _search().MOST_STEPS if bound else most))
    if bound:
        return _search().RateSearch(cells, bound), size
    if most < size.repeats:
        raise UsageError(
            f"--repeat-until-decided {most}: every cell is run {size.repeats} times anyway; it must"
            f" be at least {size.repeats}"
        )
    return RepeatingSchedule(cells, size.repeats, most, options.seed, gate.wants), size


def count_runs(cells: Sequence[Cell], each: int) -> int:
    """At most so many, each cell so many times. Raises UsageError where they are too many for a study."""
    runs = each * len(cells)
    if runs > MOST_RUNS:
        raise UsageError(
            f"--cells: {len(cells):,} cells, {each} times each, are {runs:,} runs, and a study may have"
            f" {MOST_RUNS:,} at most; select fewer cells, or give fewer --repeats"
        )
    return runs


def check_slo(cells: Sequence[Cell], slo: str) -> None:
    """Raises UsageError where --slo has a bound of a class that no cell has."""
    labels = [one.label for cell in cells if cell.traffic for one in cell.traffic.classes]
    known = dict.fromkeys([*labels, *(part for label in labels for part in label.split("/"))])
    there = f"they are {some(known)}" if known else "there are none without --batch-mix or --picture-mix"
    for label, _ in Slo.parse(slo).of_classes if slo else ():
        if label not in known:
            raise UsageError(f"--slo: no requests are of the class {label:.40}; {there}")


def check_cells(study: StudyDefinition, possible: Sequence[Endpoint], options: Options) -> None:
    """Raises UsageError where --cells matches no cell of the possible endpoints: before servers start."""
    if options.cells:
        matching(crossed(study, possible, options), options.cells)


def varies_servers(study: StudyDefinition, asked: Sequence[Endpoint], options: Options) -> bool:
    """Whether some cell sets its server otherwise: asked before there are servers. Raises UsageError."""
    cells = meant(crossed(study, asked, options), options.cells)
    return any(cell.adjustable and wants(cell) for cell in cells)


def crossed(study: StudyDefinition, endpoints: Sequence[Endpoint], options: Options) -> list[Cell]:
    """All cells of a study of these endpoints, --cells aside. Raises UsageError."""
    return mixed(cross(own_cells(study, endpoints, options, size_of(study, options)[0]), options.axes))


def size_of(study: StudyDefinition, options: Options) -> tuple[Size, RateBound | None]:
    """The amounts that the options leave or give, and the bound of a search, if it is one."""
    amounts = {name: getattr(options, name) for name in (*AMOUNTS, "batches", "levels")}
    size = study.sizes[options.size].given(**amounts)
    bound = rate_bound(options.find_rate, options.slo) if options.find_rate else None
    if bound:
        size = replace(size, iterations=_enough(bound, options.iterations))
    is_own = bound or options.together or options.split or options.replay
    return replace(size, profile="" if is_own else options.load_profile or size.profile), bound


def _search() -> ModuleType:
    """The search for a rate, loaded where there is one: SciPy comes with it, which no other load needs."""
    from swarm.plan import rate_search

    return rate_search


def _enough(bound: RateBound, asked: int | None) -> int:
    """Requests of each run of a search. Raises UsageError where they are too few for its percentile."""
    if asked and asked < bound.least:
        raise UsageError(
            f"--iterations {asked}: {bound.percentile} takes {bound.least:,} results; give as many, or leave"
            f" it out for {bound.results:,}"
        )
    return asked or bound.results


def own_cells(
    study: StudyDefinition, endpoints: Sequence[Endpoint], options: Options, size: Size
) -> Sequence[Cell]:
    """The study's cells, or the open-loop ones that the options ask for instead. Raises UsageError.

    A search begins at the one rate given, or a low one.
    """
    if options.replay:
        return replayed(endpoints, options.read_trace(), options.replay, options.replay_speed)
    if options.together:
        return together(endpoints, options.together, size)
    batches = size.batches if study.all_batches else options.batches or (1,)
    if options.split:
        return split(endpoints, options.split, size, options.rates, batches)
    for name in ("iterations", "seconds"):
        if size.profile and getattr(options, name):
            raise UsageError(f"--{name}: the load profile sets how long to measure; leave it out")
    if study.sizes[options.size].profile and size.profile:
        # Its own cells are open-loop: the options say which.
        cells = study.cells(endpoints, replace(size, peaks=options.rates or size.peaks))
    elif options.rates or options.find_rate:
        return at_rates(endpoints, size, options.rates or (_search().START_PER_S,), batches)
    elif options.load_profile and not options.levels:
        raise UsageError("--load-profile: give its peaks, too: --rates in requests/s, or --levels in users")
    elif options.load_profile:
        return at_peaks(endpoints, size, options.levels, batches)
    else:
        cells = study.cells(endpoints, size)
    check_own_axes(cells, options)
    return cells


def check_own_axes(cells: Sequence[Cell], options: Options) -> None:
    """Raises UsageError where an option is given for an axis that the study's own cells settle."""
    for name, axis in AXES.items():
        fit = [cell for cell in cells if axis.applies(cell)]
        if options.given(name) and fit and all(axis.settled(cell, name) for cell in fit):
            raise UsageError(f"{flag(name)}: this study sets it itself; leave it out")
