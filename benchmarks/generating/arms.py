"""The arms by name: which a cell has, and one measurement of one of them."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonclient.grpc import InferenceServerClient

from benchmarks.generating.arm import WARM_UP_S, Told, read_told
from benchmarks.generating.children import ROOT, Done, Hung, run
from benchmarks.generating.figures import Cell
from benchmarks.generating.kinds import KINDS, MODEL
from benchmarks.generating.peers import PEERS, PERF_ANALYZER, Asked, Peer, found, own_figures, version_of

Cells = Sequence[Cell]
BEFORE = "before"
"""The suite as another checkout has it."""
GRPCIO, GRPCIO_GEVENT = "grpcio", "grpcio-gevent"
OVER_HTTP2, OVER_HTTP = "inferswarm-http2", "inferswarm-http"
"""The suite with gRPC and with HTTP, each against a null server of its own that takes as little time."""
OWN = {
    "socket": ("floor",),
    "inferswarm": ("ours",),
    "stock": ("stock",),
    "library": ("ours", "--client", "library"),
    GRPCIO: ("plain_grpc",),
    GRPCIO_GEVENT: ("plain_grpc", "--gevent"),
    OVER_HTTP2: ("ours",),
    OVER_HTTP: ("ours",),
    BEFORE: ("ours",),
}
SAME_OVER_HTTP = {"fp32-grpc": "fp32-http"}
"""By kind of gRPC: the one that the suite sends over HTTP in the same cell, and so in the same repeat."""
COMPARED = 16
"""Peers, the suite with tritonclient's path, and gRPC beside HTTP, are measured at so many users."""
STARTING_S, FACTOR = 40.0, 10.0
LONGER = 4
"""Gigabytes in flight: many users' large batches take seconds to go round once."""


def arms_of(cell: Cell, quick: bool, peers: Sequence[str], against: Path | None = None) -> list[str]:
    """The names of a cell's arms; with `quick`, of those that a bound needs, or that explain it."""
    return [*own_and_peers(cell, quick, peers), *([BEFORE] if against else [])]


def own_and_peers(cell: Cell, quick: bool, peers: Sequence[str]) -> list[str]:
    """All but another checkout's."""
    kind, users = cell
    able = [peer.name for peer in PEERS if peer.name in peers and kind in peer.kinds]
    arms = ["socket", *grpc_arms(cell, quick), "inferswarm"]
    if users == COMPARED and kind in SAME_OVER_HTTP:
        arms += [OVER_HTTP2, OVER_HTTP]
    if not quick:
        return [*arms, "stock", *(["library", *able] if users == COMPARED else [])]
    batched, over_http = KINDS[kind].batch > 1, KINDS[kind].protocol == "http"
    if users != COMPARED:
        return [*arms, *(["stock"] if batched else [])]
    bound = [PERF_ANALYZER] if PERF_ANALYZER in able and not batched else []
    return [*arms, *(["stock"] if over_http else []), *bound]


def grpc_arms(cell: Cell, quick: bool) -> list[str]:
    """grpcio's own: under gevent where the suite's processor time is compared with it."""
    kind, users = cell
    if KINDS[kind].protocol != "grpc":
        return []
    if users != COMPARED:
        return [GRPCIO]
    return [GRPCIO_GEVENT] if quick else [GRPCIO, GRPCIO_GEVENT]


class Arms:
    """Where the null servers are, and what can be run against them.

    `ports`: of the null servers by name; `core`: the client's; `against`: another checkout.
    """

    def __init__(
        self,
        bodies: Path,
        ports: Mapping[str, int],
        core: int,
        seconds: float,
        given: str | None,
        against: Path | None = None,
    ) -> None:
        self.against = against.resolve() if against else None
        self._bodies, self._ports, self._core, self._seconds = bodies, ports, core, seconds
        self._peers = {peer.name: peer for peer in PEERS}
        asked = {name: found(name, given if name == PERF_ANALYZER else None) for name in self._peers}
        self._programs = {name: program for name, program in asked.items() if program}
        self.absent = [name for name, program in asked.items() if not program]
        self.versions = {
            name: version_of(self._peers[name], program) for name, program in self._programs.items()
        }

    @property
    def peers(self) -> list[str]:
        """The names of those that were found."""
        return list(self._programs)

    def measure(self, arm: str, cell: Cell) -> Told | None:
        """One measurement; None where it gave no figures, with the reason on standard error."""
        kind, users = cell
        try:
            if arm in OWN:
                return self._own(arm, kind, users)
            return self._peer(self._peers[arm], Asked(
                KINDS[kind], users, self._ports[KINDS[kind].protocol], self._seconds, self._bodies
            ))  # fmt: skip
        except Hung:
            reason = "it hung, and was killed"
        except ValueError as error:
            reason = str(error)
        print(f"{kind}, {users} users, {arm}: {reason}", file=sys.stderr, flush=True)
        return None

    def _own(self, arm: str, kind: str, users: int) -> Told:
        module, *extra = OWN[arm]
        kind = SAME_OVER_HTTP[kind] if arm == OVER_HTTP else kind
        port = self._ports["http2" if arm == OVER_HTTP2 else KINDS[kind].protocol]
        place = (kind, str(users), str(port), str(self._bodies))
        command = [sys.executable, "-m", f"benchmarks.generating.{module}", *place, *extra]
        longer = LONGER if KINDS[kind].batch > 1 and users > COMPARED else 1
        seconds, warm_up = str(longer * self._seconds), str(longer * WARM_UP_S)
        tree = self.against if arm == BEFORE else None
        done = self._run([*command, "--seconds", seconds, "--warm-up", warm_up], tree or ROOT)
        try:
            told = read_told(done.text)
        except ValueError as error:
            raise ValueError(f"{error} (exit code {done.code}): {done.text.strip()[-500:]}") from None
        if not told.requests:
            raise ValueError("not one request ended in its time; give more --seconds")
        return told

    def _peer(self, peer: Peer, asked: Asked) -> Told:
        command = peer.command(self._programs[peer.name], asked)
        before = self._served(asked.kind.protocol)
        done = self._run(command)
        requests = self._served(asked.kind.protocol) - before
        rate, p50_ms = own_figures(peer, done.text, asked.kind.batch)
        if rate is None or not requests:
            said = done.text.strip().splitlines()[-1:] or ["nothing"]
            raise ValueError(f"no figures (exit code {done.code}); its last line: {said[0]}")
        return Told(requests, done.wall_s, done.cpu_s, p50_ms, 0, rate)

    def _run(self, command: Sequence[str], tree: Path = ROOT) -> Done:
        return run(command, self._core, STARTING_S + FACTOR * self._seconds, tree)

    def _served(self, protocol: str) -> int:
        """How many requests the null server has counted."""
        address = f"127.0.0.1:{self._ports[protocol]}"
        if protocol == "http":
            with urllib.request.urlopen(f"http://{address}/v2/models/{MODEL}/stats", timeout=10) as answer:
                return int(json.load(answer)["model_stats"][0]["inference_count"])
        client = InferenceServerClient(address)
        try:
            told = client.get_inference_statistics(MODEL, client_timeout=10)
            return int(told.model_stats[0].inference_count)
        finally:
            client.close()
