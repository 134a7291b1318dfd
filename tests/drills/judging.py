"""What a drill must have seen, as values; and where what was seen differs. Pure functions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.drills.seen import FILES, Seen

ANY = 1 << 20
"""Answers after a fault that leaves no ledger to write to, or that no stand-in counts."""
SOME, MAYBE = "some", "maybe"
COMPLETE = "complete"
LONGEST_S = 600
"""That any drill's study may last; a clock that jumped shows as more."""
CLIENT_BOUND, INCONCLUSIVE = "client-bound", 3
"""Others on the machine may hold the generator up: the study must say so, and is then inconclusive."""


@dataclass(frozen=True)
class Expected:
    """What must be seen of a drill.

    `failures`: kinds that may occur; each `some` (at least one), `maybe`, or the names of the server's
    faults, joined by `+`, that must have been met exactly as often. Others must not. `caveats`, `never`:
    codes that must be there, and must not. `limit`: the named limit, empty where any may be named. `says`:
    patterns of what the terminal must show. `in_flight`: how many answers that the server gave may be missing
    from the ledger, beside those that came after their requests had timed out. `left`: whether the study has
    made its report; `folder`: whether there are results at all.
    """

    exit_code: int
    failures: Mapping[str, str] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    limit: str = "inconclusive"
    status: str = COMPLETE
    says: tuple[str, ...] = ()
    in_flight: int = 0
    left: bool = True
    folder: bool = True


def shorn(pattern: str) -> str:
    """A pattern as a reader sees it."""
    return pattern.replace(".*", "…").replace("\\d", "N").replace("\\", "")


def differences(expected: Expected, seen: Seen) -> list[str]:
    """Every way in which a drill went otherwise than it must; empty where it is as expected."""
    return [
        *_ending(expected, seen),
        *_failures(expected, seen),
        *_doubts(expected, seen),
        *_counted(expected, seen),
        *_left(expected, seen),
    ]


def _ending(expected: Expected, seen: Seen) -> Iterator[str]:
    if seen.exit_code is None:
        yield "the study did not end by its deadline"
    elif seen.exit_code != expected.exit_code and not _held_up(seen):
        yield f"exit code {seen.exit_code}, not {expected.exit_code}"
    if "Traceback" in seen.text:
        yield "a traceback on the terminal"
    for pattern in expected.says:
        if not re.search(pattern, flat(seen.text)):
            yield f"the terminal lacks “{shorn(pattern)}”"


def _held_up(seen: Seen) -> bool:
    """For that alone: a study that is inconclusive for another reason, too, is not excused."""
    return seen.because == {CLIENT_BOUND} and seen.exit_code == INCONCLUSIVE


def flat(text: str) -> str:
    """Without the line ends that a terminal's width brings."""
    return " ".join(text.split())


def _failures(expected: Expected, seen: Seen) -> Iterator[str]:
    for kind, count in seen.failures.items():
        if count and kind not in expected.failures:
            yield f"{count} failures of kind {kind}, which must not occur"
    for kind, often in expected.failures.items():
        found = seen.failures.get(kind, 0)
        if often == SOME and not found:
            yield f"no failure of kind {kind}"
        if often not in (SOME, MAYBE):
            planted = sum(seen.spoilt.get(name, 0) for name in often.split("+"))
            if not planted:
                yield f"no request met the fault {often}"
            if found != planted:
                yield f"{found} failures of kind {kind}, and the server met {planted} requests so"


def _doubts(expected: Expected, seen: Seen) -> Iterator[str]:
    for code in expected.caveats:
        if code not in seen.caveats:
            yield f"no caveat {code}"
    for code in expected.never:
        if code in seen.caveats:
            yield f"a caveat {code}"
    if expected.limit and seen.limit != expected.limit:
        yield f"limit {seen.limit or 'none'}, not {expected.limit}"


def _counted(expected: Expected, seen: Seen) -> Iterator[str]:
    """Nothing is lost that finished, and nothing is invented."""
    if seen.ok < seen.least_ok:
        yield f"{seen.ok} successes in the ledger, which had {seen.least_ok} before the fault"
    if seen.answered is None:
        return
    missing, late = seen.answered - seen.ok, seen.failures.get("timeout", 0)
    if not 0 <= missing <= expected.in_flight + late:
        yield f"{seen.ok} successes in the ledger, and the server gave {seen.answered} answers"


def _left(expected: Expected, seen: Seen) -> Iterator[str]:
    if seen.status not in (expected.status.split(" or ") if expected.folder else [""]):
        yield f"the study's status is {seen.status or 'unknown'}, not {expected.status}"
    if expected.folder and seen.shown != 0:
        yield f"reports show ended with {seen.shown}: {flat(seen.shown_text)[-200:]}"
    if "Traceback" in seen.shown_text:
        yield "a traceback of reports show"
    if expected.left and (missing := set(FILES) - seen.files):
        yield f"missing: {', '.join(sorted(missing))}"
    if broken := [name for name in seen.files if name.startswith(".")]:
        yield f"half-written: {', '.join(broken)}"
    if seen.seconds > LONGEST_S:
        yield f"timeline.csv reaches over {seen.seconds} seconds"
    if seen.processes:
        yield f"left running: {'; '.join(seen.processes)}"
    if seen.temporary:
        yield f"left in the temporary folder: {', '.join(seen.temporary)}"
