"""The options of every study, each declared once; what a command line says, resolved, is an Options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Self

from swarm.plan.matrix import AMOUNTS, Size
from swarm.plan.sweep import Axes, channels_of, instances_of, links_of, queue_delays_of, topologies_of
from users.load.assignment import LIBRARY, PREPARED
from users.load.pacing import CONSTANT, POISSON
from users.tls import Security

SIZES = ("quick", "full")
URLS = {
    "pytorch_url": "the PyTorch service, e.g. http://gpu-host:8002, or https:// for TLS",
    "onnx_http_url": "Triton with ONNX Runtime over HTTP, e.g. gpu-host:8010",
    "onnx_grpc_url": "the same over gRPC, e.g. gpu-host:8011, or grpcs://gpu-host:8011 for TLS",
    "onnx_metrics_url": "its metrics, for GPU figures, e.g. http://gpu-host:8012/metrics",
    "trt_http_url": "Triton with the compiled engine over HTTP, e.g. gpu-host:8020",
    "trt_grpc_url": "the same over gRPC, e.g. gpu-host:8021",
    "trt_metrics_url": "its metrics, for GPU figures, e.g. http://gpu-host:8022/metrics",
    "gateway_url": "a gateway that takes JPEG before a Triton, e.g. http://gpu-host:8040",
    "emulated_http_url": "Triton with the emulated model over HTTP, e.g. gpu-host:8030",
    "emulated_grpc_url": "the same over gRPC, e.g. gpu-host:8031",
}
FIRST_RECORDED = ("urls", "size", "skip_trt", "floor", "trace")
"""What a ledger's header has first, as it always had; the others follow as they are declared."""
Sense = tuple[Callable[[float], bool], str]
"""What makes sense as a number, and what to give where it does not."""
ABOVE_0: Sense = (lambda n: n > 0, "give more than 0")
FROM_0: Sense = (lambda n: n >= 0, "give 0 or more")
FROM_1: Sense = (lambda n: n >= 1, "give 1 or more")
ANY: Sense = (lambda _: True, "give a whole number")
COSINE: Sense = (lambda n: -1 <= n <= 1, "give -1 to 1")
SHARE: Sense = (lambda n: 0 <= n <= 1, "give 0 to 1")
PORT: Sense = (lambda n: 0 <= n < 65536, "give 0 to 65535")


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name and type.

    `in_form`: whether the web form asks for it, since it makes sense between two presses of Start; all others
    are resolved once, when the process starts. `known`: what a text may be. `is_path`: it is kept as it is
    found from anywhere. `most`: a number beyond, or below its negative, is a slip of the hand, or would fill
    the memory with runs.
    """

    help: str
    default: Any
    in_form: bool = False
    metavar: str | None = None
    known: tuple[str, ...] = ()
    is_path: bool = False
    sense: Sense = ANY
    most: float = 2**63


def text(metavar: str | None, help: str, default: Any = "", **more: Any) -> Any:
    """A field for an option, read once, when the process starts, unless it is `in_form`."""
    return field(metadata={"option": Option(help, default, metavar=metavar, **more)})


switch = partial(text, None, default=False)
"""A field for what is given or not."""
path = partial(text, is_path=True)
"""A field for the place of a file or folder."""
text_in_form = partial(text, in_form=True)
"""A field for a text that the web form asks for, too."""


def choice(help: str, *known: str) -> Any:
    """A field for one of some words, the first by default, that the web form asks for, too."""
    return text_in_form("HOW", help, known[0], known=known)


def number(default: float | None, help: str, sense: Sense, most: float = 2**63, in_form: bool = True) -> Any:
    """A field for a number; the study's size decides where it has no default."""
    said = "the size's" if default is None else f"{default:g}"
    return text(None, f"{help} (default: {said})", default, in_form=in_form, sense=sense, most=most)


