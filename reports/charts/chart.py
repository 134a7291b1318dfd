"""Charts as pure data: the page's script draws them, and their numbers stand under each as a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.tables.table import Table


@dataclass(frozen=True)
class Chart:
    """A drawing under a title: `kind` names the script's function that draws `data`, which JSON can hold.

    `numbers` is the same for those who read or look things up; None where a table beside it has them.
    """

    title: str
    caption: str
    kind: str
    data: Mapping[str, Any]
    numbers: Table | None = None
    notes: tuple[str, ...] = ()


def rounded(value: float | None) -> float | None:
    """Four significant digits: more than a drawing shows, and less than a file must carry."""
    return None if value is None else float(f"{value:.3e}")
