"""The servers that a study asks: started here or named by URLs, checked, and called for the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from swarm.backends import admin_client
from swarm.backends.registry import EndpointKind
from swarm.backends.server_info import stated
from swarm.errors import UsageError
from swarm.launcher.manifest import LaunchManifest, relocated
from swarm.options.model import Options
from swarm.sampling.gpus import is_local
from swarm.targets.cold_start import FirstCalls
from swarm.targets.embedded import EmbeddedServers, arguments
from swarm.targets.golden import check_agreement
from swarm.targets.metrics_urls import metrics_addresses
from swarm.targets.preflight import check_targets, first_reply
from swarm.targets.resolve import in_clear, record_of, told
from swarm.targets.targets import endpoints_from_options, endpoints_from_ready, flag_of, unasked
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.transport.base import Transport
from users.transport.sockets import resolved


class Servers:
    """`transport_of` says how an endpoint is spoken to, `say` tells a person.

    `endpoints` are all that are asked, floors last; `ready` is what servers of our own said of themselves,
    empty for servers by URL, and `stated` what those say, by endpoint; `targets` is where each endpoint was
    found, as the fingerprint keeps it.
    """

    _images: ImageSet

    def __init__(
        self, transport_of: Callable[[Endpoint], type[Transport]], say: Callable[[str], None]
    ) -> None:
        self._transport_of, self._say = transport_of, say
        self.embedded = EmbeddedServers(say)
        self.first_calls = FirstCalls(self._call)
        self.endpoints: list[Endpoint] = []
        self.ready: dict[str, Any] = {}
        self.stated: dict[str, dict[str, str]] = {}
        self.targets: dict[str, dict[str, Any]] = {}

    def prepare(
        self,
        options: Options,
        kinds: Sequence[EndpointKind],
        images: ImageSet,
        launch: LaunchManifest,
        varied: bool,
    ) -> None:
        """Start those behind `kinds` where no URL was given, and ask each endpoint for the first embedding.

        `varied`: cells set the servers otherwise. Raises UsageError.
        """
        self._images = images
        far = [str(host["name"]) for host in launch.hosts if host["kind"] == "ssh"]
        if options.embedded:
            check_far(far, "servers that are started here")
            ready = self.embedded.start(
                arguments(options, kinds, varied), options.trace, launch.server_command
            )
            self.ready = relocated(ready, launch.server_address)
            self.endpoints = endpoints_from_ready(self.ready, kinds)
        else:
            admin_client.headers("http")
            self.endpoints = endpoints_from_options(options, kinds)
            if text := unasked(options, self.endpoints):
                self._say(text)
            for endpoint in self.endpoints:
                check_far(far if is_local(endpoint) else [], f"{flag_of(endpoint)} {endpoint.address}")
        if options.floor:
            self.endpoints += [endpoint.floor() for endpoint in self.endpoints if endpoint.has_floor]
        self._locate(metrics_addresses(options.urls, {}))
        self._check(options.min_cosine)
        if not options.embedded:
            self.stated = {e.name: stated(e) for e in self.endpoints if not e.floor_of}

    def _locate(self, metrics: Mapping[str, str]) -> None:
        """Say where each target is, before the first request to any; floors are where their endpoints are.

        `metrics`: their URLs by backend, which get the token, too.
        """
        for endpoint in self.endpoints:
            addresses = resolved(endpoint)
            self.targets[endpoint.name] = record_of(endpoint, addresses)
            if not endpoint.floor_of:
                self._say(f"target {told(endpoint, addresses)}")
        asked = {}
        for endpoint in self.endpoints:
            if url := metrics.get(endpoint.server):
                parts = urlsplit(url)
                page = replace(endpoint, address=parts.netloc, tls=parts.scheme == "https")
                asked[f"the metrics of {endpoint.server}"] = record_of(page, resolved(page))
        if warning := in_clear({**self.targets, **asked}):
            self._say(warning)

    def _check(self, min_cosine: float) -> None:
        transports = [self._transport_of(endpoint) for endpoint in self.endpoints]
        firsts = check_targets(self.endpoints, transports, self._images, self._say)
        computed = {e.name: firsts[e.name].embedding for e in self.endpoints if e.computes}
        check_agreement(computed, min_cosine)
        for endpoint in self.endpoints:
            self.first_calls.known(endpoint, 1, firsts[endpoint.name].took_ns)

    def _call(self, endpoint: Endpoint, size: int) -> int:
        return first_reply(endpoint, self._transport_of(endpoint), self._images, size, self._say)[1]


def check_far(hosts: Sequence[str], what: str) -> None:
    """Raises UsageError where hosts that are other machines would look for `what` on themselves."""
    if hosts:
        raise UsageError(f"host {hosts[0]} is another machine and cannot reach {what}: give URLs that it can")
