"""Which GPUs a side states, and whether two sides state different ones."""

import re
from collections.abc import Iterable

from reports.cells_csv.side import Side

MODEL = re.compile(r"\b(?:[GR]TX [A-Z]?\d{4}|[ABHLPTV]\d{1,3}S?)\b")
"""A GPU's name in a source's text: an A100, an RTX 4090, 4 x RTX 4080."""


def gpus(side: Side) -> tuple[str, ...]:
    """The names in its fingerprint, or where it has none, in the sources of its figures, each once."""
    named = (side.header.get("fingerprint") or {}).get("gpus") or MODEL.findall(side.sources)
    return tuple(dict.fromkeys(map(str, named if isinstance(named, list) else [named])))


def no_other_gpu(base: Side, other: Side) -> str:
    """Why two sides test nothing of two GPUs, in a sentence; empty where both state one, and they differ."""
    ours, theirs = gpus(base), gpus(other)
    silent = " and ".join(side.letter for side, names in ((base, ours), (other, theirs)) if not names)
    if silent:
        return f"No GPU is stated for {silent}: whether it is the GPU that differs is not known."
    if _differ(ours, theirs):
        return ""
    told = (f"{side.letter} ({', '.join(names)})" for side, names in ((base, ours), (other, theirs)))
    return f"{' and '.join(told)} state no two GPUs that differ, and the claim is of two."


def _differ(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether each has a word that the other lacks: an A100 may be an NVIDIA A100-SXM4-80GB."""
    one, two = (set(re.findall(r"\w+", " ".join(names).lower())) for names in (ours, theirs))
    return not (one <= two or two <= one)
