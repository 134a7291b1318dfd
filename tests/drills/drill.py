"""A drill as a value, and how one is carried out: server up, study on, fault planted, all looked at."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.drills.judging import Expected
from tests.drills.rig import Rig
from tests.drills.seen import Seen, look

DEADLINE_S = 90.0
"""From the fault to the study's end, report included; a study that takes longer hangs."""


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

    def carry_out(self, rig: Rig) -> Seen:
        """What is seen of it, from its begin to its study's end."""
        self.begin(rig)
        rig.under_load()
        rig.hold_logs()
        self.plant(rig)
        return look(rig, rig.wait(DEADLINE_S))


def planted(name: str, count: int) -> Callable[[Rig], None]:
    """So many requests meet a fault of the stand-in's."""

    def plant(rig: Rig) -> None:
        rig.server.fault(name, count)

    return plant
