"""The launcher of a study: hosts checked, links measured, master and workers started, watched and ended."""

from __future__ import annotations

import functools
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from reports.format import plain_lines
from swarm.errors import SwarmError
from swarm.hosts.check import HostError, check, check_all, problems
from swarm.hosts.host import Host
from swarm.hosts.hosts_file import HostSpec
from swarm.hosts.ssh import PORT_TAKEN
from swarm.launcher.child import LeashedProcess, Signals, StopSignal, free_port, leashed, spread
from swarm.launcher.manifest import BEGAN, LaunchManifest
from swarm.launcher.orphans import new_folder
from swarm.links.measure import differences, measure
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile

POLL_S = 0.2
ORDERLY_S = 90.0
"""How long a study that is stopped may take to end its requests and write its report."""
ALONE_S = 20.0
"""How long a master may take to notice that no worker is left."""
WORKERS_S = 120
"""How long workers may take to connect."""
INCONCLUSIVE, EXIT_CODES = 3, (0, 1, 2, 3)
"""Of a master; whatever else it ends with, its study has no verdict."""
LOOPBACK = "127.0.0.1"


class Launcher:
    """One study's hosts, links and processes; `undo` takes all of it down again, on every way out.

    `command` is how the study is made again.
    """

    def __init__(self, undo: ExitStack, signals: Signals, command: Sequence[str]) -> None:
        self._undo, self._signals, self._command = undo, signals, command
        self._network: Network | None = None
        self._hosts: list[Host] = []
        self._counts: list[int] = []
        self._workers: list[LeashedProcess] = []
        """Those that run."""
        self._again: dict[LeashedProcess, Callable[[], None]] = {}
        """How to start one once more."""
        self._about_hosts: list[dict[str, Any]] = []
        self._about_links: list[dict[str, Any]] = []

    def prepare(self, specs: Sequence[HostSpec], workers: int, profiles: Sequence[LinkProfile]) -> None:
        """Make what must be made, and see whether all of it is fit. Raises SwarmError."""
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
            say(f"host {name} ({kind}): {workers} worker(s){warnings}")
            facts = found.facts.to_record()
            self._about_hosts.append({"name": name, "kind": kind, "workers": workers, "facts": facts})
        if wrong:
            raise HostError("; ".join(wrong))

    def _measured(self, profile: LinkProfile) -> dict[str, Any]:
        """A link's entry for the ledger: what was asked of it, and what real packets found."""
        assert self._network is not None
        by_host, off = {}, []
        for host in self._network.addresses():
            found = measure(self._network, host, profile)
            by_host[host] = found.to_record()
            wrong = differences(profile, found)
            off += [f"{host}: {text}" for text in wrong]
            say(f"link {profile.name} of {host}: {found}{'; '.join(['', *wrong])}")
        emulator = self._network.emulator_of(profile)
        return {**profile.to_record(), "emulator": emulator, "measured": by_host, "differences": off}

    def _launch(self, logs: Path) -> LaunchManifest:
        workers, network = sum(self._counts), self._network
        alone = LaunchManifest(self._command, workers, self._about_hosts, self._about_links, logs=str(logs))
        if network is None:
            return alone
        servers = {"server_command": network.server_command([]), "server_address": network.server_address}
        return LaunchManifest(**{**vars(alone), **servers, "addresses": network.addresses()})

    def run(self, locustfile: str, arguments: Sequence[str]) -> int:
        """Start the master with its arguments and every worker; the master's exit code at its end."""
        logs = new_folder("workers")
        self._undo.callback(shutil.rmtree, logs, ignore_errors=True)
        address = self._network.control_address if self._network else LOOPBACK
        port = free_port(address)
        bound = ["--master", "--master-bind-host", address, "--master-bind-port", str(port)]
        if "--headless" in arguments:
            bound += ["--expect-workers", str(sum(self._counts)), "--expect-workers-max-wait", str(WORKERS_S)]
        command = leashed([sys.executable, "-m", "locust", *arguments, *bound], ORDERLY_S)
        master = LeashedProcess("master", command, None, self._launch(logs).to_environment())
        # Workers are let go of first: a master that is still there then learns that they have left.
        self._undo.enter_context(master)
        for host, count in zip(self._hosts, self._counts, strict=True):
            self._start_workers(host, count, locustfile, (address, port), logs)
        self._undo.callback(self._let_go)
        try:
            return self._watch(master, logs / BEGAN)
        except StopSignal:
            return self._stop(master)

    def _start_workers(
        self, host: Host, count: int, locustfile: str, master: tuple[str, int], logs: Path
    ) -> None:
        there = host.locustfile(locustfile)
        for index in range(count):
            name = f"{host.spec.name}-{index + 1}"
            command = functools.partial(host.worker_command, ["-f", there], master, index)
            self._start(name, command, logs)

    def _start(self, name: str, command: Callable[[], list[str]], logs: Path, tries: int = 3) -> None:
        worker = LeashedProcess(f"worker {name}", command(), logs / f"worker-{name}.log", {})
        self._workers.append(self._undo.enter_context(worker))
        if tries > 1:
            self._again[worker] = functools.partial(self._start, name, command, logs, tries - 1)

    def _let_go(self) -> None:
        """All at once: each may take some seconds to end."""
        for worker in self._workers:
            worker.let_go()

    def _watch(self, master: LeashedProcess, began: Path) -> int:
        """Until the master ends; it makes the file `began` when all workers are there.

        Raises HostError where a worker ends before that: the study would wait for it. Later ends are told.
        """
        seen = time.monotonic()
        while (code := master.poll()) is None:
            for worker in [worker for worker in self._workers if worker.poll() is not None]:
                self._workers.remove(worker)
                self._tell_end(worker, began.exists() or master.wait(1.0) is not None)
            if self._workers:
                seen = time.monotonic()
            elif time.monotonic() - seen > ALONE_S:
                say("no worker is left: the study is stopped")
                return self._stop(master)
            if broken := self._broken_link():
                say(f"inferswarm: {broken}")
                self._stop(master)
                return INCONCLUSIVE
            time.sleep(POLL_S)
        return code if code in EXIT_CODES else INCONCLUSIVE

    def _tell_end(self, worker: LeashedProcess, began: bool) -> None:
        """Workers end in order when the master tells them to; any other end is told. Raises HostError."""
        code, tail = worker.poll(), worker.tail()
        if PORT_TAKEN in tail and worker in self._again:
            # Each start tries another port for the tunnel.
            self._again[worker]()
        elif code:
            text = f"{worker.name} ended (exit code {code}); its output ends:\n{tail}"
            if not began:
                raise HostError(text)
            say(text)

    def _broken_link(self) -> str:
        """What is wrong with an emulated link, or nothing."""
        try:
            if self._network:
                self._network.check()
        except SwarmError as error:
            return str(error)
        return ""

    def _stop(self, master: LeashedProcess) -> int:
        """Let the master end its study in order; a second signal ends it at once."""
        master.ask_to_end()
        deadline = time.monotonic() + ORDERLY_S
        while master.poll() is None and time.monotonic() < deadline and self._signals.count < 2:
            time.sleep(POLL_S)
        if master.poll() is None:
            master.kill()
        code = master.poll()
        return code if code in EXIT_CODES else INCONCLUSIVE


def say(text: str) -> None:
    """A line for the person."""
    print(plain_lines(text), flush=True)
