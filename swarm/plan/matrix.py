"""What a study will do: cells, and the order of their runs. Pure: no clock, no network."""

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

from reports.format import plural
from swarm.closest import closest, some
from swarm.errors import UsageError
from swarm.plan.cell import Cell, PlannedRun
from users.endpoint import Endpoint
from users.load.load_profile import BASE_SHARE, base_per_s, parse

PROFILE = "profile"
"""Names a cell whose load follows a profile."""
AMOUNTS = ("iterations", "seconds", "warm_up", "repeats")
"""What options may override of a size, besides batches and levels."""
LEAST_BASE_PER_S = 0.05


@dataclass(frozen=True)
class Size:
    """How large a study is: batches at one user, users at batch 1, the least each cell measures, the longest
    it may warm up in seconds, and how often it is run; the load profile of its open-loop load, and the peaks.
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


def profiled(cell: Cell, profile: str) -> Cell:
    """The cell with a load profile, whose peak is its level: as long, and with as many requests.

    Raises UsageError where so few would come that it looks like a server that hangs.
    """
    if base_per_s(cell.level) < LEAST_BASE_PER_S:
        least = LEAST_BASE_PER_S / BASE_SHARE
        raise UsageError(
            f"--rates {cell.level:g}: with a load profile, the rate must be at least {least:g} requests/s"
        )
    course = parse(profile, cell.level)
    return replace(cell, requests=course.arrivals, seconds=course.seconds, profile=profile, variant=PROFILE)


def taken(cells: Sequence[Cell], asked: Sequence[int]) -> tuple[list[Cell], list[str]]:
    """The cells whose batch their endpoint takes, and sentences on those that are left out.

    `asked`: batches that an option names. Raises UsageError where an endpoint takes none of its batches.
    """
    kept: set[str] = set()
    said = []
    for name, of_endpoint in itertools.groupby(sorted(cells, key=_name), key=_name):
        own = list(of_endpoint)
        most = own[0].endpoint.contract.max_batch
        fit = [cell for cell in own if not most or cell.batch <= most]
        left = sorted({cell.batch for cell in own if cell not in fit})
        if left and not fit:
            option = "--batches" if asked else "--cells"
            raise UsageError(
                f"{option}: {name} takes at most {plural(most, 'item')} per request; give --batches up"
                f" to {most}"
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
    """The cells whose names match a shell pattern; all for an empty one. Raises UsageError where none is."""
    found = [cell for cell in cells if is_meant(cell, pattern)]
    if not found:
        raise UsageError(f"--cells {pattern:.80}: matches no cell of this study; {_known(cells, pattern)}")
    return found


def _known(cells: Iterable[Cell], pattern: str) -> str:
    """The names most like a pattern, and then which names there are, short enough for one sentence."""
    names = {cell.name: cell.endpoint.name for cell in cells}
    tails = some(name.removeprefix(f"{endpoint}/") for name, endpoint in names.items())
    like = closest(pattern, [*(f"{endpoint}/*" for endpoint in names.values()), *names])
    return f"{like}there are {tails} of {some(names.values())}"


def is_meant(cell: Cell, pattern: str) -> bool:
    """Whether a shell pattern of names, or an empty one, means the cell."""
    return fnmatchcase(cell.name, pattern or "*")


def order(cells: list[Cell], repeats: int, seed: int) -> list[PlannedRun]:
    """All cells once a repeat, each repeat in a seeded order of its own, so that drift hits all alike."""
    return [run for repeat in range(1, repeats + 1) for run in one_repeat(cells, repeat, seed)]


def one_repeat(cells: list[Cell], repeat: int, seed: int) -> list[PlannedRun]:
    """All cells once, as the repeat of that number, counted from 1.

    Those that set their server alike come one after the other: each other setting loads a model anew, and
    warms it up. Settings, too, come in an order of chance.
    """
    shuffled = random.Random(f"{seed}/{repeat}").sample(cells, len(cells))
    place = {settings: at for at, settings in enumerate(dict.fromkeys(cell.settings for cell in shuffled))}
    return [PlannedRun(cell, repeat) for cell in sorted(shuffled, key=lambda cell: place[cell.settings])]
