"""Reading the trace files of the embedded tritonservers, once a run has been measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import gevent

from swarm.backends.admin_client import PATIENCE_S, Line
from swarm.distributed.collector import Collector
from swarm.plan.cell import Run
from swarm.sampling.triton_trace import Joined, Stamps, join, latest, stamps_of
from users.errors import RequestError, status_error

PAUSE_S, TRIES = 0.1, 30
"""Triton writes a request's times once it has put the request away, which is after the answer."""


def write_out(address: str) -> None:
    """Have a tritonserver write the file that is not full: it does when told its settings, even to keep them.

    Raises RequestError.
    """
    with closing(Line(address, PATIENCE_S)) as line:
        told = line.ask("POST", "/v2/trace/setting", {}, control=True)
    if not told.ok:
        raise status_error(told.status, told.text.encode())


class TraceReader:
    """The traces of the servers in `ready`, what the embedded servers said; none where they do not trace."""

    def __init__(
        self,
        ready: Mapping[str, Any],
        collector: Collector,
        write_out: Callable[[str], None] = write_out,
        sleep: Callable[[float], None] = gevent.sleep,
    ) -> None:
        self._servers, self._collector = ready.get("endpoints", {}), collector
        self._write_out, self._sleep = write_out, sleep

    def joined(self, run: Run) -> Joined | None:
        """The measured requests of the run just drained; None where its server does not trace."""
        server = self._servers.get(run.cell.endpoint.server, {})
        if "trace" not in server:
            return None
        waits_ns = self._collector.raw.waits_ns(run.cell.name, run.repeat)
        traced, fault = self._read(server["http"], Path(server["trace"]), waits_ns.keys())
        return join(waits_ns, traced, self._collector.ok, fault)

    def _read(self, address: str, trace: Path, wanted: Collection[str]) -> tuple[Mapping[str, Stamps], str]:
        """The timestamps of the wanted requests, and what went wrong, if anything."""
        found: dict[str, Stamps] = {}
        fault = ""
        try:
            self._write_out(address)
        except RequestError as error:
            fault = f"Triton did not write its last file: {error.kind}"
        for _ in range(TRIES):
            broken = self._take(trace, wanted, found)
            if len(found) == len(wanted):
                break
            self._sleep(PAUSE_S)
        else:
            for file in broken:
                fault = f"{file.name} cannot be read"
                file.unlink(missing_ok=True)
        return found, fault

    def _take(self, trace: Path, wanted: Collection[str], found: dict[str, Stamps]) -> list[Path]:
        """Reads every whole file and removes it; those that are not whole, yet or for good."""
        broken = []
        for file in trace.parent.glob(f"{trace.name}.*"):
            try:
                for name, stamps in stamps_of(file.read_text(), wanted).items():
                    found[name] = latest(found.get(name, {}), stamps)
                file.unlink()
            except (OSError, ValueError):
                broken.append(file)
            self._sleep(0)  # a file takes milliseconds, and there can be thousands
        return broken
