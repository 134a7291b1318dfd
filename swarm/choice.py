"""From options to the programme of a study: its own cells, cells at rates, or the search for a rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swarm.cell import Cell
from swarm.errors import UsageError
from swarm.option_table import TEXTS
from swarm.options import Options
from swarm.plan import Size, Study, at_rates, matching, order
from swarm.programme import Listed, Programme
from swarm.search import START_PER_S, Bound, Search
from users.endpoint import Endpoint


def programme_of(study: Study, endpoints: Sequence[Endpoint], options: Options) -> tuple[Programme, Size]:
    """What to run, and with which amounts. Raises UsageError where the options name nothing that can be."""
    amounts = (options.iterations, options.seconds, options.warm_up, options.repeats)
    size = study.sizes[options.size].with_amounts(*amounts)
    if options.find_rate:
        return search_of(endpoints, options, size)
    cells = study.cells(endpoints, size)
    check_own_axes(cells, options)
    if options.rates:
        cells = at_rates(endpoints, size, options.rates, options.arrivals, options.max_in_flight)
    crossed = options.axes.cross(cells)
    return Listed(order(matching(crossed, options.cells), size.repeats, options.seed)), size


def search_of(endpoints: Sequence[Endpoint], options: Options, size: Size) -> tuple[Search, Size]:
    """A search from the one rate given, or a low one; each step has the results its percentile needs."""
    bound = Bound.parse(options.find_rate)
    enough = replace(size, iterations=options.iterations or bound.results)
    starts = options.rates or (START_PER_S,)
    cells = at_rates(endpoints, enough, starts, options.arrivals, options.max_in_flight)
    return Search(matching(options.axes.cross(cells), options.cells), bound), enough


def check_own_axes(cells: Sequence[Cell], options: Options) -> None:
    """Raises UsageError where an option is given for an axis that the study's own cells settle."""
    settled = {
        "channels": all(cell.channels for cell in cells),
        "client": all(cell.client for cell in cells),
        "topology": all(cell.workers for cell in cells),
    }
    for name, own in settled.items():
        if own and getattr(options, name) != TEXTS[name][0]:
            raise UsageError(f"--{name}: this study compares several itself; leave it out")
