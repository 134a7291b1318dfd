"""Charts as pure data, which the page's script draws."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chart:
    """A drawing under a title: `kind` names the script's function that draws `data`, which JSON can hold.

    `notes` are sentences below it. Its numbers stand in the tables beside it, or in timeline.csv.
    """

    title: str
    caption: str
    kind: str
    data: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def rounded(value: float | None) -> float | None:
    """Four significant digits: more than a drawing shows, and less than a file must carry."""
    return None if value is None else float(f"{value:.3e}")
