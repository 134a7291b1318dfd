"""The sampler: once a second beside the load, what server, GPUs and host say, as one record of the ledger."""

import functools
import math
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import gevent

from swarm.clock import wall_s
from swarm.sampling.gpus import LocalGpus, find_nvml
from swarm.sampling.kubernetes import Cluster, no_counters
from swarm.sampling.machine import HostSampler, ServerCpuTime
from swarm.sampling.processes import OthersCpu
from users.backends.asking import metrics_reader, page_reader
from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import RequestError, translated
from users.metrics import DCGM_FIELDS, gpus_of, joined
from users.tls import OPEN, Security
from users.transport.admin_connection import Read

LATE_S = 0.8
"""An answer that takes longer is missing from its second's record."""
GIVE_UP_S = 0.9
"""By then a source has stopped waiting, so that it can be read again in the next second."""
BY_NAME = ("batches", "steps")
"""What a server's counters hold that is no number."""
EARLY_S = 0.05
"""A sleep may end this much early."""


@dataclass(frozen=True)
class GpuSources:
    """Where GPUs are read beside the servers' own pages.

    `here`: names of endpoints whose server runs on this machine, so that its GPUs are the server's. `pids`:
    the processes of servers that were started here, by server. `dcgm`: the URL of dcgm-exporter's page,
    reached as `security` says.
    """

    here: Container[str] = ()
    pids: Mapping[str, int] = field(default_factory=dict)
    dcgm: str = ""
    security: Security = OPEN

    @contextmanager
    def nvml(self, endpoint: Endpoint) -> Iterator[dict[str, Read]]:
        """This machine's, where the server runs on it and NVML is installed."""
        nvml = find_nvml() if endpoint.name in self.here else None
        if nvml is None:
            yield {}
            return
        gpus = LocalGpus(nvml, self.pids.get(endpoint.shares), self.pids.values())
        with closing(gpus):
            yield {"gpus": gpus.read}

    @contextmanager
    def exporter(self) -> Iterator[dict[str, Read]]:
        """dcgm-exporter's, where its page was named."""
        if not self.dcgm:
            yield {}
            return
        with page_reader(self.dcgm, GIVE_UP_S, self.security) as read:
            yield {"dcgm": lambda: gpus_of(read(), DCGM_FIELDS)}


@contextmanager
def open_sources(
    endpoint: Endpoint,
    metrics: Mapping[str, str],
    namespace: str = "",
    cluster: Cluster | None = None,
    gpus: GpuSources = GpuSources(),
) -> Iterator[dict[str, Read]]:
    """What to read for an endpoint, by name; where two tell the same, the first counts.

    Of a GPU that two tell of, all that either tells is kept. `metrics`: URLs of pages of metrics by server.
    `namespace`: the address of this machine's servers where they are in a network namespace, whose traffic is
    not among that of the machine's own devices. `cluster`: where the endpoint is a Service of Kubernetes,
    whose pods have counters of their own.
    """
    reads: dict[str, Read] = {}
    with ExitStack() as stack:
        reads |= stack.enter_context(gpus.nvml(endpoint))
        if pid := gpus.pids.get(endpoint.shares):
            reads["cpu"] = ServerCpuTime(pid).read
        if cluster:
            reads |= {"server": no_counters, **stack.enter_context(cluster.reads(GIVE_UP_S))}
        else:
            read = stack.enter_context(backend_of(endpoint).counters(endpoint, GIVE_UP_S))
            reads["server"] = functools.partial(without_parts, read)
        if url := metrics.get(endpoint.shares) or endpoint.settings.get("metrics"):
            reads["metrics"] = stack.enter_context(metrics_reader(url, endpoint, GIVE_UP_S))
        reads |= stack.enter_context(gpus.exporter())
        port = endpoint.port if endpoint.name in gpus.here and not pid else None
        reads["others"] = OthersCpu(port, gpus.pids.values()).read
        reads["host"] = (HostSampler(traffic=lambda: None) if namespace else HostSampler()).read
        yield reads


