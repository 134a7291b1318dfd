"""What a study says of itself: its exit code, and the caveats that disqualify figures of a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bounds import Bounds
from benchmarks.soaking.judging import BROKEN, HOLDS, UNTOLD
from reports.caveat import Caveat
from reports.study.study import Study, inconclusive_because, load_study

OF_TIMES = frozenset({"client-bound"})
"""Spoils percentiles alone: a busy machine is no leak, and loses nothing."""
INCONCLUSIVE = 3


@dataclass(frozen=True)
class Validity:
    """`expected` is the exit code of a study without failures whose ledger says what this one's says."""

    code: int
    expected: int
    doubts: Mapping[str, Sequence[Caveat]] = field(default_factory=dict)
    """By cells, those alone that disqualify."""


def validity_of(folder: Path, code: int) -> Validity:
    """From the ledger of a study's folder. Raises LedgerError where that cannot be read."""
    return valid(load_study(folder), code)


def valid(study: Study, code: int) -> Validity:
    """Of a study that ended with this code. No verdict of its own rests on floors: of those alone it is 3."""
    doubts: dict[str, list[Caveat]] = {}
    for run in study.started:
        doubts.setdefault(run.cell, []).extend(doubt for doubt in run.caveats if doubt.tainted)
    return Validity(code, INCONCLUSIVE if inconclusive_because(study) else 0, doubts)


def judge_code(bounds: Bounds, found: Validity) -> None:
    """An exit code that the ledger does not explain is that of a study that failed."""
    verdict = HOLDS if found.code == found.expected else BROKEN
    bounds.verdict("the study's exit code", str(found.code), f"= {found.expected}", verdict)


def judge_doubts(bounds: Bounds, doubts: Sequence[Caveat], quick: bool) -> None:
    """Each breaks the soak, save those of times: they leave percentiles untold, and `quick` asks for none."""
    for doubt in doubts:
        verdict = BROKEN if doubt.code not in OF_TIMES else HOLDS if quick else UNTOLD
        bounds.verdict(f"  {doubt.code}", "", "" if verdict == HOLDS else "not there", verdict)
        print(f"    {doubt.text}")
