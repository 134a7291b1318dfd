"""A question of the report: where its tables and charts stand, and its row on the first screen."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, auto

from reports.page.answer import AnswerRow
from reports.page.page import Chart
from reports.page.table import Table
from reports.study.study import Study

Shown = Table | Chart | None


class Theme(IntEnum):
    """What an answer is about, in the order of the first screen."""

    CAUSE = auto()
    SPEED = auto()
    SATURATION = auto()
    PROTOCOLS = auto()
    PAYLOADS = auto()
    SERIALISATION = auto()
    SETTINGS = auto()
    COST = auto()
    OTHER = auto()
    CONFIDENCE = auto()
    LIMITS = auto()
    NEXT = auto()


@dataclass(frozen=True)
class Question:
    """What a module of `reports.topics` answers; the report is all that there are.

    What `shows` makes of a study stands under the heading `section`, by `place` among others; what is empty
    is left out. `finds` makes its row of the first screen, None where it has no answer: rows stand in the
    order of their `theme`, without one where a question that `unless` names has one. Only studies that it
    `applies` to are asked.
    """

    name: str
    section: str
    shows: tuple[Callable[[Study], Shown | Iterable[Shown]], ...] = ()
    finds: Callable[[Study], AnswerRow | None] = lambda _: None
    theme: Theme = Theme.OTHER
    unless: tuple[str, ...] = ()
    place: int = 0
    applies: Callable[[Study], bool] = lambda _: True

    def shown(self, study: Study) -> Iterator[Shown]:
        """All its tables and charts."""
        for make in self.shows:
            made = make(study)
            yield from made if isinstance(made, Iterable) else [made]
