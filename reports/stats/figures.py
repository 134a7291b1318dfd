"""The cell with the most images a second."""

from collections.abc import Iterable

from reports.page.grid import Runs, typical
from reports.topics.payloads.matrix import images_per_s


def fastest_cell(cells: Iterable[Runs]) -> Runs:
    """The repeats of that cell; of those with a run that is not disqualified, where there are any."""
    every = list(cells)
    sound = [runs for runs in every if any(images_per_s(run) and not run.tainted for run in runs)]
    return max(sound or every, key=lambda runs: typical(runs, images_per_s) or 0.0, default=[])
