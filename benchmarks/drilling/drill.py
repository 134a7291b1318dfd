"""A drill as a value, and how one is carried out: server up, study on, fault planted, all looked at."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import SubprocessError

from benchmarks.drilling.judging import Expected, differences, flat, told
from benchmarks.drilling.looking import look
from benchmarks.drilling.processes import Failure
from benchmarks.drilling.rig import Rig
from benchmarks.drilling.seen import Seen
from swarm.errors import SwarmError

DEADLINE_S = 90.0
"""From the fault to the study's end, report included; a study that takes longer hangs."""
BROKEN = (Failure, SwarmError, SubprocessError, OSError, ValueError)
"""What ends one drill and lets the others go on; ValueError: what the study left cannot be read."""


def serve(rig: Rig) -> None:
    """The stand-in for the service, and the ordinary study of it."""
    rig.serve()
    rig.ordinary()


@dataclass(frozen=True)
class Drill:
    """`begin` starts server and study, `plant` the fault in the middle of the measure phase.

    `cause`: the fault in words. `needs_root`: since it makes namespaces or mounts. `needs`: a file that must
    be there.
    """

    name: str
    cause: str
    expected: Expected
    plant: Callable[[Rig], None]
    begin: Callable[[Rig], None] = serve
    needs_root: bool = False
    needs: Path | None = None
    deadline_s: float = DEADLINE_S


@dataclass(frozen=True)
class Outcome:
    """A drill that was carried out, or `skipped` for a reason; `wrong` is empty where it went as expected."""

    drill: Drill
    seen: str = ""
    wrong: tuple[str, ...] = ()
    skipped: str = ""
    terminal: str = ""

    @property
    def verdict(self) -> str:
        """One word or two, for the table."""
        return "skipped" if self.skipped else "no" if self.wrong else "yes"


def carried_out(drill: Drill, pictures: Path) -> Outcome:
    """Carry one out, and judge it; where that cannot be done it is wrong, for a reason."""
    if drill.needs_root and os.geteuid():
        return Outcome(drill, skipped="namespaces and mounts need root")
    if drill.needs and not drill.needs.exists():
        return Outcome(drill, skipped=f"{drill.needs} is not there: install the package libfaketime")
    terminal = ""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="inferswarm-drill-") as folder,
            Rig(Path(folder), pictures) as rig,
        ):
            try:
                seen = watched(drill, rig)
            finally:
                terminal = rig.text
    except BROKEN as error:
        return Outcome(drill, wrong=(flat(f"it broke: {error}"),), terminal=terminal)
    return Outcome(drill, told(seen), tuple(differences(drill.expected, seen)), terminal=seen.text)


def watched(drill: Drill, rig: Rig) -> Seen:
    """What is seen of a drill, from its begin to its study's end."""
    drill.begin(rig)
    rig.under_load()
    rig.hold_logs()
    drill.plant(rig)
    return look(rig, rig.wait(drill.deadline_s))


def planted(name: str, count: int) -> Callable[[Rig], None]:
    """So many requests meet a fault of the stand-in's."""

    def plant(rig: Rig) -> None:
        rig.server.fault(name, count)

    return plant


@contextmanager
def few_pictures() -> Iterator[Path]:
    """A folder with two pictures: before its load a study asks for a golden embedding of each."""
    from users.inputs.images import load_images

    with tempfile.TemporaryDirectory(prefix="inferswarm-drill-") as folder:
        for number, jpeg in enumerate(load_images("").jpegs[:2]):
            Path(folder, f"{number}.jpg").write_bytes(jpeg)
        yield Path(folder)


def chosen(drills: Sequence[Drill], names: Sequence[str]) -> list[Drill]:
    """Those of the names, or all. Raises ValueError naming one that is not known."""
    known = {drill.name for drill in drills}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"--only {unknown[0]}: no such drill; --list tells their names")
    return [drill for drill in drills if not names or drill.name in names]
