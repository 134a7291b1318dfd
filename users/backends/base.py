"""A Backend is a kind of server: how it is asked for embeddings, checked, described, counted and set."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from users.codecs.packing import ALGORITHMS
from users.contract import Contract
from users.endpoint import Endpoint, Payload
from users.endpoint import Protocol as Wire
from users.transport.admin_connection import Read

Config = Mapping[str, Any]
"""A server's configuration, in its own form."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a reader of figures must know of a backend; a ledger's header keeps them under its name.

    `computes`: its answers are embeddings of the pictures sent. `emulated`: it only takes a model's time.
    `floor`: there is no model. `compiled`: an engine is built of the model. `stands_for`: the backend in
    whose place it is asked, `passes_to` the one that it asks in turn. `stand_in`: the sentence that must
    stand beside its figures, where these facts do not say enough.
    """

    computes: bool = True
    emulated: bool = False
    floor: bool = False
    compiled: bool = False
    stands_for: str = ""
    passes_to: str = ""
    stand_in: str = ""


class Adjust(Protocol):
    """How a server is set for a run and put back; a module will do.

    All but `serving` may raise TargetError.
    """

    def inner(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint of the model whose settings they are: endpoints may have it in common."""

    def config_of(self, endpoint: Endpoint) -> Config:
        """How it is set up now."""

    def refusal(self, endpoint: Endpoint) -> str:
        """Why it cannot be set otherwise, and the fix, as the end of a sentence; empty where it can."""

    def configured(self, original: Config, queue_delay_us: int | None, instances: int) -> Config:
        """With other settings, None and 0 for its own: the original itself where it has them already."""

    def load(self, endpoint: Endpoint, config: Config) -> None:
        """Set it up so, for as long as it takes."""

    def is_ready(self, endpoint: Endpoint) -> bool:
        """Whether it answers requests again."""

    def serving(self, config: Config) -> dict[str, Any]:
        """What of it matters: instances, max_batch, batching, batching_delay_ns."""


def counts_nothing(endpoint: Endpoint, timeout_s: float) -> AbstractContextManager[Read]:
    """The counters of a server that tells none."""
    return nullcontext(lambda: {"server": {}})


@dataclass(frozen=True, kw_only=True)
class Backend:
    """One kind of server: in `BACKENDS` of a file beside this one, or registered by a locustfile.

    `ways`: how each payload is sent by each protocol, a codec's name and a contract; none where each endpoint
    says that itself: `codecs` are then, by protocol, those of servers that tell what they take. `space` is
    that of their vectors. Payloads of `direct`, by default the first, are what
    its model itself takes, and its null model, if it `has_floor`; before others stands a model that turns
    them into its own. `urls`: what the help of its options says of its address by a protocol, and of that of
    `metrics`, its page of them; none where it is only started here. `model` is what requests call its own
    model, empty where they name none; `model_help` is the help of the option that says another, if any.

    `check` raises TargetError where an endpoint is not of this kind, or not ready. `describe`: what the
    server says of itself, each part optional: the texts `model`, `weights`, `emulated`, and `serving` as
    Adjust has it. `counters` opens, for answers within some seconds, what reads `{"server": counters, "gpus":
    records}`: since its start, requests, successes, images, executions, and nanoseconds by part of a request,
    each where it is known. `metrics`: what reads a page of metrics for an endpoint. `adjust`: how it is set.
    All but `check` may raise whatever asking leads to.

    `compressions`: by which algorithms requests may be compressed, by protocol; gRPC has them itself.
    `regions`: its inputs may lie in system shared memory.

    `embedded`: what `inferswarm up --only` calls it, empty where it is not started here. `takes_token`:
    it does so even then. `profiled`: the operators of its model's file can be profiled there.
    """

    name: str
    ways: Mapping[tuple[Payload, Wire], tuple[str, Contract]] = field(default_factory=dict)
    codecs: Mapping[Wire, str] = field(default_factory=dict)
    space: str = ""
    facts: Facts = Facts()
    check: Callable[[Endpoint], None] = lambda endpoint: None
    describe: Callable[[Endpoint], Mapping[str, Any]] = lambda endpoint: {}
    counters: Callable[[Endpoint, float], AbstractContextManager[Read]] = counts_nothing
    metrics: Callable[[Endpoint], Callable[[str], dict[str, Any]]] | None = None
    adjust: Adjust | None = None
    compressions: Mapping[Wire, tuple[str, ...]] = field(default_factory=lambda: {"grpc": ALGORITHMS})
    regions: bool = False
    urls: Mapping[str, str] = field(default_factory=dict)
    direct: tuple[Payload, ...] = ()
    has_floor: bool = False
    model: str = ""
    model_help: str = ""
    embedded: str = ""
    takes_token: bool = False
    profiled: bool = False

    @property
    def own_payloads(self) -> tuple[Payload, ...]:
        """What its own model takes."""
        return self.direct or tuple(payload for payload, _ in self.ways)[:1]

    def url_option(self, of: str) -> str:
        """The option with the address of its server for a protocol, or of its metrics: `onnx_http_url`."""
        alone = len({protocol for _, protocol in self.ways}) == 1 and of != "metrics"
        return f"{self.name}_url" if alone else f"{self.name}_{of}_url"

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All ways to ask it, at no address yet: `onnx-jpeg-grpc`, but `onnx-grpc` for its first payload."""
        return tuple(self.preset(payload, protocol) for payload, protocol in self.ways)

    def preset(self, payload: Payload, protocol: Wire) -> Endpoint:
        """One of them."""
        first = self.own_payloads[0]
        made = Endpoint(
            "-".join(filter(None, (self.name, "" if payload == first else payload, protocol))),
            *(self.name, protocol, payload),
            address="",
            model=self.model_for(payload, self.model),
        )
        return self.described(made)

    def described(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint that does not say how it is asked, as its payload is. Raises KeyError for none."""
        if endpoint.codec:
            return endpoint
        codec, contract = self.ways[endpoint.payload, endpoint.protocol]
        server, space = endpoint.server or self.name, endpoint.space or self.space
        return replace(endpoint, codec=codec, contract=contract, server=server, space=space)

    def model_for(self, payload: Payload, own: str) -> str:
        """The name of the model that takes a payload, given that of its own."""
        if not self.model:
            return ""
        return own if payload in self.own_payloads else f"{own}_{payload}"
