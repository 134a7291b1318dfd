"""`inferswarm link`: which links there are, what one really does, and any command as its client."""

import argparse
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from reports.parser import Parser
from swarm.links.measure import Measured, differences, measure
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile, profiles_named, read_profiles

OK, OFF = 0, 3
SERVER_VARIABLE = "INFERSWARM_SERVER"
HOST = "client"


def main(argv: list[str]) -> int:
    """List, measure or use links: 3 where a figure is off, or the command's code. Raises SwarmError."""
    words, command = _split(argv)
    arguments = parser().parse_args(words)
    # SIGTERM, too, takes everything down on its way out.
    with _on(signal.SIGTERM, _end):
        return _act(arguments.name, command, read_profiles(arguments.links))


def parser() -> argparse.ArgumentParser:
    """The command line up to `--`."""
    made = Parser(
        prog="inferswarm link",
        usage="%(prog)s [--links FILE] [NAME [-- COMMAND…]]",
        description="Without NAME: lists the known links. With NAME: builds that link on this machine, "
        "measures its round trip, rate and loss with packets of its own, and prints measured beside declared "
        "figures. With a command: runs it as a client of the link. Links need root.",
        epilog=f"Example: inferswarm link home -- sh -c 'curl http://${SERVER_VARIABLE}:8010/v2'. "
        "Exit code: 0; 3 if a figure is off; 2 if there is no such link; else the command's own.",
    )
    made.add_argument("name", metavar="NAME", nargs="?", default="", help="a link's name")
    made.add_argument(
        "--links", metavar="FILE", type=Path, help="a TOML file of link profiles to add, or to replace others"
    )
    made.add_argument_group(
        "COMMAND",
        f"runs in a namespace whose only way out is the link; {SERVER_VARIABLE} in its environment is the "
        "address at which it reaches this machine's servers that listen on 0.0.0.0",
    )
    return made


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """What comes before the first `--`, and after it."""
    at = argv.index("--") if "--" in argv else len(argv)
    return [*argv[:at]], [*argv[at + 1 :]]


def _act(name: str, command: list[str], known: Mapping[str, LinkProfile]) -> int:
    if not name:
        if command:
            parser().error("a command needs a link: give its NAME before `--`")
        Console(highlight=False).print(profiles_table(known.values()))
        return OK
    (profile,) = profiles_named([name], known)
    return run_over(profile, command) if command else compare(profile)


def run_over(profile: LinkProfile, command: Sequence[str]) -> int:
    """Run a command as a client of the link; its exit code, as a shell tells it."""
    with Network([HOST], [profile], servers_here=True) as network:
        environment = {**os.environ, SERVER_VARIABLE: network.address(HOST, profile)}
        # The terminal tells the command of Ctrl-C as well; how it ends is its own affair.
        with _on(signal.SIGINT, lambda number, frame: None):
            code = subprocess.Popen(network.command(HOST, command), env=environment).wait()
    return code if code >= 0 else 128 - code


def compare(profile: LinkProfile) -> int:
    """Build the link, measure it, print it; 3 where it is not what its profile says."""
    with Network([HOST], [profile]) as network:
        measured = measure(network, HOST, profile)
        emulator = network.emulator_of(profile)
    Console(highlight=False).print(measured_table(profile, measured, emulator))
    found = differences(profile, measured)
    for difference in found:
        print(f"{profile.name}: {difference}")
    return OFF if found else OK


def profiles_table(profiles: Iterable[LinkProfile]) -> Table:
    """The known links, a row each."""
    heads = ["link", "rtt ms", "Mbit/s", "loss %", "queue or burst kB", "TCP", "description"]
    rows = [
        [
            profile.name,
            f"{profile.rtt_ms:g}",
            _or_dash(profile.mbit_per_s),
            f"{profile.loss_pct:g}",
            _or_dash((profile.queue_bytes or profile.burst_bytes) / 1e3),
            profile.congestion_control,
            profile.about,
        ]
        for profile in profiles
    ]
    return _table(heads, rows, numeric=range(1, 5))


def measured_table(profile: LinkProfile, measured: Measured, emulator: str) -> Table:
    """What was asked of a link beside what it did, a row for each figure."""
    rows = [
        ["round trip, median ms", f"{profile.rtt_ms:g}", f"{measured.rtt_ms:.2f}"],
        ["round trip, minimum ms", "", f"{measured.rtt_min_ms:.2f}"],
        ["to the server, Mbit/s", _or_dash(profile.mbit_per_s), f"{measured.mbit_per_s:.4g}"],
        [f"lost of {measured.sent} packets, %", f"{profile.loss_pct:g}", f"{measured.loss_pct:.2g}"],
    ]
    by = {"none": "not emulated", "tun": "emulated by our forwarder"}.get(emulator, f"emulated by {emulator}")
    return _table([f"{profile.name}, {by}", "asked", "measured"], rows, numeric=range(1, 3))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: range) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, head in enumerate(heads):
        justify: JustifyMethod = "right" if index in numeric else "left"
        table.add_column(Text(head), justify=justify, no_wrap=index == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _or_dash(value: float | None) -> str:
    return f"{value:g}" if value else "–"


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _on(number: signal.Signals, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
