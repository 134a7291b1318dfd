"""How many images the requests of a cell have: all as many, or a mix."""

from typing import NamedTuple

from reports.summary.classes import shares
from reports.summary.summary import Summary


class Batch(NamedTuple):
    """The most and the least images in a request, in the order in which tables have them."""

    most: int
    least: int

    @property
    def mixed(self) -> bool:
        """Whether requests differ."""
        return self.least < self.most

    def __str__(self) -> str:
        return f"mix {self.least}–{self.most}" if self.mixed else str(self.most)


def batch_of(run: Summary) -> Batch:
    """That of a run; of a trace that is replayed, too."""
    sizes = [int(size) for size in shares(run.batch_mix) if size.isdecimal()]
    return Batch(run.batch, min(sizes, default=run.batch))


def images_per_request(run: Summary) -> float:
    """The mean over successes where a run has a mix, else what every request has."""
    if not batch_of(run).mixed or not run.counts.images:
        return run.batch
    return run.counts.images / run.succeeded