@dataclass(frozen=True)
class Options:
    """The resolved options of a study; 0 iterations, seconds, warm_up or repeats stand for the size's own."""

    urls: Mapping[str, str]
    size: str
    skip_trt: bool = switch("Leave the compiled engine out")
    floor: bool = switch("Run every cell against the servers' null model, too: the floor beneath its figures")
    tls_no_verify: bool = switch(
        "Take any server's certificate (HTTP only): answers may be anybody's; reports say so"
    )
    trace: bool = switch("Join Triton's own trace of each request to ours (embedded servers); costs time")
    iterations: int = number(None, "Least requests measured in a serial cell", FROM_1)
    seconds: float = number(None, "Least seconds measured in a cell", ABOVE_0)
    warm_up: float = number(None, "Most seconds of warm-up; 5 or more to be steady", ABOVE_0)
    repeats: int = number(None, "Times every cell is run, in a seeded order", FROM_1, most=10_000)
    seed: int = number(0, "Seed of the order of the runs and of arrivals", ANY)
    max_in_flight: int = number(100, "Most requests in flight under open load", FROM_1, most=100_000)
    request_timeout: float = number(60.0, "Seconds until a request has failed", ABOVE_0)
    min_cosine: float = number(0.999, "Least cosine with the golden embedding", COSINE)
    max_failure_ratio: float = number(0.0, "Failed share above which the exit code is 1", SHARE)
    raw_results: int = number(100_000, "Most single results kept in results.parquet", FROM_0)
    link_mbit: float = number(0, "Known rate of the link to the servers in Mbit/s; 0 is unknown", FROM_0)
    usd_per_hour: float = number(
        0, "What the servers cost together in US dollars an hour; 0 is unknown", FROM_0
    )
    p95_bound: float = number(0, "p95 latency in ms that the best queue delay must keep; 0 is none", FROM_0)
    repeat_until_decided: int = number(
        0,
        "Most repeats while a verdict of --gate is open and more would decide; 0 adds none",
        FROM_0,
        most=10_000,
        in_form=False,
    )
    prometheus_port: int = number(0, "Port of live figures for Prometheus; 0 is none", PORT, in_form=False)
    rates: tuple[float, ...] = text_in_form(
        "R[,R…]", "Open load, not users: requests a second to each endpoint, at batch 1"
    )
    arrivals: str = choice("How the requests of an open load arrive: constant or poisson", CONSTANT, POISSON)
    find_rate: str = text_in_form(
        "BOUND",
        "Find the highest rate that keeps a latency bound in ms, e.g. 'p99<=100', from --rates or 8 on",
    )
    load_profile: str = text_in_form(
        "STAGES",
        "Let the open load climb to each of --rates, stay and fall, in seconds, e.g. ramp:20,hold:40,cool:20",
    )
    client: str = choice(
        "Send requests that are prepared, or build each from its array by tritonclient: prepared or library",
        PREPARED,
        LIBRARY,
    )
    channels: str = text_in_form(
        "HOW[,…]",
        "TCP connections of users: per-user, per-request, shared, pool:N, same-args (gRPC joins these)",
        "per-user",
    )
    topology: str = text_in_form(
        "W[@H][,…]",
        "Worker processes W that share the load, on H hosts, e.g. 1,4,4@2 (default: all there are)",
    )
    link: str = text(
        "NAME[,…]",
        "Emulated links to the servers, e.g. lan,wan-a100; of `python -m swarm run`, which makes them",
        "none",
    )
    queue_delay_us: str = text_in_form(
        "US[,…]",
        "Microseconds that Triton lets a request wait for others, e.g. 0,1000,10000 (default: its own)",
    )
    instances: str = text_in_form(
        "N[,…]",
        "Executions of a Triton model at once, e.g. 1,2,4: its instances, over its GPUs (default: its own)",
    )
    gate: str = path(
        "FILE", "Thresholds to judge the study by, e.g. thresholds.toml; the exit code is theirs"
    )
    baseline: str = path(
        "PLACE", "What --gate compares with: a results directory, or a file of `python -m reports baseline`"
    )
    images: str = path("DIR", "Folder of JPEG or PNG files to send (default: crops of photographs)")
    endpoints: str = text(
        "NAME[,…]",
        "Ask these endpoints, by shell patterns, e.g. 'onnx-*', or all that are known (default: the study's)",
    )
    cells: str = text_in_form("GLOB", "Run only the cells with such names, e.g. 'onnx-*/b1/*' (default: all)")
    emulate: str = text(
        "PROFILE",
        "Serve a model that only sleeps: a100, rtx4080, rtx4090, or BASE+PER ms as 40+1.3; none: real ones",
    )
    pretrained: str = text("TAG|PATH", "Weights of the embedded servers (default: random, from a seed)")
    tls_ca: str = path(
        "FILE", "Authorities to trust over TLS, in place of the system's: their certificates in PEM form"
    )
    tls_client_cert: str = path("FILE", "This client's own certificate in PEM form, where servers demand one")
    tls_client_key: str = path(
        "FILE", "The private key of --tls-client-cert, in PEM form and without a passphrase"
    )
    onnx_model: str = text("NAME", "Model behind the ONNX Runtime endpoints", "openclip_vit_b32")
    trt_model: str = text("NAME", "Model behind the compiled engine's endpoints", "openclip_vit_b32_trt")
    kube_url: str = text(
        "URL", "Record replicas: the address at which `kubectl proxy` serves, e.g. http://127.0.0.1:8001"
    )
    kube_namespace: str = text("NAME", "Namespace of --kube-deployment", "inferswarm-server")
    kube_deployment: str = text("NAME", "Deployment behind the service's URL", "inferswarm-server")
    results_dir: str = text("DIR", "Folder that gets one folder a study", "results")
    prometheus_host: str = text("HOST", "Address that --prometheus-port listens on", "127.0.0.1")

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

    def resolved(self, size: Size) -> Self:
        """The same with the numbers that the study really uses."""
        amounts = {name: getattr(size, name) for name in AMOUNTS}
        return replace(self, load_profile=size.profile, **amounts)

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        told = {**vars(self), "urls": dict(self.urls)}
        return {name: told[name] for name in dict.fromkeys((*FIRST_RECORDED, *told))}


def options_of(*types: object) -> dict[str, Option]:
    """The options whose fields are of such types, by name."""
    return {
        made.name: made.metadata["option"] for made in fields(Options) if made.metadata and made.type in types
    }


SWITCHES = options_of(bool)
NUMBERS = options_of(int, float)
TEXTS = options_of(str, tuple[float, ...])
OPTIONS = SWITCHES | NUMBERS | TEXTS


def flag(name: str) -> str:
    """`onnx_http_url` as it is typed: `--onnx-http-url`."""
    return "--" + name.replace("_", "-")
