"""A load profile in a TOML file, which becomes the text that workers are given: they need no file."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.ledger.files import parsed_toml, whole_file
from users.load.profile_text import GIVE_POINTS, shares, stretches

LONGEST_NAME = 40
FIELDS = ("points", "stages")


def profile_text(given: str) -> str:
    """The text of a profile, or that of the TOML file which it names. Raises ValueError with what to give."""
    text = of_file(Path(given)) if given.endswith(".toml") else given
    shares(text)
    return text


def of_file(path: Path) -> str:
    """The text of `points`, seconds and shares of the peak, and of the names of its `stages`, if it has some.

    Raises ValueError naming the field and the fix.
    """
    try:
        found = parsed_toml(whole_file(path).decode("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror}): name a TOML file with points") from None
    except ValueError as error:
        raise ValueError(f"is not TOML ({error}): fix that line") from None
    if unknown := sorted(found.keys() - set(FIELDS)):
        raise ValueError(f"{unknown[0]} is not a field of a load profile: use {' and '.join(FIELDS)}")
    points = found.get("points")
    if not isinstance(points, list) or not all(map(_is_pair, points)):
        raise ValueError(GIVE_POINTS)
    names = _names(found.get("stages"), points)
    named = zip(points, ["", *names], strict=True)
    stretches([(float(s), float(share)) for s, share in points], names)
    return "points:" + ",".join(f"{s!r}={share!r} {name}".strip() for (s, share), name in named)


def _is_pair(point: Any) -> bool:
    two = isinstance(point, list) and len(point) == 2
    return two and all(type(value) in (int, float) and math.isfinite(value) for value in point)


def _names(given: Any, points: Sequence[Any]) -> list[str]:
    """One for what is between each two points, "" for a jump; all are "" where none are given."""
    jumps = [after[0] == before[0] for before, after in pairwise(points)]
    if given is None:
        return [""] * len(jumps)
    if not isinstance(given, list) or not all(map(_is_name, given)):
        raise ValueError(f"stages: give names of up to {LONGEST_NAME} characters without a comma")
    if len(given) != (count := len(jumps) - sum(jumps)):
        raise ValueError(f"stages: {len(given)} names for {count} stages; name each, or none")
    names = iter(given)
    return ["" if jump else next(names) for jump in jumps]


def _is_name(name: Any) -> bool:
    return (
        isinstance(name, str)
        and name.isprintable()
        and 0 < len(name.strip()) <= LONGEST_NAME
        and "," not in name
    )
