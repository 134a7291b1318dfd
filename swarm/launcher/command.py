"""`inferswarm run`: hosts, links, master and workers of one study, all removed at its end."""

import argparse
import functools
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.entry import leaving_at_interrupt
from reports.format import plural
from reports.ledger.axes import NO_LINK
from reports.parser import Parser
from swarm.errors import SwarmError, UsageError
from swarm.hosts.check import HostError, check, check_all, problems
from swarm.hosts.command import say
from swarm.hosts.host import OWN_LOCUST, OWN_SUPERVISOR, PORT_TAKEN, Host
from swarm.hosts.hosts_file import HostSpec, add_ssh_config, hosts_named
from swarm.launcher.child import (
    Signals,
    StopSignal,
    SupervisedProcess,
    free_port,
    spread,
    workers_wanted,
)
from swarm.launcher.launch_info import BEGAN, LaunchInfo, as_typed
from swarm.launcher.locustfile import DEFAULT, check_named, locustfile_of, studies
from swarm.launcher.orphans import new_folder
from swarm.links.measure import differences, measure
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile, profiles_named, read_profiles

INTERRUPTED = 3
GIVEN = frozenset(
    {
        "--headless", "--autostart", "--master", "--worker", "--processes", "--expect-workers",
        "--expect-workers-max-wait", "--master-host", "--master-port", "--master-bind-host",
        "--master-bind-port",
    }
)  # fmt: skip
"""Options that the launcher itself gives to Locust's master and workers."""
POLL_S = 0.2
ORDERLY_S = 90.0
"""How long a stopped study may take to end its requests and write its report."""
ALONE_S = 20.0
"""How long a master may take to notice that no worker is left."""
WORKERS_S = 120
"""How long workers may take to connect."""
INCONCLUSIVE, EXIT_CODES = 3, (0, 1, 2, 3)
"""Exit codes of a master that reached a verdict; with any other its study has none."""


def parser() -> Parser:
    """Of our own options."""
    made = Parser(
        prog="inferswarm run",
        allow_abbrev=False,
        description="Run a study on one or more client hosts: Locust's master here, its workers there,"
        " emulated links between them and the servers where asked, and one result folder.",
        epilog="For Locust's own options see `inferswarm locust --help`.",
    )
    made.add_argument(
        "-f",
        "--locustfile",
        default=DEFAULT,
        metavar="STUDY",
        help=f"a study: {', '.join(studies())}, or a locustfile of your own (default: %(default)s)",
    )
    made.add_argument(
        "--workers", type=int, default=0, metavar="N", help="worker processes in all (default: the study's)"
    )
    made.add_argument(
        "--hosts",
        default="1",
        metavar="N|FILE",
        help="client hosts: a number of them on this machine, or a hosts.toml (default: %(default)s)",
    )
    made.add_argument(
        "--link",
        default=NO_LINK,
        metavar="NAME,…",
        help="emulated links between hosts and embedded servers, see `inferswarm link` (default: none)",
    )
    made.add_argument("--links", default="", metavar="FILE", help="a file with your own link profiles")
    add_ssh_config(made)
    made.add_argument("--web", action="store_true", help="Locust's web UI at http://127.0.0.1:8089")
    return made


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and the study's and Locust's, which are left as they are."""
    own = parser()
    if {"-h", "--help"} & set(argv):
        # Not otherwise: it imports Locust, which patches sockets and threads.
        from swarm.options.parse import add_options

        add_options(own)
        own.usage = "%(prog)s [-f STUDY] [options of the launcher, the study and Locust]"
    options, rest = own.parse_known_args(argv)
    if options.workers < 0:
        raise UsageError(f"--workers {options.workers}: workers must be at least 1")
    check_named(rest)
    for word in rest:
        if word.partition("=")[0] in GIVEN:
            raise UsageError(f"{word}: master and workers are started by this command; leave it out")
    return options, rest


def hosts_of(text: str, linked: bool, ssh_config: str = "") -> list[HostSpec]:
    """As `hosts_named`. Raises UsageError, too, where links are asked of hosts that have none."""
    specs = hosts_named(text, linked, ssh_config)
    for spec in specs:
        if linked and spec.kind != "netns":
            raise UsageError(
                f"--link: host {spec.name} is of kind {spec.kind}; only netns hosts have emulated links,"
                " leave out --link or that host"
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
    return profiles_named(names, read_profiles(Path(options.links) if options.links else None))


def main(argv: list[str]) -> int:
    """Run it: the master's exit code; 3 where it was stopped. Raises SwarmError where it does not start."""
    # For --help Locust is imported, in whose patches an exception would become another.
    with leaving_at_interrupt(INTERRUPTED):
        options, rest = parse(argv)
    signals = Signals()
    try:
        if has_lines_on_stdout(rest):
            sys.stdout = sys.stderr
        locustfile = locustfile_of(options.locustfile)
        needed = workers_wanted(locustfile)
        profiles = profiles_of(options)
        specs = hosts_of(options.hosts, bool(profiles), options.ssh_config)
        workers = options.workers or enough(specs, needed)
        study = ["-f", locustfile, "--link", options.link, *rest]
        with ExitStack() as undo:
            launcher = Launcher(undo, signals, [*as_typed(sys.argv[:1]), "run", *argv])
            try:
                launcher.prepare(specs, workers, profiles)
                return launcher.run(locustfile, [*study, *([] if options.web else ["--headless"])])
            finally:
                signals.over = True
    except StopSignal:
        print("inferswarm: stopped before the study began", file=sys.stderr, flush=True)
        return INTERRUPTED


