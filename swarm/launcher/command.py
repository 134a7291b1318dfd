"""`python -m swarm run`: hosts, links, master and workers of one study, and all of them gone at its end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from reports.format import plain_lines
from reports.parser import Parser
from swarm.errors import SwarmError, UsageError
from swarm.hosts.host import GIVEN
from swarm.hosts.hosts_file import HostSpec, add_ssh_config, hosts_named
from swarm.launcher.child import Signals, StopSignal, workers_wanted
from swarm.launcher.launcher import Launcher
from swarm.links.profiles import LinkProfile, profiles_named, read_profiles

USAGE, INTERRUPTED = 2, 3
NO_LINK = "none"


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and the study's and Locust's, which are left as they are."""
    parser = Parser(
        prog="python -m swarm run",
        allow_abbrev=False,
        description="Run a study on one or more client hosts: Locust's master here, its workers there,"
        " emulated links between them and the servers where asked, and one result folder.",
        epilog="Every other option goes to the study: see `locust -f FILE --help`.",
    )
    parser.add_argument("-f", "--locustfile", required=True, metavar="FILE", help="the study's locustfile")
    parser.add_argument(
        "--workers", type=int, default=0, metavar="N", help="worker processes in all (default: the study's)"
    )
    parser.add_argument(
        "--hosts",
        default="1",
        metavar="N|FILE",
        help="client hosts: a number of them on this machine, or a hosts.toml (default: %(default)s)",
    )
    parser.add_argument(
        "--link",
        default="none",
        metavar="NAME,…",
        help="emulated links between hosts and embedded servers; see `python -m swarm link` (default: none)",
    )
    parser.add_argument("--links", default="", metavar="FILE", help="a file with link profiles of your own")
    add_ssh_config(parser)
    parser.add_argument("--web", action="store_true", help="Locust's web UI at http://127.0.0.1:8089")
    options, rest = parser.parse_known_args(argv)
    if options.workers < 0:
        raise UsageError(f"--workers {options.workers}: give 1 or more")
    for word in rest:
        if word.partition("=")[0] in GIVEN:
            raise UsageError(f"{word}: master and workers are started here; leave it out")
    return options, rest


def hosts_of(text: str, linked: bool, ssh_config: str = "") -> list[HostSpec]:
    """As `hosts_named`. Raises UsageError, too, where they cannot be started here, or have no links."""
    specs = hosts_named(text, linked, ssh_config)
    for spec in specs:
        if spec.kind == "k8s":
            raise UsageError(
                f"--hosts {text}: host {spec.name} is of kind k8s, which `kubectl` starts: see"
                " `python -m swarm hosts manifests`"
            )
        if linked and spec.kind != "netns":
            raise UsageError(
                f"--link: host {spec.name} is of kind {spec.kind}; only netns hosts have emulated links,"
                " leave --link out or that host"
            )
    return specs


def enough(specs: Sequence[HostSpec], needed: int) -> int:
    """As many workers as the study wants, at least one a host; or those of a hosts.toml that names all."""
    own = sum(spec.workers or 1 for spec in specs)
    return own if all(spec.workers for spec in specs) else max(needed, own)


def profiles_of(options: argparse.Namespace) -> list[LinkProfile]:
    """The links asked for; `none` among them is the path as it is. Raises UsageError."""
    names = [name.strip() for name in options.link.split(",") if name.strip() != NO_LINK]
    if not names:
        return []
    return profiles_named(",".join(names), read_profiles(Path(options.links) if options.links else None))


def main(argv: list[str]) -> int:
    """Run it: the master's exit code; 2 where it could not be started, 3 where it was stopped."""
    signals = Signals()
    try:
        options, rest = parse(argv)
        needed = workers_wanted(options.locustfile)
        profiles = profiles_of(options)
        specs = hosts_of(options.hosts, bool(profiles), options.ssh_config)
        workers = options.workers or enough(specs, needed)
        study = ["-f", options.locustfile, "--link", options.link, *rest]
        with ExitStack() as undo:
            launcher = Launcher(undo, signals, ["python", "-m", "swarm", "run", *argv])
            try:
                launcher.prepare(specs, workers, profiles)
                return launcher.run(options.locustfile, [*study, *ways_of(options.web)])
            finally:
                signals.over = True
    except SwarmError as error:
        print(f"inferswarm: {plain_lines(error)}", file=sys.stderr, flush=True)
        return USAGE
    except StopSignal:
        print("inferswarm: stopped before the study began", file=sys.stderr, flush=True)
        return INTERRUPTED


def ways_of(web: bool) -> list[str]:
    """How Locust's master presents itself."""
    return [] if web else ["--headless"]
