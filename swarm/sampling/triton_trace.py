"""Triton's traces joined to our requests: what its files hold, the parts of each request, what is missing."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent

from reports.histogram import codec
from swarm.distributed.collector import Collector
from swarm.plan.cell import PlannedRun
from users.errors import RequestError, status_error
from users.transport.admin_connection import PATIENCE_S, AdminConnection

FEW = 0.9
"""If fewer of a run's requests than this are joined, its percentiles are uncertain."""
PARTS = {
    "receive": (("HTTP_RECV_START",), ("HTTP_RECV_END",)),
    "queue": (("QUEUE_START",), ("COMPUTE_START",)),
    "input": (("COMPUTE_START",), ("COMPUTE_INPUT_END",)),
    "compute": (("COMPUTE_INPUT_END",), ("COMPUTE_OUTPUT_START",)),
    "output": (("COMPUTE_OUTPUT_START",), ("COMPUTE_END",)),
    "send": (("HTTP_SEND_START", "GRPC_SEND_START"), ("HTTP_SEND_END", "GRPC_SEND_END")),
    "server": (("HTTP_RECV_END", "GRPC_WAITREAD_END"), ("HTTP_SEND_START", "GRPC_SEND_START")),
}
"""The two Triton timestamps of each part; `server` runs from the complete request to the answer's start.

Not to REQUEST_END: over gRPC an answer is sent before Triton has put its request away. And gRPC waits for a
request from the one before on, so that GRPC_WAITREAD_START tells nothing of how long it was received.
"""
Stamps = Mapping[str, int]
"""Triton's timestamps of one request by name, in nanoseconds of the server's monotonic clock."""
PAUSE_S, TRIES = 0.1, 30
"""Triton writes a request's times once it has released the request, which is after the answer."""


def stamps_of(text: str, wanted: Collection[str]) -> dict[str, Stamps]:
    """The timestamps in one of Triton's trace files, by the wanted of the ids that clients gave.

    Raises ValueError where it is no whole trace file. The records of one request share Triton's own number;
    an ensemble's steps have numbers of their own, and its request's id.
    """
    names: dict[int, str] = {}
    stamps: defaultdict[int, dict[str, int]] = defaultdict(dict)
    try:
        for record in json.loads(text):
            if record.get("request_id") in wanted:
                names[record["id"]] = record["request_id"]
            for stamp in record.get("timestamps", ()):
                stamps[record["id"]][stamp["name"]] = stamp["ns"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no trace file from Triton ({error!r})") from error
    found: dict[str, Stamps] = {}
    for number, name in names.items():
        found[name] = latest(found.get(name, {}), stamps[number])
    return found


def latest(first: Stamps, second: Stamps) -> Stamps:
    """Both, and the later one of what both have: of an ensemble's steps, which follow one another, the last.

    So its queue and compute are those of the model that computes, and `server` is the whole of it.
    """
    return {
        name: max(times[name] for times in (first, second) if name in times) for name in {**first, **second}
    }


def parts_ns(stamps: Stamps, wait_ns: int) -> dict[str, int]:
    """The parts of one request that its timestamps tell apart, and `outside`: the client's wait but `server`.

    Where the client noticed its last byte's departure later than Triton its arrival, `outside` would be below
    0, and is 0.
    """
    found = {}
    for part, (begins, ends) in PARTS.items():
        begin = next((stamps[name] for name in begins if name in stamps), None)
        end = next((stamps[name] for name in ends if name in stamps), None)
        if begin is not None and end is not None:
            found[part] = max(0, end - begin)
    if "server" in found:
        found["outside"] = max(0, wait_ns - found["server"])
    return found


@dataclass(frozen=True)
class Joined:
    """One run's requests in the trace: how many could be there, how many were, and the parts of each.

    `parts`: by name, nanoseconds of each request. `gap`: a sentence, or nothing.
    """

    requests: int
    joined: int
    parts: Mapping[str, list[int]]
    gap: str

    def to_record(self) -> dict[str, Any]:
        """As the ledger keeps it, but for kind and run."""
        texts = {name: codec.encoded_ns(values)[0] for name, values in self.parts.items()}
        return {"requests": self.requests, "joined": self.joined, "histograms": texts}


def join(
    waits_ns: Mapping[str, int], traced: Mapping[str, Stamps], successes: int, fault: str = ""
) -> Joined:
    """The clients' waits and Triton's timestamps, both by request id.

    `successes` are all of the run's, kept or not; `fault` says what of the trace could not be read.
    """
    found = [parts_ns(traced[name], wait_ns) for name, wait_ns in waits_ns.items() if name in traced]
    names = dict.fromkeys(name for parts in found for name in parts)
    by_part = {name: [parts[name] for parts in found if name in parts] for name in names}
    return Joined(len(waits_ns), len(found), by_part, gap_of(len(waits_ns), len(found), successes, fault))


def gap_of(requests: int, joined: int, successes: int, fault: str) -> str:
    """What a reader must know of requests that are missing, or nothing."""
    said = []
    if requests < FEW * successes:
        said.append(
            f"--raw-results left room for {requests:,} of {successes:,} requests, so no more are joined"
        )
    if joined < FEW * requests or (joined < requests and fault):
        reason = f" ({fault})" if fault else ""
        said.append(f"{joined:,} of {requests:,} requests were found in Triton's trace{reason}")
    return "; ".join(said)


def write_out(address: str) -> None:
    """Have a tritonserver write the file that is not full: it does when told its settings, even to keep them.

    Raises RequestError.
    """
    with closing(AdminConnection(address, PATIENCE_S)) as connection:
        told = connection.ask("POST", "/v2/trace/setting", {}, control=True)
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

    def joined(self, run: PlannedRun) -> Joined | None:
        """The measured requests of the run just drained; None where its server does not trace."""
        server = self._servers.get(run.cell.endpoint.shares, {})
        if "trace" not in server:
            return None
        waits_ns = self._collector.raw.waits_ns(run.cell.name, run.repeat)
        traced, fault = self._read(server["http"], Path(server["trace"]), waits_ns.keys())
        return join(waits_ns, traced, self._collector.ok(run.tag), fault)

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