def without_parts(read: Read) -> dict[str, Any]:
    """What is read, but for executions by batch size and by step, of which the measure phase is enough."""
    found = read()
    told = {name: value for name, value in found["server"].items() if name not in BY_NAME}
    return {**found, "server": told}


class Sampler:
    """Samples runs from their `begin` to the `end` of all; neither raises, whatever the sources do.

    `write` takes records, `sources` opens what to read for an endpoint; `wall` is the wall clock in seconds.
    """

    def __init__(
        self,
        write: Callable[[dict[str, Any]], None],
        sources: Callable[[Endpoint], AbstractContextManager[Mapping[str, Read]]],
        wall: Callable[[], float] = wall_s,
        sleep: Callable[[float], None] = gevent.sleep,
        late_s: float = LATE_S,
    ) -> None:
        self._write, self._sources = write, sources
        self._wall, self._sleep, self._late_s = wall, sleep, late_s
        self._greenlets: list[gevent.Greenlet] = []
        self._phase = ""

    def begin(self, cell: str, repeat: int, endpoint: Endpoint) -> None:
        """Sample for this run, too, from now on; `enter` says in which phase all are."""
        self._phase = ""
        self._greenlets.append(gevent.spawn(self._sample, {"cell": cell, "repeat": repeat}, endpoint))

    def enter(self, phase: str) -> None:
        """What is sampled from now on belongs to this phase."""
        self._phase = phase

    def end(self) -> None:
        """Sample no more, and close every connection; waits for what is being read, for a second at most."""
        greenlets, self._greenlets = self._greenlets, []
        gevent.killall(greenlets)

    def _sample(self, tag: Mapping[str, Any], endpoint: Endpoint) -> None:
        asked: dict[str, gevent.Greenlet] = {}
        with self._sources(endpoint) as reads:
            try:
                while True:
                    self._sleep(until_next_second(self._wall()))
                    # Of when it is asked: what is read before the measure phase may be answered in it.
                    head = {**tag, "phase": self._phase, "second": second_ended(self._wall())}
                    self._write(record(head, self._ask(reads, asked)))
            except (OSError, ValueError):
                # A full disk, or a ledger closed already: the conductor hears of it by its own writing.
                return
            finally:
                gevent.joinall(list(asked.values()), timeout=GIVE_UP_S)

    def _ask(
        self, reads: Mapping[str, Read], asked: dict[str, gevent.Greenlet]
    ) -> dict[str, dict[str, Any] | str]:
        """Every source's answer, or why it gave none. One that still hangs is not asked a second time."""
        fresh = [name for name in reads if name not in asked or asked[name].ready()]
        asked.update({name: gevent.spawn(answer_of, reads[name]) for name in fresh})
        gevent.joinall([asked[name] for name in fresh], timeout=self._late_s)
        late = f"took longer than {self._late_s:g} s"
        return {name: asked[name].value if name in fresh and asked[name].ready() else late for name in reads}


def answer_of(read: Read) -> dict[str, Any] | str:
    """What is read, or one short reason why nothing is."""
    try:
        with translated():
            return read()
    except RequestError as error:
        return str(error)


def record(tag: Mapping[str, Any], answers: Mapping[str, dict[str, Any] | str]) -> dict[str, Any]:
    """The ledger's record of one second: what is not known is left out, and what failed is named."""
    made: dict[str, Any] = {"kind": "sample", **tag}
    missing = []
    for name, answer in answers.items():
        if isinstance(answer, str):
            missing.append(f"{name}: {answer}")
        else:
            gpus = joined(made.get("gpus") or answer.get("gpus", ()), answer.get("gpus", ()))
            made |= {key: value for key, value in answer.items() if key not in made}
            made |= {"gpus": gpus} if gpus else {}
    return made | ({"missing": missing} if missing else {})


def until_next_second(wall_s: float) -> float:
    """Seconds until the next whole second of the wall clock; one that is all but here counts as here."""
    return math.floor(wall_s + EARLY_S) + 1 - wall_s


def second_ended(wall_s: float) -> int:
    """The second that ended last, when a sleep to a whole second was over at `wall_s`."""
    return math.floor(wall_s + EARLY_S) - 1
