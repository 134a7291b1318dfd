"""What a study will do: cells, and the order of their runs. Pure: no clock, no network."""

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import ulp
from typing import Any, ClassVar, Self

from reports.format import plural
from swarm.closest import closest, some
from swarm.errors import UsageError
from swarm.plan.cell import Cell, PlannedRun
from users.endpoint import Endpoint
from users.load.load_profile import base_of, parse
from users.load.profile_text import BASE_SHARE

PROFILE = "profile"
"""Names a cell whose load follows a profile."""
AMOUNTS = ("iterations", "seconds", "warm_up", "repeats")
"""What options may override of a size, besides batches and levels."""
LEAST_BASE_PER_S = 0.05
LONGEST_QUIET_S = 20
"""For which a profile may ask for less than that, or for no user: more looks like a server that hangs."""


@dataclass(frozen=True)
class Size:
    """How large a study is: batches at one user, users at batch 1, the least each cell measures, the longest
    it may warm up in seconds, and how often it is run; a load profile, and its peaks in open-loop load.
    """

    batches: tuple[int, ...]
    levels: tuple[int, ...]
    iterations: int
    seconds: float
    warm_up: float = 12
    repeats: int = 1
    profile: str = ""
    peaks: tuple[float, ...] = ()

    def given(self, **more: Any) -> Self:
        """The same with others of its fields, where they are not 0 or empty."""
        return replace(self, **{name: value for name, value in more.items() if value})


class StudyDefinition:
    """What a locustfile declares: a name for folders, a title for people, sizes, and the cells of a size."""

    name: ClassVar[str]
    title: ClassVar[str]
    sizes: ClassVar[Mapping[str, Size]]
    endpoints: ClassVar[Sequence[str]]
    """Shell patterns of the endpoints it tests without --endpoints."""
    emulate: ClassVar[str] = ""
    """What embedded servers emulate without --emulate."""
    all_batches: ClassVar[bool] = False
    """Whether its open-loop load, too, uses all batches of its size, and not single items."""
    operators: ClassVar[bool] = False
    """Whether the report has an operator profile of the embedded ONNX engine, made before any load."""

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """The cells to measure; the published study's serial and concurrent matrix unless overridden."""
        return serial_and_concurrent(endpoints, size)


def serial_and_concurrent(endpoints: Iterable[Endpoint], size: Size) -> list[Cell]:
    """The published study's matrix: each endpoint serial at every batch, then with more users at batch 1."""
    cells = []
    for endpoint in endpoints:
        cells += [Cell(endpoint, batch, 1, size.iterations, size.seconds) for batch in size.batches]
        cells += [concurrent(endpoint, level, size) for level in size.levels if level > 1]
    return cells


def concurrent(endpoint: Endpoint, level: int, size: Size, batch: int = 1, **axes: Any) -> Cell:
    """So many users at a batch: twice the published iterations, and at least five requests a user."""
    return Cell(endpoint, batch, level, max(2 * size.iterations, 5 * level), size.seconds, **axes)


def every_batch_and_level(endpoints: Iterable[Endpoint], size: Size) -> list[Cell]:
    """Each endpoint at every batch with every number of users."""
    return [
        concurrent(endpoint, level, size, batch)
        if level > 1
        else Cell(endpoint, batch, 1, size.iterations, size.seconds)
        for endpoint, batch, level in itertools.product(endpoints, size.batches, size.levels)
    ]


def at_rates(
    endpoints: Iterable[Endpoint],
    size: Size,
    rates: Iterable[float],
    batches: Iterable[int] = (1,),
    **axes: Any,
) -> list[Cell]:
    """Open-loop load: each endpoint at each rate, in requests a second, or with the size's profile."""
    cells = [
        Cell(endpoint, batch, rate, size.iterations, size.seconds, "open", **axes)
        for endpoint, batch, rate in itertools.product(endpoints, batches, rates)
    ]
    return [profiled(cell, size.profile) for cell in cells] if size.profile else cells


def at_peaks(
    endpoints: Iterable[Endpoint], size: Size, peaks: Iterable[int], batches: Iterable[int] = (1,)
) -> list[Cell]:
    """Closed-loop load: each endpoint with so many users at the peak of the size's profile."""
    every = itertools.product(endpoints, batches, peaks)
    return [
        profiled(concurrent(endpoint, peak, size, batch), size.profile) for endpoint, batch, peak in every
    ]


