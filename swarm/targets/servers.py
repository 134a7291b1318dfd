"""The servers that a study asks, started here or by URL: told of, checked, called for the first time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo, relocated
from swarm.options.model import Options
from swarm.targets.cold_start import FirstCalls
from swarm.targets.discover import described
from swarm.targets.embedded import EmbeddedServers, arguments
from swarm.targets.endpoints import (
    endpoints_from_options,
    endpoints_from_ready,
    flag_of,
    metrics_addresses,
    unasked,
)
from swarm.targets.preflight import (
    check_agreement,
    check_odd_picture,
    check_pair,
    first_reply,
    odd_picture,
    verdict,
)
from swarm.this_machine import machine_id, own_addresses, runs_here
from users.backends.asking import stated, unread
from users.backends.registry import backend_of, facts_of, has_floor
from users.endpoint import Endpoint, is_loopback
from users.inputs.images import ImageSet
from users.redact import secrets_in
from users.refusals import patient
from users.tls import SecurityError, control_header
from users.transport.sockets import resolved


class Servers:
    """`say` tells a person.

    `endpoints` are all that are asked, floors last; `ready` is what servers of our own said of themselves,
    empty for servers by URL, and `stated` what those say, by endpoint; `targets` is where each endpoint was
    found, as the fingerprint keeps it, and `here` whether its server runs on this machine, None if unknown.
    """

    _images: ImageSet

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.embedded = EmbeddedServers(say)
        self.first_calls = FirstCalls(self._call)
        self.endpoints: list[Endpoint] = []
        self.ready: dict[str, Any] = {}
        self.stated: dict[str, dict[str, str]] = {}
        self.targets: dict[str, dict[str, Any]] = {}
        self.here: dict[str, bool | None] = {}

    def prepare(
        self,
        options: Options,
        asked: Sequence[Endpoint],
        images: ImageSet,
        launch: LaunchInfo,
        varied: bool,
    ) -> None:
        """Start those behind `asked` where no URL was given, and ask each endpoint for the first embedding.

        `varied`: cells set the servers otherwise. Raises UsageError.
        """
        self._images = images
        far = [str(host["name"]) for host in launch.hosts if host["kind"] == "ssh"]
        if options.embedded:
            check_far(far, "servers started here")
            ready = self.embedded.start(
                arguments(options, asked, varied), options.trace, launch.server_command
            )
            self.ready = relocated(ready, launch.server_address)
            self.endpoints = endpoints_from_ready(self.ready, asked)
        else:
            try:
                control_header()
            except SecurityError as error:
                raise UsageError(str(error)) from error
            self.endpoints = described(endpoints_from_options(options, asked), options)
            check_provable(self.endpoints)
            if text := unasked(options, self.endpoints):
                self._say(text)
            for endpoint in self.endpoints:
                given = f"{flag_of(endpoint)} {endpoint.address}"
                check_far(far if is_loopback(endpoint.host) else [], given)
        if options.floor:
            self.endpoints += [endpoint.floor() for endpoint in self.endpoints if has_floor(endpoint)]
        self._locate(metrics_addresses(options.urls, {}))
        self._check(options.min_cosine)
        if not options.embedded:
            self.stated = {e.name: stated(e) for e in self.endpoints if not e.floor_of}
        self._find_those_here(options.embedded)

    def _find_those_here(self, embedded: bool) -> None:
        """Which servers run on this machine: those started here, and those whose address or word says so."""
        machine, own = machine_id(), own_addresses()
        for endpoint in self.endpoints:
            told = self.stated.get(endpoint.floor_of or endpoint.name, {}).get("machine", "")
            found = self.targets[endpoint.name]["resolved"]
            self.here[endpoint.name] = embedded or runs_here(found, endpoint.port, told, machine, own)

    def _locate(self, metrics: Mapping[str, str]) -> None:
        """Say where each target is, before the first request to any; floors are where their endpoints are.

        `metrics`: their URLs by backend, which get the token, too.
        """
        for endpoint in self.endpoints:
            addresses = resolved(endpoint)
            self.targets[endpoint.name] = record_of(endpoint, addresses)
            if not endpoint.floor_of:
                self._say(f"target {told(endpoint, addresses)}")
            for name in secrets_in(endpoint.path):
                self._say(
                    f"{endpoint.name}: {name} in its url looks like a secret and is hidden in all output; a"
                    " header with ${NAME} keeps it out of the file, too"
                )
        asked = {}
        for endpoint in self.endpoints:
            if url := metrics.get(endpoint.shares):
                parts = urlsplit(url)
                page = replace(endpoint, address=parts.netloc, tls=parts.scheme == "https")
                asked[f"the metrics of {endpoint.shares}"] = record_of(page, resolved(page))
        if warning := in_clear({**self.targets, **asked}):
            self._say(warning)

    def _check(self, min_cosine: float) -> None:
        firsts = [verdict(endpoint, self._images, self._say) for endpoint in self.endpoints]
        self.endpoints = [first.endpoint for first in firsts]
        computing = [first for first in firsts if facts_of(first.endpoint).computes]
        check_agreement(computing, min_cosine, odd_picture(self._images, 0))
        check_odd_picture(computing, self._images, self._say, min_cosine)
        for first in firsts:
            self.first_calls.known(first.endpoint, 1, first.took_ns)
            for gap in () if first.endpoint.floor_of else unread(first.endpoint):
                self._say(f"{gap}: what they would tell is unknown")
            # Of presets it is known.
            if not backend_of(first.endpoint).ways and first.endpoint.contract.max_batch != 1:
                took_ns = check_pair(first, self._images, self._say, min_cosine)
                self.first_calls.known(first.endpoint, 2, took_ns)

    def _call(self, endpoint: Endpoint, size: int) -> int:
        with patient(self._say):
            return first_reply(endpoint, self._images, size, self._say)[1]


def check_provable(endpoints: Sequence[Endpoint]) -> None:
    """Raises UsageError where gRPC would have to trust a server that need not prove its name."""
    for endpoint in endpoints:
        if endpoint.protocol == "grpc" and endpoint.tls and not endpoint.security.verify:
            raise UsageError(
                "--tls-no-verify: gRPC cannot skip verification; give --tls-ca instead, or leave"
                f" {flag_of(endpoint)} out"
            )


def check_far(hosts: Sequence[str], what: str) -> None:
    """Raises UsageError where hosts that are other machines would look for `what` on themselves."""
    if hosts:
        raise UsageError(
            f"host {hosts[0]} is another machine and cannot reach {what}: give URLs that it can reach"
        )


def record_of(endpoint: Endpoint, addresses: Sequence[str]) -> dict[str, Any]:
    """What the fingerprint keeps of a target; of its token only the variable's name."""
    return {
        "address": endpoint.address,
        "resolved": list(addresses),
        "tls": endpoint.tls,
        "token": endpoint.security.token,
    }


