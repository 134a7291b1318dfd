"""What differs between base and candidates besides their numbers: what they ran on, sent, and went over."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from reports.cells_csv.sides import PUBLISHED, Side, stated
from reports.format import MISSING
from reports.page.table import Table, table_of
from reports.stats.repeats import grouped

TOLD = 3
# What a difference in some name does to the comparison.
SPOILS = {
    "images.sha256": "Different images were sent.",
    "endpoints.*.model": "Different models answered, so the ratios also compare models.",
    "endpoints.*.weights": "The weights differ, so it is not the same model.",
    "endpoints.*.emulated": "The emulated service times differ, so the ratios show what was configured.",
    "link.*": "The links differ.",
}
MODEL = re.compile(r"\b(?:[GR]TX [A-Z]?\d{4}|[ABHLPTV]\d{1,3}S?)\b")
"""A GPU's name in a source's text: an A100, an RTX 4090, 4 x RTX 4080."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on all sides; None where a side does not state it."""

    what: str
    values: tuple[str | None, ...]

    @property
    def spoils(self) -> str:
        """What it does to the comparison, in a sentence; empty where it may be what is compared."""
        return next((text for names, text in SPOILS.items() if fnmatchcase(self.what, names)), "")


def listed(sides: Sequence[Side], found: Sequence[Difference]) -> str:
    """The first few with their values, and how many more: images.sha256 (base: ab12, candidate: cd34)."""
    first = list(grouped(found, lambda it: it.values).items())[:TOLD]
    told = [f"{' and '.join(it.what for it in those)} ({_valued(sides, values)})" for values, those in first]
    more = len(found) - sum(len(those) for _, those in first)
    return "; ".join([*told, f"and {more} more"] if more else told)


def _valued(sides: Sequence[Side], values: Sequence[str | None]) -> str:
    """Each value behind the sides that state it."""
    found = grouped(zip(values, sides, strict=True), lambda one: one[0] or "not stated")
    told = {value: " and ".join(side.short for _, side in those) for value, those in found.items()}
    return ", ".join(f"{those}: {value}" for value, those in told.items())


def differences(sides: Sequence[Side]) -> tuple[Difference, ...]:
    """All of them; what the ledgers' headers state is compared among the sides that have one."""
    described = [set(side.header.get("endpoints") or {}) for side in sides if side.known]
    shared = set.intersection(*described) if described else set()
    facts = [stated(side, shared) for side in sides]
    found = []
    for what in dict.fromkeys(name for fact in facts for name in fact):
        asked = [what in ("study", "source") or side.known for side in sides]
        values = tuple(fact.get(what) for fact in facts)
        if len({value for value, use in zip(values, asked, strict=True) if use}) > 1:
            found.append(Difference(what, values))
    return tuple(sorted(found, key=lambda it: not it.spoils))


def differences_table(sides: Sequence[Side], found: Sequence[Difference]) -> Table:
    """One row for each."""
    heads = ("what", *(f"{side.short}: {side.name}" for side in sides))
    rows = ((it.what, *(value or MISSING for value in it.values)) for it in found)
    return table_of("What differs", heads, rows)


def warnings(sides: Sequence[Side], found: Sequence[Difference]) -> Iterator[str]:
    """What spoils the comparison, a sentence each, to be read before any number."""
    by_reason = grouped(filter(lambda it: it.spoils, found), lambda it: it.spoils)
    yield from (f"{reason} Differing: {listed(sides, those)}." for reason, those in by_reason.items())
    theirs = [side.name for side in sides if side.kind == PUBLISHED]
    if theirs:
        verb = "was" if len(theirs) == 1 else "were"
        yield (
            f"{' and '.join(theirs)} {verb} published by others, with their own client, servers and network: "
            "a ratio includes everything that differs, not only the hardware that is named."
        )


def gpus(side: Side) -> tuple[str, ...]:
    """The names in its fingerprint, or where it has none, in the sources of its figures, each once."""
    named = (side.header.get("fingerprint") or {}).get("gpus") or MODEL.findall(side.sources)
    return tuple(dict.fromkeys(map(str, named if isinstance(named, list) else [named])))


def no_other_gpu(base: Side, other: Side) -> str:
    """Why two sides test nothing of two GPUs, in a sentence; empty where both state one, and they differ."""
    ours, theirs = gpus(base), gpus(other)
    silent = " and ".join(side.role for side, names in ((base, ours), (other, theirs)) if not names)
    if silent:
        return f"No GPU is stated for {silent}, so it is not known whether the GPU differs."
    if _differ(ours, theirs):
        return ""
    told = " and ".join(
        f"{side.role} ({', '.join(names)})" for side, names in ((base, ours), (other, theirs))
    )
    return f"The GPUs stated for {told} are the same, and the claim needs two different ones."


def _differ(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether each has a word that the other lacks: an A100 may be an NVIDIA A100-SXM4-80GB."""
    one, two = (set(re.findall(r"\w+", " ".join(names).lower())) for names in (ours, theirs))
    return not (one <= two or two <= one)
