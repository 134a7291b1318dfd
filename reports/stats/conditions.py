"""What cells of several endpoints have in common and are compared under: their batch and their load."""

from typing import NamedTuple

from reports.summary.batch import Batch, batch_of
from reports.summary.summary import Summary


class Condition(NamedTuple):
    """A batch and a load, in the order in which readers meet them: serial, then by load, level and batch."""

    parallel: bool
    load: str
    level: float
    batch: Batch

    def __str__(self) -> str:
        users = "1 user" if self.level == 1 else f"{self.level:g} users"
        return f"batch {self.batch}, {users if self.load == 'closed' else f'{self.level:g} requests/s'}"


def condition(run: Summary) -> Condition:
    """That of a run."""
    return Condition(not run.serial, run.load, run.level, batch_of(run))
