"""A question of the report: where its tables and charts stand, and the finding that answers it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, auto

from reports.page.page import Chart
from reports.page.table import Table
from reports.study.study import Study


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


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a module of `reports.topics` answers; the report is all that there are.

    `shows` are tables and charts under the heading `section`, there by `place`; what is empty is left out.
    `finds` is its finding, empty where there is none; it is told with others of its `theme`, and not at all
    where one of the questions that `unless` names has one. Neither is asked of a study it `applies` not to.
    """

    name: str
    section: str
    place: int = 0
    shows: Callable[[Study], Iterable[Table | Chart | None]] = lambda _: ()
    finds: Callable[[Study], str] = lambda _: ""
    theme: Theme = Theme.OTHER
    unless: tuple[str, ...] = ()
    applies: Callable[[Study], bool] = lambda _: True
