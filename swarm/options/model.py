"""What the command line of a study says, resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from swarm.plan.matrix import Size
from swarm.plan.sweep import Axes, channels_of, instances_of, links_of, queue_delays_of, topologies_of
from users.tls import Security


@dataclass(frozen=True)
class Options:
    """The resolved options of a study; 0 iterations, seconds, warm_up or repeats stand for the size's own."""

    urls: Mapping[str, str]
    size: str
    skip_trt: bool
    floor: bool
    trace: bool
    tls_no_verify: bool
    iterations: int
    seconds: float
    warm_up: float
    repeats: int
    seed: int
    max_in_flight: int
    request_timeout: float
    min_cosine: float
    max_failure_ratio: float
    raw_results: int
    link_mbit: float
    usd_per_hour: float
    p95_bound: float
    repeat_until_decided: int
    prometheus_port: int
    rates: tuple[float, ...]
    arrivals: str
    find_rate: str
    load_profile: str
    client: str
    channels: str
    topology: str
    link: str
    queue_delay_us: str
    instances: str
    gate: str
    baseline: str
    images: str
    endpoints: str
    cells: str
    emulate: str
    pretrained: str
    tls_ca: str
    tls_client_cert: str
    tls_client_key: str
    onnx_model: str
    trt_model: str
    kube_url: str
    kube_namespace: str
    kube_deployment: str
    results_dir: str
    prometheus_host: str

    @property
    def embedded(self) -> bool:
        """No server was named: start our own."""
        return not self.urls

    @property
    def axes(self) -> Axes:
        """What they name of channels, links, topologies, client and server settings. Raises UsageError."""
        links, topologies = links_of(self.link), topologies_of(self.topology)
        of_servers = queue_delays_of(self.queue_delay_us), instances_of(self.instances)
        return Axes(channels_of(self.channels), links, topologies, self.client, *of_servers)

    @property
    def security(self) -> Security:
        """How targets are reached over TLS; the token's variable is each backend's own."""
        return Security(self.tls_ca, self.tls_client_cert, self.tls_client_key, not self.tls_no_verify)

    def resolved(self, size: Size) -> Options:
        """The same with the numbers that the study really uses."""
        return replace(
            self,
            iterations=size.iterations,
            seconds=size.seconds,
            warm_up=size.warm_up,
            repeats=size.repeats,
            load_profile=size.profile,
        )

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        return {**vars(self), "urls": dict(self.urls)}
