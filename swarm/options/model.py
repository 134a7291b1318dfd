"""The options of every study, each declared once; what a command line says, resolved, is an Options.

The parser, --help, the web form and the tables of docs/options.md are made of what stands here.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Self

from reports.caveats.rate_bound import check_find_rate
from reports.ledger.axes import NO_LINK
from reports.slo import Slo
from swarm.options import values
from swarm.options.option import (
    NONE,
    Option,
    asked,
    axis,
    number,
    of_backends,
    place,
    several,
    switch,
    text,
)
from swarm.options.profile_file import profile_text
from swarm.options.values import MOST
from swarm.plan import sweep
from swarm.plan.matrix import AMOUNTS, Size
from swarm.plan.sweep import AxisOption, Varied
from swarm.plan.together import parse_groups, parse_split
from swarm.traces.times import HOUR_S, UNITS
from swarm.traces.trace import ArrivalTrace, read_trace
from users.backends.registry import model_options, url_options
from users.http2.sender import SCHEDULING, SCHEDULINGS
from users.load.assignment import LIBRARY, PREPARED
from users.load.mix import parse_batches, parse_shares
from users.load.pacing import CONSTANT, POISSON
from users.load.think import parse as think_time
from users.tls import Security
from users.transport.connections import PER_USER, parse

SIZES = ("quick", "full")
PRECISIONS = ("fp32", "fp16")
STUDY, CLOSED, LOAD = "Study", "Load: closed-loop", "Load: open-loop"
FAILURES, GATES, KNOWN = "Failures", "Gates", "Report inputs"
DESCRIBED, TARGETS = "Targets: endpoints of any model", "Targets: server addresses"
TLS, KUBERNETES, OUTPUT = "TLS", "Kubernetes", "Output"
EXPORTERS = "Exporters: live figures for other tools"
OWN = "Embedded servers, started where no URL is given"
OF_SERVERS: Mapping[str, Any] = {"applies": attrgetter("adjustable"), "of": "Triton's models"}
OF_LOAD: Mapping[str, Any] = {"applies": attrgetter("open"), "of": "open-loop load"}
OF_USERS: Mapping[str, Any] = {"applies": lambda cell: not cell.open, "of": "closed-loop load"}
OPEN = ("open-loop load", "rates", "find_rate", "together", "replay")
JUDGED = ("gates", "gate")
WATCHED = ("the Kubernetes API", "kube_url")
ABOVE_0, ANY = (math.ulp(0.0), MOST, "give more than 0"), (-MOST, MOST, "give a whole number")
QUEUE_DELAY = (0, 10_000_000, "give whole microseconds up to 10,000,000, e.g. 0,1000,10000")
INSTANCES = (1, 64, "give whole numbers from 1 to 64, e.g. 1,2,4")
SIZE, UNKNOWN, AS_STARTED = "set by --study", "unknown", "as the server was started"
BY_STUDY = "set by the study"


def picture_shares(text: str) -> Mapping[str, float]:
    """The shares of `--picture-mix` by kind. Raises ValueError."""
    return parse_shares(text, "224:0.7,1024:0.3, or small:0.7,large:0.3 with --images")


def addresses() -> dict[str, Option]:
    """Where the servers of each backend are."""
    told = {name: backend.urls[of] for name, (backend, of) in url_options().items()}
    return {
        name: Option(TARGETS, "URL", "", f"Set the address of {what}", unset=NONE)
        for name, what in told.items()
    }


def model_names() -> dict[str, Option]:
    """What they call their models, where they may call them otherwise."""
    return {name: Option(TARGETS, "NAME", of.model, of.model_help) for name, of in model_options().items()}


@dataclass(frozen=True)
class Options:
    """The resolved options of a study; 0 iterations, seconds, warm_up or repeats stand for the size's own."""

    # fmt: off
    size: str = asked(STUDY, None, "quick", flag="--study", read=values.one_of(*SIZES), choices=SIZES,
        env_var="STUDY",
        help="Choose the size of the study: quick or full; also read from STUDY in the environment")
    cells: str = asked(STUDY, "GLOB", unset="all",
        help="Run only the cells whose names match this shell pattern, e.g. 'onnx-*/b1/*'")
    endpoints: str = text(STUDY, "NAME[,…]", unset=BY_STUDY,
        help="Test only these endpoints, by name or shell pattern, e.g. 'onnx-*'; all tests every known one")
    batches: tuple[int, ...] = asked(CLOSED, "N[,…]", (), read=values.wholes("items in a request", 4_096),
        unset=SIZE,
        help="Set the items per request, e.g. 1,8,32: with 1 user; in study.py and with --rates, always")
    batch_mix: str = axis("N:SHARE[,…]", unset=NONE, group=STUDY,
        how=AxisOption(values.checked(parse_batches), of="requests", whole=True),
        help="Mix requests of several batches by their shares, e.g. 1:0.7,4:0.2,16:0.1, in place of"
        " --batches")
    levels: tuple[int, ...] = asked(CLOSED, "N[,…]", (), read=values.wholes("users", 100_000), unset=SIZE,
        help="Set the numbers of concurrent users, e.g. 1,8,64: at batch 1, or in study.py at each batch")
    iterations: int = number(STUDY, int, 0, 1, unset=SIZE,
        help="Measure at least this many requests in each cell with 1 user")
    seconds: float = number(STUDY, float, 0, *ABOVE_0, unit="s", unset=SIZE,
        help="Measure each cell for at least this long, however many requests that is")
    warm_up: float = number(STUDY, float, 0, *ABOVE_0, unit="s", unset=SIZE,
        help="Limit each warm-up, one a server and batch; less than 12 does not tell whether it is steady")
    repeats: int = number(STUDY, int, 0, 1, 10_000, unset=SIZE,
        help="Run every cell this many times, in a seeded random order")
    seed: int = number(STUDY, int, 0, *ANY,
        help="Seed the order of the runs and the arrivals")
    slo: str = asked(STUDY, "BOUND[,…]", read=values.checked(Slo.parse), unit="ms", unset=NONE,
        help="Count good requests: those within this latency, of which 'p99<=100' wants 99 in 100; of request"
        " classes, too: 'p99<=100,b16:p99<=400'")
    together: str = asked(STUDY, "NAME@LOAD+NAME@LOAD[,…]", read=values.checked(parse_groups), unset=NONE,
        help="Load these endpoints at the same time, and each alone, at rN requests/s or with cN users, e.g."
        " 'siglip@r50+clip-text@b4/c8'")
    floor: bool = switch(STUDY,
        help="Also run every cell against the servers' null model, to show the time spent outside the model")
    images: str = place(STUDY, "DIR", unset="built-in photographs",
        help="Send the JPEG or PNG files in this folder, which every host must have")
    picture_mix: str = axis("KIND:SHARE[,…]", unset=NONE, group=STUDY, in_form=False,
        how=AxisOption(values.checked(picture_shares), of="pictures", whole=True,
            applies=lambda cell: not cell.endpoint.contract.of_text),
        help="Mix kinds of pictures by shares of the requests: sides of the built-in photographs in pixels,"
        " e.g. 224:0.7,1024:0.3, or names of folders in --images")
    texts: str = place(STUDY, "FILE", unset="built-in captions",
        help="Send the lines of this file to text models; every host must have it")
    golden: str = place(STUDY, "FILE", unset="the first answers",
        help="Check answers against this .npz file of embeddings: an array per space, a row per item sent")
    pool_mb: int = number(STUDY, int, 256, 1, 1_048_576, unit="MB", in_form=False,
        help="Limit the memory that each worker uses for the prepared requests of one endpoint")
    grpc_scheduling: str = asked(STUDY, None, SCHEDULING, read=values.one_of(*SCHEDULINGS),
        choices=SCHEDULINGS,
        help="Choose the prepared client's order of sending on a gRPC connection: fifo (oldest request first)"
        " or fair (a frame of each in turn)")

    channels: str = axis("HOW[,…]", AxisOption(lambda text: str(parse(text))), PER_USER,
        help="Choose how users share TCP connections: per-user, per-request, shared, pool:N, same-args")
    client: str = axis("HOW[,…]", AxisOption(values.one_of(PREPARED, LIBRARY)), PREPARED,
        help="Choose the client: prepared (our own; requests are built before any load) or library"
        " (geventhttpclient or grpcio; they are built one by one)")
    topology: str = axis("W[@H][,…]", AxisOption(values.topology), unset="all available",
        help="Set the number of worker processes W that share the load, on H hosts, e.g. 1,4,4@2")
    link: str = axis("NAME[,…]", AxisOption(sweep.link), NO_LINK, in_form=False,
        help="Emulate these links to the servers, e.g. lan,wan-a100; only with `inferswarm run`")
    queue_delay_us: str = axis("US[,…]", unit="µs", unset=AS_STARTED,
        how=AxisOption(values.number(int, *QUEUE_DELAY), **OF_SERVERS),
        help="Set how long Triton holds a request to batch it with others, e.g. 0,1000,10000")
    instances: str = axis("N[,…]", unset=AS_STARTED,
        how=AxisOption(values.number(int, *INSTANCES), **OF_SERVERS),
        help="Set the number of instances of each Triton model over all GPUs, e.g. 1,2,4")

    compression: str = axis("HOW[,…]", unset=NONE,
        how=AxisOption(sweep.compressed, sweep.is_compressible, "endpoints that take compressed requests",
            fits=sweep.compresses_so),
        help="Choose how requests are compressed, and answers may be: none, gzip, deflate; over HTTP only for"
        " Triton, or where an endpoint's TOML file says so")
    shared_memory: str = axis("HOW[,…]", unset=NONE,
        how=AxisOption(sweep.in_shared_memory, sweep.shares_memory_here,
            "Triton's tensors, prepared before the load, neither compressed, mixed pictures nor a trace"),
        help="Choose the shared memory through which a Triton on this host gets inputs: none, system; answers"
        " come over the wire")
    think: str = axis("[HOW:]S[,…]", AxisOption(lambda text: str(think_time(text)), **OF_USERS), group=CLOSED,
        unit="s", unset=NONE,
        help="Let each user wait so long after an answer, e.g. 0.5, or exponential:0.5 for that mean")
    rates: tuple[float, ...] = asked(LOAD, "R[,R…]", (), read=values.rates, unit="requests/s", unset=NONE,
        help="Send requests at these rates instead of with users; at batch 1, or --batches")
    arrivals: str = axis("HOW[,…]", AxisOption(values.one_of(CONSTANT, POISSON), **OF_LOAD), CONSTANT, LOAD,
        needs=OPEN,
        help="Choose the arrival process: constant or poisson")
    max_in_flight: int = number(LOAD, int, 100, 1, 100_000, needs=OPEN,
        axis=AxisOption(int, **OF_LOAD),
        help="Limit the requests in flight, summed over all workers")
    load_profile: str = asked(LOAD, "STAGES|FILE", read=profile_text, unit="s", unset=BY_STUDY,
        help="Vary the rate up to each of --rates, or the users up to each of --levels:"
        " ramp:20,hold:40,cool:20, steps:4x30, spikes:every=30,width=5,times=4, sine:every=60,times=3,"
        " or a TOML file with points")
    replay: str = asked(LOAD, "FILE", read=os.path.abspath, unset=NONE,
        help="Replay a trace: send requests at the times, with the items and to the endpoints that this .csv,"
        " .jsonl or .parquet file says; `inferswarm trace` makes one")
    replay_speed: float = number(LOAD, float, 1, 0.001, 1_000, needs=("a trace", "replay"),
        help="Replay the trace at so many times its speed")
    replay_unit: str = asked(LOAD, "UNIT", read=values.one_of(*UNITS), unset="found",
        needs=("a trace", "replay"),
        help="State the unit of the trace's times, where its numbers do not tell: s, ms, us or ns")
    replay_resolution: float = number(LOAD, float, -1, 0, HOUR_S, unit="s", unset="found",
        needs=("a trace", "replay"),
        help="State how exact the trace's times are: rows of one time are spread over so long; 0 keeps them"
        " together")
    split: str = asked(LOAD, "NAME:SHARE[,…]", read=values.checked(parse_split), unset=NONE,
        needs=("open-loop load", "rates"),
        help="Split the requests of each of --rates among these endpoints at the same time, e.g."
        " old:0.9,new:0.1")
    find_rate: str = asked(LOAD, "BOUND", read=values.checked(check_find_rate), unit="ms", unset=NONE,
        help="Find and confirm the highest rate that keeps a bound, e.g. 'p99<=100', or slo for that of"
        " --slo; starts at --rates, else 8/s")

    request_timeout: float = number(FAILURES, float, 60.0, *ABOVE_0, unit="s",
        help="Count a request as failed after this time")
    min_cosine: float = number(FAILURES, float, 0.999, -1, 1,
        help="Count an answer as failed below this cosine similarity with the golden embedding")
    max_failure_ratio: float = number(FAILURES, float, 0.0, 0, 1,
        help="Exit with code 1 where more than this share of the requests fails, from 0 to 1")

    gate: str = place(GATES, "FILE",
        help="Judge the study by the thresholds in this file, e.g. thresholds.toml, which set the exit code")
    baseline: str = place(GATES, "PLACE", unset="set by the file", needs=JUDGED,
        help="Let --gate compare with this: a results directory, or a file of `inferswarm baseline`")
    repeat_until_decided: int = number(GATES, int, 0, 0, 10_000, in_form=False, needs=JUDGED,
        help="Repeat up to this many times while a verdict of --gate is open; 0 adds no repeats")

    link_mbit: float = number(KNOWN, float, 0, 0, unit="Mbit/s", unset=UNKNOWN,
        help="State the bandwidth of each client host's link to the servers")
    usd_per_hour: float = number(KNOWN, float, 0, 0, unit="US dollars per hour", unset=UNKNOWN,
        help="State what all servers together cost")
    p95_bound: float = number(KNOWN, float, 0, 0, unit="ms", unset=NONE,
        help="Choose the best queue delay among those that keep p95 at or below this")

    endpoint: tuple[str, ...] = several(DESCRIBED, "NAME=TARGET", unset=BY_STUDY,
        help="Add an endpoint under a name of your own: a URL such as triton+grpc://gpu:8001/siglip, triton+http://,"
        " v2+grpc:// or v2+http://, or a TOML file that describes it; repeatable")
    prepare: tuple[str, ...] = several(DESCRIBED, "[NAME=]HOW", unset="inferred",
        help="Preprocess images in this way: clip, siglip, dinov2, imagenet, caffe, pixels, or a TOML file")
    output: tuple[str, ...] = several(DESCRIBED, "[NAME=]TENSOR", unset="the only output",
        help="Name the output that holds the embedding")
    shape: tuple[str, ...] = several(DESCRIBED, "INPUT=SHAPE", unset="stated by the server",
        help="Set the shape of an input that the server leaves open, B for batch: pixel_values=B,3,384,384")
    input: tuple[str, ...] = several(DESCRIBED, "INPUT=HOW", unset="inferred",
        help="Set what an input holds: picture (pixels, or a JPEG file in BYTES), text, ids (of tokens),"
        " ones, zeros or random, e.g. sentences=text")
    space: tuple[str, ...] = several(DESCRIBED, "NAME=SPACE", unset="the model's name",
        help="Name the embedding space of an endpoint; embeddings of one space must agree")
    urls: Mapping[str, str] = of_backends(addresses)
    dcgm_metrics_url: str = text(TARGETS, "URL", unset=NONE,
        help="Set the address of dcgm-exporter's page, for the GPUs of all servers, e.g. http://gpu-host:9400/metrics")
    skip_trt: bool = switch(TARGETS,
        help="Leave out the compiled engine")
    models: Mapping[str, str] = of_backends(model_names)
    tls_ca: str = place(TLS, "FILE", read=values.certificates, unset="the system's",
        help="Trust the certificate authorities in this PEM file instead of the system's")
    tls_client_cert: str = place(TLS, "FILE", read=values.certificates,
        help="Present the client certificate in this PEM file, where servers require one")
    tls_client_key: str = place(TLS, "FILE", read=values.readable,
        help="Use the private key of --tls-client-cert in this PEM file, which has no passphrase")
    tls_no_verify: bool = switch(TLS,
        help="Accept any server certificate (HTTP only): answers may come from anybody, and reports say so")
    kube_url: str = text(KUBERNETES, "URL", unset=NONE,
        help="Record replicas through `kubectl proxy` at this address, e.g. http://127.0.0.1:8001")
    kube_namespace: str = text(KUBERNETES, "NAME", "inferswarm-server", read=values.kubernetes_name,
        needs=WATCHED, help="Look for --kube-deployment in this namespace")
    kube_deployment: str = text(KUBERNETES, "NAME", "inferswarm-server", read=values.kubernetes_name,
        needs=WATCHED, help="Watch this deployment, which is behind the service's URL")

    emulate: str = text(OWN, "PROFILE", unset=BY_STUDY,
        help="Serve models that sleep: a100, rtx4080, rtx4090, or BASE+PER[,SIZE:MS…][/COLD] ms as 40+1.3;"
        " none: real models")
    pretrained: str = text(OWN, "TAG|PATH", read=values.path_or_tag, unset="random, from a fixed seed",
        help="Load these weights: a tag of open_clip, or a file")
    precision: str = text(OWN, None, PRECISIONS[0], read=values.one_of(*PRECISIONS), choices=PRECISIONS,
        help="Compute PyTorch models in this precision: fp32 or fp16")
    trace: bool = switch(OWN,
        help="Join Triton's own trace to each request; slows Triton down, and may crash it with many users")

    results_dir: str = text(OUTPUT, "DIR", "results",
        help="Write each study to its own folder in this one")
    raw_results: int = number(OUTPUT, int, 100_000, 0,
        help="Keep up to this many single results in results.parquet; 0 keeps none")
    tables: bool = switch(OUTPUT,
        help="Print the report's tables at the end, below the summary")
    traceparent: float = number(EXPORTERS, float, 0, 0, 1, in_form=False, unset=NONE,
        help="Send a W3C traceparent with this share of the requests, from 0 to 1, for servers' spans")
    otlp_url: str = text(EXPORTERS, "URL", read=values.collector_url, unset=NONE,
        help="Push live metrics, and the spans of requests with a --traceparent, to an OpenTelemetry"
        " collector over HTTP, e.g. http://collector:4318")
    prometheus_port: int = number(EXPORTERS, int, 0, 0, 65_535, "must be 0 to 65535", in_form=False,
        unset=NONE, help="Serve live metrics to Prometheus on this port")
    prometheus_host: str = text(EXPORTERS, "HOST", "127.0.0.1",
        help="Listen on this address for --prometheus-port")
    json_lines: str = text(EXPORTERS, "PLACE", read=values.file_or_stdout, unset=NONE,
        help="Write each event of the study as a line of JSON to the end of this file; - is standard output,"
        " which then has nothing else")
    influx_url: str = text(EXPORTERS, "URL", read=values.influx_url, unset=NONE,
        help="Write every second's figures in line protocol to this URL, e.g. http://influx:8086/write?db=load"
        " or http://influx:8086/api/v2/write?org=ORG&bucket=BUCKET, token in INFERSWARM_INFLUX_TOKEN")
    # fmt: on

    def read_trace(self) -> ArrivalTrace:
        """The trace that is to be replayed. Raises ValueError."""
        resolution_s = self.replay_resolution if self.given("replay_resolution") else None
        return read_trace(self.replay, self.replay_unit, resolution_s)

    @property
    def embedded(self) -> bool:
        """No server was named: start our own."""
        return not self.urls and not self.endpoint

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of pictures that are mixed, if any."""
        return tuple(picture_shares(self.picture_mix)) if self.picture_mix else ()

    @property
    def pool_bytes(self) -> int:
        """Of the requests that a worker has prepared."""
        return self.pool_mb * 1_000_000

    @property
    def axes(self) -> tuple[Varied, ...]:
        """What they name of each axis."""
        return tuple(Varied(name, one, one.values(str(getattr(self, name)))) for name, one in AXES.items())

    @property
    def links(self) -> tuple[str, ...]:
        """The emulated links among them; empty is the path as it is."""
        return AXES["link"].values(self.link)

    @property
    def security(self) -> Security:
        """How targets are reached over TLS; the token's variable is each backend's own."""
        return Security(self.tls_ca, self.tls_client_cert, self.tls_client_key, not self.tls_no_verify)

    def given(self, name: str) -> bool:
        """Whether an option is other than its default."""
        return bool(getattr(self, name) != known_options()[name].default)

    def resolved(self, size: Size) -> Self:
        """The same with the numbers that the study really uses."""
        amounts = {name: getattr(size, name) for name in AMOUNTS}
        return replace(self, load_profile=size.profile, **amounts)

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        told = {**vars(self), "urls": dict(self.urls), **self.models}
        return {name: value for name, value in told.items() if name != "models"}


def known_options() -> dict[str, Option]:
    """All of them by name, in order; a locustfile may register more backends."""
    found: dict[str, Option] = {}
    for one in fields(Options):
        of_backends = one.metadata.get("options")
        found |= of_backends() if of_backends else {one.name: one.metadata["option"]}
    return found


AXES: Mapping[str, AxisOption] = {
    one.name: option.axis for one in fields(Options) if (option := one.metadata.get("option")) and option.axis
}

FLAGS: Mapping[str, str] = {
    one.name: option.flag for one in fields(Options) if (option := one.metadata.get("option"))
}


def flag(name: str) -> str:
    """`onnx_http_url` as it is typed: `--onnx-http-url`."""
    return FLAGS.get(name) or "--" + name.replace("_", "-")
