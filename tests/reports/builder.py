"""Synthetic ledgers: every number in them is chosen, so that tests can say what must come out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.ledger.ledger import FILE_NAME, LedgerWriter
from tests.reports.lines import (
    FIRST_NS,
    FIRST_SECOND,
    Record,
    drained_line,
    encoded,
    path_line,
    readings,
    windows,
)


class Book:
    """A ledger in the making; each `add` is one planned run."""

    def __init__(self, **header: Any) -> None:
        self.header: Record = {
            **{"kind": "header", "version": 1, "study": "step7", "title": "Step 7: five ways to one model"},
            **{"size": "quick", "started_utc": "2026-11-21T11:00:00.123Z", "plan": [], "endpoints": {}},
            "options": {"command": "locust -f locustfiles/step7.py --headless --study quick"},
            "fingerprint": {"cpu": "Example CPU", "cores": 2, "git_commit": "0123abc"},
            "images": {"count": 64, "source": "photographs", "jpeg_bytes_mean": 9800, "sha256": "ab12"},
        } | header
        self.records: list[Record] = []

    def endpoint(
        self, name: str, url: str, weights: str = "laion2b", model: str = "openclip_vit_b32"
    ) -> None:
        """Describes one endpoint in the header, and of a floor whose it is."""
        of = {"floor_of": name.removesuffix("-floor")} if name.endswith("-floor") else {}
        about = {"url": url, "model": model, "weights": weights, "embedded": True}
        self.header["endpoints"][name] = about | of

    def plan(
        self,
        endpoint: str,
        batch: int,
        level: float,
        repeat: int = 1,
        arrivals: str | None = None,
        axes: Mapping[str, Any] | None = None,
    ) -> Record:
        """Plans one run without making it, open where it has arrivals; the tag of its records.

        With `axes` it is planned as a cell of several variants is; without them as in older ledgers.
        """
        backend, *other = endpoint.removesuffix("-floor").split("-")
        protocol = other.pop() if other else ""
        backend = "null" if endpoint.endswith("-floor") else backend
        variant = f"/{axes['variant']}" if axes and axes.get("variant") else ""
        size = "mix" if axes and axes.get("batch_mix") else f"b{batch}"
        cell = f"{endpoint}/{size}/{'r' if arrivals else 'c'}{level:g}{variant}"
        entry: Record = {"cell": cell, "endpoint": endpoint, "backend": backend, "protocol": protocol}
        own = "jpeg" if backend in ("pytorch", "gateway") else "fp32"
        entry |= {"payload": other[0] if other else own, "batch": batch}
        entry |= {"arrivals": arrivals, "max_in_flight": 256} if arrivals else {}
        entry |= axes or {}
        load = "open" if arrivals else "closed"
        self.header["plan"].append(entry | {"load": load, "level": level, "repeat": repeat})
        return {"cell": cell, "repeat": repeat}

    def add(
        self,
        endpoint: str,
        batch: int,
        level: float,
        latencies_ns: Mapping[str, Sequence[int]],
        *,
        repeat: int = 1,
        arrivals: str | None = None,
        axes: Mapping[str, Any] | None = None,
        failures: Mapping[str, int] | None = None,
        counters: Record | None = None,
        drained: bool = True,
        status: str = "done",
        note: str = "",
    ) -> Record:
        """Plans and makes one run; `latencies_ns` are the successes of each worker, back to back per user."""
        tag = self.plan(endpoint, batch, level, repeat, arrivals, axes)
        users = max(1, int(level) // max(1, len(latencies_ns)))
        edge = {"kind": "run", **tag, "utc": "2026-11-21T11:00:01Z"}
        self.records.append(edge | {"event": "start", "workers": list(latencies_ns), "hosts": 1})
        for worker, values in latencies_ns.items():
            self.records += windows(tag, worker, values, batch, users, failures or {})
            if drained:
                finished = len(values) + sum((failures or {}).values())
                self.records.append(drained_line(tag, worker, users, finished))
        if counters is not None:
            self.records += readings(tag, counters)
        self.records.append(edge | {"event": "end", "status": status, "note": note})
        return tag

    def add_open(
        self,
        endpoint: str,
        rate: float,
        latencies_ns: Mapping[str, Sequence[int]],
        *,
        batch: int = 1,
        arrivals: str = "constant",
        phase_s: float | None = None,
        late: int = 0,
        dropped: int = 0,
        **more: Any,
    ) -> Record:
        """One run with open-loop load, its phase fits the rate; `late` and `dropped` are of each worker."""
        phase_ns = round((phase_s or sum(len(values) for values in latencies_ns.values()) / rate) * 1e9)
        tag = self.add(endpoint, batch, rate, latencies_ns, arrivals=arrivals, **more)
        for record in self.of(tag):
            if record["kind"] == "window":
                record |= {"late": late if record["second"] > FIRST_SECOND else 0, "out_of_range": {}}
                record["last_end_ns"] = FIRST_NS + phase_ns
            if record["kind"] == "drained":
                sent = record["finished"]
                record |= {"sent": sent, "phase_ns": phase_ns, "due": sent + dropped, "dropped": dropped}
        return tag

    def measured(self, tag: Record) -> list[Record]:
        """The windows of one run's measure phase that have successes."""
        windows = [record for record in self.of(tag) if record["kind"] == "window"]
        return [record for record in windows if record["phase"] == "measure" and record["ok"]]

    def phases(self, tag: Record, **means_ns: int) -> None:
        """Lets every success of a run have had these phases on the client."""
        for window in self.measured(tag):
            window["histograms"] |= {name: encoded([ns] * window["ok"]) for name, ns in means_ns.items()}

    def request_bytes(self, tag: Record, each: int) -> None:
        """Lets every success of a run have sent so many bytes."""
        for window in self.measured(tag):
            window["request_bytes"] = each * window["ok"]

    def server_timing(self, tag: Record, **means_ns: int) -> None:
        """Lets every success of a run have stated these parts of the server's time."""
        for window in self.measured(tag):
            window["server_count"] = window["ok"]
            window["server_ns"] = {name: ns * window["ok"] for name, ns in means_ns.items()}

    def path(self, tag: Record, worker: str = "w0", second: int = FIRST_SECOND, **stated: object) -> None:
        """What the kernel knew of a worker's connections in a second."""
        self.records.append(path_line(tag, worker, second, **stated))

    def serving(self, tag: Record, **stated: object) -> None:
        """How the server behind a run was set up."""
        told: Record = {"instances": 1, "max_batch": 8, "batching_delay_ns": 0, "batching": True}
        told = stated if "error" in stated else told | stated
        self.records.append({"kind": "serving", **tag, **told})

    def trace(self, tag: Record, requests: int, **parts_ns: Sequence[int]) -> None:
        """What the server's own trace had of a run's requests: as many as the longest of the parts."""
        joined = max((len(values) for values in parts_ns.values()), default=0)
        texts = {name: encoded(values) for name, values in parts_ns.items()}
        line = {"kind": "trace", **tag, "requests": requests, "joined": joined}
        self.records.append(line | {"histograms": texts})

    def memory(self, tag: Record, when: str, server: str, resident_bytes: int, **stated: object) -> None:
        """What the server of a run held before or after its measure phase."""
        line = {"kind": "memory", **tag, "when": when, "server": server, "resident_bytes": resident_bytes}
        self.records.append(line | {"processes": 4, "how": "pss"} | stated)

    def cold(self, endpoint: str, batch: int, first_ns: int, second_ns: int, **stated: object) -> None:
        """The first two requests of a shape."""
        line = {"kind": "cold", "endpoint": endpoint, "batch": batch}
        self.records.append(line | {"first_ns": first_ns, "second_ns": second_ns} | stated)

    def plan_later(self) -> None:
        """Takes the last planned run out of the header: it was planned while the study ran."""
        self.records.append({"kind": "plan", "runs": [self.header["plan"].pop()]})

    def of(self, tag: Record) -> list[Record]:
        """The records of one run."""
        return [record for record in self.records if tag.items() <= record.items()]

    def caveat(self, tag: Record, code: str, text: str) -> None:
        """A caveat that was known while running."""
        self.records.append({"kind": "caveat", **tag, "code": code, "text": text})

    def footer(self, status: str = "complete", reason: str = "") -> None:
        """The end of the study."""
        line = {"kind": "footer", "status": status, "reason": reason}
        self.records.append(line | {"utc": "2026-11-21T11:09:00Z"})

    def write(self, directory: Path) -> Path:
        """Writes the ledger into a directory, in place of one that is there, and returns the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / FILE_NAME).unlink(missing_ok=True)
        writer = LedgerWriter(directory / FILE_NAME)
        for record in (self.header, *self.records):
            writer.write(record)
        writer.close()
        return directory
