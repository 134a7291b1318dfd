"""Drills of the suite's own: its disk, its workers, its master, its clock, and the servers it started."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.drills.drill import Drill
from tests.drills.judging import ANY, MAYBE, Expected
from tests.drills.places import in_place
from tests.drills.processes import Failure, named
from tests.drills.rig import STEP7, Rig
from tests.drills.seen import UNFINISHED

PORTS = 20_000
DISK = "size=3m"
LIBRARY = "libfaketimeMT.so.1"
FAKETIME = next(Path("/usr/lib").glob(f"*/faketime/{LIBRARY}"), Path(LIBRARY))
HOUR_S = 3_600
UNSHIPPED = 64
"""Answers that four users of a lost worker may have had since its last second was shipped."""


def small_disk(rig: Rig) -> None:
    """Results go to a file system of a few megabytes."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(rig.results)], check=True)
    rig.undo.callback(subprocess.run, ["umount", "--lazy", str(rig.results)], check=True)
    rig.serve()
    rig.ordinary("--seconds", "30")


def fill_disk(rig: Rig) -> None:
    """Not a byte is left."""
    rig.keep_what_is_there()
    with (rig.results / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass


def two_workers(rig: Rig) -> None:
    """Master and two workers, started as `inferswarm run` does."""
    rig.serve()
    way = (sys.executable, "-m", "swarm", "run", "-f", STEP7, "--workers", "2")
    rig.ordinary("--seconds", "8", way=way)


def worker_of(rig: Rig) -> int:
    """One worker's process, Locust itself and not what holds its supervisor."""
    return found(rig, "--worker")[0]


def found(rig: Rig, word: str) -> list[int]:
    """Processes of the study by a word of their command lines, started last first."""
    pids = [
        pid for pid in named(rig.mark, word) if "supervisor" not in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    if not pids:
        raise Failure(f"no process of the study has {word} in its command line")
    return sorted(pids, reverse=True)


def kill_worker(rig: Rig) -> None:
    """SIGKILL."""
    rig.both_measure()
    os.kill(worker_of(rig), signal.SIGKILL)


def stop_worker(rig: Rig) -> None:
    """SIGSTOP, for good."""
    rig.both_measure()
    os.kill(worker_of(rig), signal.SIGSTOP)


def kill_master(rig: Rig) -> None:
    """SIGKILL."""
    rig.both_measure()
    rig.keep_what_is_there()
    os.kill(found(rig, "--master")[0], signal.SIGKILL)


def embedded(rig: Rig) -> None:
    """A real tritonserver that the study starts itself, its model sleeps; its ports are its place's."""
    rig.prefix = in_place(rig, PORTS)
    rig.run("--emulate", "200+0", "--endpoints", "onnx-http", *rig.sizes("--seconds", "8"))


def kill_triton(rig: Rig) -> None:
    """SIGKILL to tritonserver itself, which began before the processes of its models."""
    rig.keep_what_is_there()
    os.kill(found(rig, "tritonserver")[-1], signal.SIGKILL)


def by_other_clock(rig: Rig) -> None:
    """The study's wall clock is libfaketime's, which a file sets; monotonic clocks are the machine's own."""
    clock = rig.folder / "clock"
    clock.write_text("+0")
    rig.serve()
    rig.environment = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock)}
    rig.environment |= dict.fromkeys(("FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC"), "1")
    rig.ordinary()


def step_clock(seconds: int) -> Callable[[Rig], None]:
    """So far forward, or back where it is negative."""

    def plant(rig: Rig) -> None:
        (rig.folder / "clock").write_text(f"{seconds:+d}")

    return plant


STEPPED = Expected(0, {}, ("clock-stepped",), ("out-of-range",), limit="")
FULL = Expected(
    3, caveats=("unfinished",), left=False, in_flight=ANY,
    # A footer is short: it may find room in the last block that the ledger already has.
    status=f"{UNFINISHED} or failed", says=("the ledger cannot be written \\(No space left on device",),
)  # fmt: skip
LOST = Expected(3, {}, ("worker-lost",), in_flight=UNSHIPPED, says=("worker w\\d was lost",))
CUT_OFF = Expected(3, {}, ("unfinished",), status=UNFINISHED, left=False, in_flight=ANY)
DIED = Expected(
    3, {"refused": MAYBE, "reset": MAYBE}, ("failed",), in_flight=ANY, says=("emulated server died",)
)
FORWARD, BACK = "the study's wall clock set forward by an hour", "the study's wall clock set back by an hour"
DRILLS = (
    Drill("disk-full", "the disk of the results full", FULL, fill_disk, small_disk, needs_root=True),
    Drill("worker-killed", "one of two workers killed", LOST, kill_worker, two_workers),
    Drill("worker-hung", "one of two workers stopped, for good", LOST, stop_worker, two_workers),
    Drill("master-killed", "the master killed", CUT_OFF, kill_master, two_workers),
    Drill(
        "embedded-killed", "the embedded tritonserver killed", DIED, kill_triton, embedded, needs_root=True
    ),
    Drill("clock", FORWARD, STEPPED, step_clock(HOUR_S), by_other_clock, needs=FAKETIME),
    Drill("clock-back", BACK, STEPPED, step_clock(-HOUR_S), by_other_clock, needs=FAKETIME),
)