def has_lines_on_stdout(rest: Sequence[str]) -> bool:
    """Whether standard output is for the study's --json-lines alone."""
    return "--json-lines=-" in rest or ("--json-lines", "-") in pairwise(rest)


class Launcher:
    """One study's hosts, links and processes; `undo` takes all of it down again, on every way out.

    `command` is how the study is made again.
    """

    def __init__(self, undo: ExitStack, signals: Signals, command: Sequence[str]) -> None:
        self._undo, self._signals, self._command = undo, signals, command
        self._network: Network | None = None
        self._hosts: list[Host] = []
        self._counts: list[int] = []
        self._workers: dict[SupervisedProcess, Callable[[], None] | None] = {}
        """The running ones, each with what is needed to restart it."""
        self._about_hosts: list[dict[str, Any]] = []
        self._about_links: list[dict[str, Any]] = []

    def prepare(self, specs: Sequence[HostSpec], workers: int, profiles: Sequence[LinkProfile]) -> None:
        """Build everything, and check that all of it works. Raises SwarmError."""
        self._counts = spread(specs, workers)
        if apart := [spec.name for spec in specs if spec.kind == "netns"]:
            self._network = self._undo.enter_context(Network(apart, profiles))
        self._hosts = [Host(spec, self._network.command if self._network else None) for spec in specs]
        self._check_hosts()
        self._about_links = [self._measured(profile) for profile in profiles]

    def _check_hosts(self) -> None:
        """Raises HostError where one is not fit."""
        own = check(Host(HostSpec("here", "process")))
        wrong = []
        for host, workers, found in zip(self._hosts, self._counts, check_all(self._hosts), strict=True):
            name, kind = host.spec.name, host.spec.kind
            if found.facts is None:
                wrong.append(found.why)
                continue
            faults = problems(found.facts, own, workers)
            wrong += [f"host {name}: {fault}" for fault in faults if fault.fatal]
            warnings = "".join(f"; {fault}" for fault in faults if not fault.fatal)
            say(f"host {name} ({kind}): {plural(workers, 'worker')}{warnings}")
            facts = found.facts.to_record()
            self._about_hosts.append({"name": name, "kind": kind, "workers": workers, "facts": facts})
        if wrong:
            raise HostError("; ".join(wrong))

    def _measured(self, profile: LinkProfile) -> dict[str, Any]:
        """A link's entry for the ledger: what was asked of it, and what real packets found."""
        assert self._network is not None
        by_host, off = {}, []
        for host in self._network.addresses:
            found = measure(self._network, host, profile)
            by_host[host] = found.to_record()
            wrong = differences(profile, found)
            off += [f"{host}: {text}" for text in wrong]
            say(f"link {profile.name} of {host}: {found}{'; '.join(['', *wrong])}")
        emulator = self._network.emulator_of(profile)
        return {**asdict(profile), "emulator": emulator, "measured": by_host, "differences": off}

    def _launch(self, logs: Path) -> LaunchInfo:
        network: dict[str, Any] = {}
        if self._network:
            network["addresses"] = self._network.addresses
            network["server_command"] = self._network.server_command([])
            network["server_address"] = self._network.server_address
        workers, hosts, links = sum(self._counts), self._about_hosts, self._about_links
        return LaunchInfo(self._command, workers, hosts, links, **network, logs=str(logs))

    def run(self, locustfile: str, arguments: Sequence[str]) -> int:
        """Start the master with its arguments and every worker; the master's exit code at its end."""
        logs = new_folder("workers")
        self._undo.callback(shutil.rmtree, logs, ignore_errors=True)
        address = self._network.control_address if self._network else "127.0.0.1"
        port = free_port(address)
        bound = ["--master", "--master-bind-host", address, "--master-bind-port", str(port)]
        if "--headless" in arguments:
            bound += ["--expect-workers", str(sum(self._counts)), "--expect-workers-max-wait", str(WORKERS_S)]
        locust = [*OWN_LOCUST, *arguments, *bound]
        command = [*OWN_SUPERVISOR, f"--patience={ORDERLY_S:g}", "--", *locust]
        master = SupervisedProcess("master", command, None, self._launch(logs).to_environment())
        # Workers are released first: a master that still runs then learns that they have left.
        self._undo.enter_context(master)
        for host, count in zip(self._hosts, self._counts, strict=True):
            there = ["-f", host.locustfile(locustfile)]
            for index in range(count):
                command_of = functools.partial(host.worker_command, there, (address, port), index)
                self._start(f"{host.spec.name}-{index + 1}", command_of, logs)
        self._undo.callback(self._let_go)
        try:
            code = self._watch(master, logs / BEGAN)
        except StopSignal:
            code = self._stop(master)
        return code if code in EXIT_CODES else INCONCLUSIVE

    def _start(self, name: str, command: Callable[[], list[str]], logs: Path, tries: int = 3) -> None:
        worker = SupervisedProcess(f"worker {name}", command(), logs / f"worker-{name}.log", {})
        again = functools.partial(self._start, name, command, logs, tries - 1) if tries > 1 else None
        self._workers[self._undo.enter_context(worker)] = again

    def _let_go(self) -> None:
        """All at once: each may take some seconds to end."""
        for worker in self._workers:
            worker.let_go()

    def _watch(self, master: SupervisedProcess, began: Path) -> int:
        """Until the master ends; it makes the file `began` when all workers are there.

        Raises HostError where a worker ends before that: the study would wait for it. Later ends are told.
        """
        seen = time.monotonic()
        while (code := master.poll()) is None:
            for worker in [worker for worker in self._workers if worker.poll() is not None]:
                self._tell_end(worker, self._workers.pop(worker), began.exists() or master.ends(1.0))
            if self._workers:
                seen = time.monotonic()
            elif time.monotonic() - seen > ALONE_S:
                say("no worker is left: stopping the study")
                return self._stop(master)
            try:
                if self._network:
                    self._network.check()
            except SwarmError as broken_link:
                say(f"inferswarm: {broken_link}")
                self._stop(master)
                return INCONCLUSIVE
            time.sleep(POLL_S)
        return code

    def _tell_end(self, worker: SupervisedProcess, again: Callable[[], None] | None, began: bool) -> None:
        """Workers end in order when the master tells them to; any other end is told. Raises HostError."""
        code, tail = worker.poll(), worker.tail()
        if PORT_TAKEN in tail and again:
            # Each start tries another port for the tunnel.
            again()
        elif code:
            text = f"{worker.name} ended (exit code {code}); its output ends:\n{tail}"
            if not began:
                raise HostError(text)
            say(text)

    def _stop(self, master: SupervisedProcess) -> int:
        """Let the master end its study in order; a second signal ends it at once."""
        master.terminate()
        deadline = time.monotonic() + ORDERLY_S
        while master.poll() is None and time.monotonic() < deadline and self._signals.count < 2:
            time.sleep(POLL_S)
        if master.poll() is None:
            master.kill()
        return master.wait()
