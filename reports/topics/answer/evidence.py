"""How many sentences of evidence become one: the same words, each number as a range."""

import re
from collections.abc import Sequence

from reports.stats.repeats import grouped

SOME = 3
_NUMBER = re.compile(r"(?<![\w.])(?:\d+(?:, \d+)+|<?\d{1,3}(?:,\d{3})+(?:\.\d+)?|<?\d+(?:\.\d+)?)")
"""A list such as `1, 2, 4`, a number with thousands, or one that may be <0.1."""


def wording(text: str) -> str:
    """A text without its numbers: what it has in common with others that say the same."""
    return _NUMBER.sub("#", text)


def ranged(texts: Sequence[str]) -> str:
    """The clauses, parted by semicolons, that all texts have but for their numbers: 83 to 100 % of the time.

    The first text where they have no clause in common.
    """
    clauses = [clause for text in texts for clause in text.split("; ")]
    common = [_range(those) for those in grouped(clauses, wording).values() if len(those) == len(texts)]
    return "; ".join(common) or texts[0]


def in_short(texts: Sequence[str]) -> str:
    """The first clause with a percentage that a third of the texts have; else the first text's first.

    It says how many of them that is where it is not all.
    """
    placed = [(at, said) for text in texts for at, said in enumerate(text.split("; ")) if "%" in said]
    alike = grouped(placed, lambda one: wording(one[1])).values()
    common = [those for those in alike if SOME * len(those) >= len(texts)]
    first = min(common, key=lambda those: min(at for at, _ in those), default=None)
    if not first:
        return texts[0].split("; ")[0]
    some = "" if len(first) == len(texts) else f" (in {len(first)} of {len(texts)})"
    return _range([said for _, said in first]) + some


def _range(clauses: Sequence[str]) -> str:
    found = zip(*(_NUMBER.findall(clause) for clause in clauses), strict=True)
    told = iter([_between(column) for column in found])
    return _NUMBER.sub(lambda _: next(told), clauses[0])


def _between(numbers: Sequence[str]) -> str:
    if any(", " in text for text in numbers):
        every = {one for text in numbers for one in text.split(", ")}
        return ", ".join(sorted(every, key=_size))
    least, most = (of(numbers, key=_size) for of in (min, max))
    return least if least == most else f"{least} to {most}"


def _size(text: str) -> float:
    return float(text.lstrip("<").replace(",", ""))