def profiled(cell: Cell, profile: str) -> Cell:
    """The cell with a load profile, whose peak is its level: as long, and at a rate with as many requests.

    Raises UsageError where so few would come that it looks like a server that hangs.
    """
    if cell.open and base_of(cell.level) < LEAST_BASE_PER_S:
        least = LEAST_BASE_PER_S / BASE_SHARE
        raise UsageError(
            f"--rates {cell.level:g}: with a load profile, the rate must be at least {least:g} requests/s"
        )
    course = parse(profile, cell.level)
    least, what = (
        (LEAST_BASE_PER_S, f"{LEAST_BASE_PER_S:g} requests/s") if cell.open else (ulp(0.0), "one user")
    )
    if (quiet_s := course.longest_below_s(least)) > LONGEST_QUIET_S:
        raise UsageError(
            f"--load-profile: at a peak of {cell.level:g}, it asks for less than {what} for {quiet_s:.4g} s"
            f" on end; let that be {LONGEST_QUIET_S} s at most"
        )
    requests = course.arrivals if cell.open else cell.requests
    return replace(cell, requests=requests, seconds=course.seconds, profile=profile, variant=PROFILE)


def taken(cells: Sequence[Cell], asked: Sequence[int]) -> tuple[list[Cell], list[str]]:
    """The cells whose batch their endpoint takes, and sentences on those that are left out.

    `asked`: batches that an option names. Raises UsageError where an endpoint takes none of its batches, or
    not all of those that are measured together with others.
    """
    kept: set[str] = set()
    said = []
    for name, of_endpoint in itertools.groupby(sorted(cells, key=_name), key=_name):
        own = list(of_endpoint)
        most = own[0].endpoint.contract.max_batch
        fit = [cell for cell in own if not most or cell.batch <= most]
        left = sorted({cell.batch for cell in own if cell not in fit})
        if left and (not fit or any(cell.together for cell in own)):
            option = "--batch-mix" if own[0].batch_mix else "--batches" if asked else "--cells"
            give = "batches" if own[0].batch_mix else "--batches"
            raise UsageError(
                f"{option}: {name} takes at most {plural(most, 'item')} per request; give {give} up to {most}"
            )
        if left:
            said.append(
                f"{name} takes at most {plural(most, 'item')} per request: batch"
                f" {', '.join(map(str, left))} is left out"
            )
        kept |= {cell.name for cell in fit}
    return [cell for cell in cells if cell.name in kept], said


def _name(cell: Cell) -> str:
    return cell.endpoint.name


def matching(cells: list[Cell], pattern: str) -> list[Cell]:
    """The cells that a pattern means; all for an empty one. Raises UsageError where it means none."""
    found = meant(cells, pattern)
    if not found:
        raise UsageError(f"--cells {pattern:.80}: matches no cell of this study; {_known(cells, pattern)}")
    return found


def _known(cells: Iterable[Cell], pattern: str) -> str:
    """The names most like a pattern, and then which names there are, short enough for one sentence."""
    names = {cell.name: cell.endpoint.name for cell in cells}
    tails = some(name.removeprefix(f"{endpoint}/") for name, endpoint in names.items())
    like = closest(pattern, [*(f"{endpoint}/*" for endpoint in names.values()), *names])
    return f"{like}there are {tails} of {some(names.values())}"


def meant(cells: Iterable[Cell], pattern: str) -> list[Cell]:
    """The cells whose names match a shell pattern, or an empty one, and all that run together with one."""
    every = list(cells)
    named = [fnmatchcase(cell.name, pattern or "*") for cell in every]
    groups = {cell.together for cell, is_named in zip(every, named, strict=True) if is_named} - {""}
    return [cell for cell, is_named in zip(every, named, strict=True) if is_named or cell.together in groups]


def order(cells: list[Cell], repeats: int, seed: int) -> list[PlannedRun]:
    """All cells once a repeat, each repeat in a seeded order of its own, so that drift hits all alike."""
    return [run for repeat in range(1, repeats + 1) for run in one_repeat(cells, repeat, seed)]


def one_repeat(cells: list[Cell], repeat: int, seed: int) -> list[PlannedRun]:
    """All cells once, as the repeat of that number, counted from 1; those of a group follow one another.

    Those that set their server alike come one after the other: each other setting loads a model anew, and
    warms it up. Settings, too, come in an order of chance.
    """
    units = _units(cells)
    shuffled = random.Random(f"{seed}/{repeat}").sample(units, len(units))
    place = {settings: at for at, settings in enumerate(dict.fromkeys(map(_settings, shuffled)))}
    ordered = sorted(shuffled, key=lambda unit: place[_settings(unit)])
    return [PlannedRun(cell, repeat) for unit in ordered for cell in unit]


def _units(cells: Iterable[Cell]) -> list[list[Cell]]:
    """What is run at once: a group, whose cells stand side by side, or a cell alone."""
    groups = itertools.groupby(cells, key=lambda cell: cell.together)
    return [unit for text, of in groups for unit in ([list(of)] if text else [[cell] for cell in of])]


def _settings(unit: Sequence[Cell]) -> tuple[int | None, int]:
    """Those that one of it asks for, if any does: servers of others are not set."""
    return next((cell.settings for cell in unit if cell.settings != (None, 0)), (None, 0))
