"""Drills of what lies between: names, ports, files and links, most in namespaces of the drill's own."""

import resource
from dataclasses import replace

from tests.drills.drill import Drill
from tests.drills.judging import ANY, MAYBE, SOME, Expected
from tests.drills.places import NAME, Apart, in_place, with_hosts
from tests.drills.rig import IMPATIENT, Rig

FRESH = ("--channels", "per-request")
PORTS = 100
CUT_S = 10.0
NONE_LEFT = 3
"""Open files that a process may have: its standard ones."""


def nothing(rig: Rig) -> None:
    """The fault lies in how the drill began."""


def unknown_name(rig: Rig) -> None:
    """A target whose name nobody knows."""
    rig.host = "no-such-host.invalid"
    rig.ordinary()


def by_name(rig: Rig) -> None:
    """A target with a name that only a file of the drill's knows, asked anew for each request."""
    rig.serve()
    rig.prefix = with_hosts(rig.folder, known=True)
    rig.host = NAME
    rig.ordinary(*FRESH)


def forget_name(rig: Rig) -> None:
    """From now on the name is unknown."""
    with_hosts(rig.folder, known=False)


def few_ports(rig: Rig) -> None:
    """Client and server in a place with so few local ports, each of them used but once a minute."""
    rig.prefix = in_place(rig, PORTS)
    rig.port = 8002
    rig.serve(prefix=rig.prefix)
    rig.ordinary(*FRESH)


def fresh(rig: Rig) -> None:
    """A new connection for each request."""
    rig.serve()
    rig.ordinary(*FRESH)


def no_files(rig: Rig) -> None:
    """The study can open no file more."""
    assert rig.study is not None
    _, most = resource.prlimit(rig.study.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(rig.study.pid, resource.RLIMIT_NOFILE, (NONE_LEFT, most))


def over_link(rig: Rig) -> None:
    """The client in a place of its own, with one way to the server."""
    rig.apart = Apart(rig.undo)
    rig.host = rig.apart.server_address
    rig.serve()
    rig.prefix = rig.apart.prefix
    rig.ordinary("--seconds", "16", *IMPATIENT)


def cut_link(rig: Rig) -> None:
    """Nothing comes through for 10 s."""
    assert rig.apart is not None
    rig.apart.cut()
    rig.pause(CUT_S)
    rig.apart.heal()


def cut_worker(rig: Rig) -> None:
    """The same, while both workers measure."""
    rig.both_measure()
    rig.keep_what_is_there()
    cut_link(rig)


def worker_over_link(rig: Rig) -> None:
    """Two workers, one of them in a place of its own: its link leads to the server and to the master."""
    rig.apart = Apart(rig.undo)
    rig.host = rig.apart.server_address
    rig.serve()
    rig.master_and_workers((), rig.apart.prefix, seconds=16)


UNLOST = ("results-lost", "server-lost")
UNKNOWN = "no-such-host.invalid:.* cannot be reached \\(unknown host name\\)"
NO_REPORT = "the report cannot be made \\(Too many open files\\); make it later with"
NAMELESS = Expected(2, folder=False, left=False, limit="", says=(UNKNOWN,))
EXHAUSTED = Expected(3, {"exhausted": SOME}, ("failures", "client-exhausted"), UNLOST)
CUT = {"timeout": SOME, "unreachable": MAYBE}
HEALED = Expected(1, CUT, ("failures",), ("results-lost", "counts-mismatch"))
LOST = Expected(3, dict.fromkeys(CUT, MAYBE), ("worker-lost",), in_flight=ANY, says=("worker w\\d was lost",))
DRILLS = (
    Drill("dns-never", "a host name that has no address, from the start", NAMELESS, nothing, unknown_name),
    Drill(
        "dns-fails", "a host name that loses its address in the middle",
        Expected(1, {"dns": SOME}, ("failures",), UNLOST), forget_name, by_name, needs_root=True,
    ),
    Drill(
        "ports", f"{PORTS} local ports for a connection each request",
        replace(EXHAUSTED, limit="client-ports"), nothing, few_ports, needs_root=True,
    ),
    Drill(
        "files", "no more open files for the client",
        replace(EXHAUSTED, left=False, says=(NO_REPORT,)), no_files, fresh,
    ),
    Drill(
        "link-cut", "the link to the server cut for 10 s, then healed",
        HEALED, cut_link, over_link, needs_root=True,
    ),
    Drill(
        "worker-cut", "a worker's link to master and server cut for 10 s, then healed",
        LOST, cut_worker, worker_over_link, needs_root=True,
    ),
)  # fmt: skip
