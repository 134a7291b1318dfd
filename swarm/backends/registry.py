"""The endpoints that are known by name, and which of them a study asks."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from swarm.errors import UsageError
from users.endpoint import EMULATED, Endpoint, Payload, Protocol
from users.tls import OPEN, Security

FIVE = ("pytorch-http", "onnx-http", "onnx-grpc", "trt-http", "trt-grpc")
"""The seeds' own."""
EVERY = (*FIVE, "gateway-http", "onnx-jpeg-*", "onnx-uint8-*")
ALL = "all"
STANDS_FOR = {"openvino": "trt", EMULATED: "onnx"}
"""Embedded backends that are asked where a study names another."""
COMPILED = "compiled"
"""What `up` calls the compiled engine's server, which is TensorRT where it can be and OpenVINO elsewhere."""
PROTOCOLS: tuple[Protocol, ...] = ("http", "grpc")
PYTORCH, GATEWAY = "pytorch", "gateway"
SERVICES = (PYTORCH, GATEWAY)
TRITONS = ("onnx", "trt", "openvino", EMULATED)
OF_TRITON: tuple[Payload, ...] = ("fp32", "json", "jpeg", "uint8")
OF_THE_MODEL: tuple[Payload, ...] = ("fp32", "json")
"""Payloads that the model itself takes; before others stands a model that turns them into its own."""


@dataclass(frozen=True)
class EndpointKind:
    """backend × protocol × payload, and the name that follows."""

    backend: str
    protocol: Protocol
    payload: Payload

    @property
    def name(self) -> str:
        """`onnx-jpeg-grpc`; the payload that a backend's own model takes is left out."""
        own = self.backend in SERVICES or self.payload == "fp32"
        return "-".join(filter(None, (self.backend, "" if own else self.payload, self.protocol)))

    @property
    def compiled(self) -> bool:
        """Whether a compiled engine is behind it."""
        return "trt" in (self.backend, STANDS_FOR.get(self.backend))

    def at(self, address: str, own_model: str, tls: bool = False, security: Security = OPEN) -> Endpoint:
        """The endpoint of this kind at an address, given the name of its backend's own model."""
        model = "" if self.backend in SERVICES else self.model(own_model)
        return Endpoint(self.name, self.backend, self.protocol, self.payload, address, model, tls, security)

    def model(self, own: str) -> str:
        """The name of Triton's model for this payload, given that of the backend's own."""
        return own if self.payload in OF_THE_MODEL else f"{own}_{self.payload}"

    def matches(self, patterns: Iterable[str]) -> bool:
        """Whether some shell pattern names it, or what it stands for."""
        named = STANDS_FOR.get(self.backend, self.backend)
        names = (self.name, EndpointKind(named, self.protocol, self.payload).name)
        return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


KINDS = (
    *(EndpointKind(backend, "http", "jpeg") for backend in SERVICES),
    *(
        EndpointKind(backend, protocol, payload)
        for backend, payload, protocol in itertools.product(TRITONS, OF_TRITON, PROTOCOLS)
        # Over gRPC numbers are binary anyway.
        if (payload, protocol) != ("json", "grpc")
    ),
)


def chosen(own: Sequence[str], asked: str, skip_trt: bool) -> list[EndpointKind]:
    """The kinds that a study asks by its `own` patterns, or by those `asked` for in their place.

    `asked`: patterns between commas, or `all`; empty for none. Raises UsageError where one matches nothing,
    or where nothing is left.
    """
    patterns = patterns_of(own, asked)
    found = [kind for kind in KINDS if kind.matches(patterns)]
    for pattern in patterns:
        if not any(kind.matches([pattern]) for kind in KINDS):
            names = ", ".join(kind.name for kind in KINDS if kind.backend not in STANDS_FOR)
            raise UsageError(f"--endpoints {pattern}: names no endpoint; they are {names}, or {ALL}")
    left = [kind for kind in found if not (skip_trt and kind.compiled)]
    if not left:
        raise UsageError(
            "--skip-trt: leaves no endpoint of these; leave it out, or name others by --endpoints"
        )
    return left


def patterns_of(own: Sequence[str], asked: str) -> Sequence[str]:
    """What stands between the commas of `asked`, or the study's own patterns."""
    given = [part.strip() for part in asked.split(",") if part.strip()]
    return EVERY if given == [ALL] else given or own


def servers_for(kinds: Iterable[EndpointKind], emulated: bool) -> tuple[list[str], list[str]]:
    """Which embedded servers to start (one for all where `emulated`), and the payloads of their Tritons."""
    here = [kind for kind in kinds if kind.backend != "trt" and (kind.backend == EMULATED) == emulated]
    made = {kind.payload for kind in here if kind.backend in TRITONS and kind.payload not in OF_THE_MODEL}
    servers = dict.fromkeys(COMPILED if kind.backend == "openvino" else kind.backend for kind in here)
    return list(servers), ["fp32", *sorted(made)]