def told(endpoint: Endpoint, addresses: Sequence[str]) -> str:
    """The line for a person: `onnx-http: https://gpu:8010 is 10.0.0.5, over TLS, without a token`."""
    security = endpoint.security
    tls = f"over TLS{'' if security.verify else ', unverified'}" if endpoint.tls else "without TLS"
    token = f"token of {security.token}" if security.token else "without a token"
    where = ", ".join(addresses) or "unknown"
    where += " (a connection goes to one of these; the report says to which)" if len(addresses) > 1 else ""
    return f"{endpoint.name}: {endpoint.shown} is {where}, {tls}, {token}"


def in_clear(targets: Mapping[str, Mapping[str, Any]]) -> str:
    """The sentence where a token is sent to another machine without TLS; empty where none is."""
    bare = [
        name
        for name, target in targets.items()
        if target["token"]
        and not target["tls"]
        and not (target["resolved"] and all(map(is_loopback, target["resolved"])))
    ]
    if not bare:
        return ""
    return (
        f"WARNING: the token is sent in clear text to {', '.join(bare)}: anyone on the network can read"
        " it; give https:// or grpcs:// addresses"
    )


def elsewhere(
    here: Mapping[str, Sequence[str]], there: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, str]:
    """Endpoints whose host is another one for some workers, with a sentence: by worker, then by endpoint."""
    found: dict[str, str] = {}
    for worker, names in there.items():
        for name, addresses in names.items():
            if name in here and set(addresses) != set(here[name]):
                own, its = ", ".join(here[name]) or "unknown", ", ".join(addresses) or "unknown"
                found.setdefault(name, f"its address is {own} for the master and {its} for {worker}")
    return found


def caveats_of(endpoint: Endpoint, elsewhere: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Caveats, as code and text, of every run of an endpoint for where it is and who has proved that."""
    if endpoint.tls and not endpoint.security.verify:
        yield (
            "tls-unverified",
            f"--tls-no-verify: the server at {endpoint.shown} has not proved its identity",
        )
    floor_of = endpoint.floor_of or endpoint.name
    if floor_of in elsewhere:
        yield "targets-differ", elsewhere[floor_of]
