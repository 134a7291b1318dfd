"""The arms of the experiment on HTTP against gRPC: the same load, with connections and processes varied."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reports.page.grid import Runs
from reports.stats.spread import Spread, over, spread_of
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.contention.axes import PROTOCOLS, Axes, all_there, axes_of, named_arms
from reports.topics.payloads.matrix import images_per_s

STILL_EVIDENCE = frozenset({"client-bound"})
"""Disqualifies a figure as the server's; here the client may be the very cause that is looked for."""


class Case(NamedTuple):
    """A load that both protocols were sent over one link."""

    backend: str
    payload: str
    batch: int
    users: float
    link: str

    def __str__(self) -> str:
        over_link = f" over {self.link}" if self.link else ""
        return f"{self.backend} {self.payload}, batch {self.batch}, {self.users:g} users{over_link}"


@dataclass(frozen=True)
class Arm:
    """One arm: its code, what its users have in words, its planned runs, and those that are evidence."""

    code: str
    words: str
    axes: Axes
    planned: Runs
    runs: Runs

    @property
    def name(self) -> str:
        """As sentences call it: `gRPC, one channel`."""
        return f"{PROTOCOLS.get(self.axes.protocol, self.axes.protocol)}, {self.words}"

    @property
    def rate(self) -> Spread | None:
        """Images per second over its repeats; None where no run of it is evidence."""
        return spread_of(self.runs, images_per_s)

    @property
    def connections(self) -> int | None:
        """The most TCP connections that the kernel saw at once in one of its runs."""
        return max((seen for run in self.runs if (seen := run.tcp_connections) is not None), default=None)

    @property
    def limit(self) -> str:
        """The limit that most of its runs have, the first of equals; empty without any."""
        codes = Counter(run.limit.code for run in self.runs if run.limit)
        return codes.most_common(1)[0][0] if codes else ""


Arms = Mapping[str, Arm]
"""By code, only arms that were planned."""


def cases(study: Study) -> Iterator[tuple[Case, Arms]]:
    """Every load that was sent over both protocols by several users, with more than one kind of channels."""
    found: dict[Case, list[Summary]] = {}
    for run in study.runs:
        if run.load == "closed" and run.level > 1 and not run.is_floor:
            case = Case(run.backend, run.payload, run.batch, run.level, run.link)
            found.setdefault(case, []).append(run)
    for case in sorted(found, key=lambda case: _place(study, case)):
        runs = found[case]
        kinds = {run.channels for run in runs} - {""}
        if len({run.protocol for run in runs}) > 1 and len(kinds) > 1:
            yield case, arms_of(runs)


def _place(study: Study, case: Case) -> tuple[int, int, float, str, str]:
    """In the order of the header's links, then from small to large."""
    names = [str(link.get("name")) for link in study.links]
    return (
        names.index(case.link) if case.link in names else -1,
        case.batch,
        case.users,
        case.backend,
        case.payload,
    )


def arms_of(runs: Sequence[Summary]) -> Arms:
    """The arms that some runs of one case make up, in the order of the experiment."""
    workers = all_there(runs)
    by_axes: dict[Axes, list[Summary]] = {}
    for run in runs:
        by_axes.setdefault(axes_of(run, workers), []).append(run)
    named = {code: (words, axes) for code, words, axes in named_arms(list(by_axes))}
    return {
        code: Arm(code, words, axes, by_axes[axes], [run for run in by_axes[axes] if is_evidence(run)])
        for code, (words, axes) in named.items()
    }


def is_evidence(run: Summary) -> bool:
    """Whether its images per second tell something: done, with successes, and not disqualified."""
    codes = {doubt.code for doubt in run.caveats if doubt.tainted} - STILL_EVIDENCE
    return run.started and run.succeeded > 0 and not codes


def ratio_of(arms: Arms, top: str, bottom: str) -> Spread | None:
    """One arm's images per second over another's; None where one of them was not tested."""
    sides = [arms[code].rate if code in arms else None for code in (top, bottom)]
    return over(sides[0], sides[1]) if sides[0] and sides[1] else None
