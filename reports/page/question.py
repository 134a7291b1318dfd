"""A question of the report: where its tables and charts stand, and the finding that answers it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, auto

from reports.page.page import Chart
from reports.page.table import Table
from reports.study.study import Study

Shown = Table | Chart | None


class Theme(IntEnum):
    """What a finding is about, in the order in which findings are told."""

    CAUSE = auto()
    RATE = auto()
    SPEED = auto()
    PROTOCOLS = auto()
    PAYLOADS = auto()
    SERIALISATION = auto()
    SETTINGS = auto()
    OTHER = auto()
    LIMITS = auto()


@dataclass(frozen=True)
class Question:
    """What a module of `reports.topics` answers; the report is all that there are.

    What `shows` makes of a study stands under the heading `section`, by `place` among others; what is empty
    is left out. `finds` makes its finding, empty where there is none: it is told with others of its `theme`,
    and not at all where one of the questions that `unless` names has one. Only studies that it `applies` to
    are asked.
    """

    name: str
    section: str
    shows: tuple[Callable[[Study], Shown | Iterable[Shown]], ...] = ()
    finds: Callable[[Study], str] = lambda _: ""
    theme: Theme = Theme.OTHER
    unless: tuple[str, ...] = ()
    place: int = 0
    applies: Callable[[Study], bool] = lambda _: True

    def shown(self, study: Study) -> Iterator[Shown]:
        """All its tables and charts."""
        for make in self.shows:
            made = make(study)
            yield from made if isinstance(made, Iterable) else [made]
