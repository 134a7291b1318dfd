"""The options of every study: names, defaults, help texts, and what makes sense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from users.load.assignment import LIBRARY, PREPARED
from users.load.pacing import CONSTANT, POISSON

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


@dataclass(frozen=True)
class Number:
    """A numeric option: its type, default (None: the study's size decides), help, and what makes sense.

    `most`: a number beyond, or below its negative, is a slip of the hand, or would fill the memory with runs.
    """

    type: Callable[[str], float]
    default: float | None
    help: str
    holds: Callable[[float], bool]
    advice: str
    most: float = 2**63


NUMBERS = {
    "iterations": Number(
        int, None, "Least requests measured in a serial cell", lambda n: n >= 1, "give 1 or more"
    ),
    "seconds": Number(
        float, None, "Least seconds measured in a cell", lambda n: n > 0, "give more than 0"
    ),
    "warm_up": Number(
        float, None, "Most seconds of warm-up; 5 or more to be steady", lambda n: n > 0, "give more than 0"
    ),
    "repeats": Number(
        int, None, "Times every cell is run, in a seeded order", lambda n: n >= 1, "give 1 or more", 10_000
    ),
    "seed": Number(
        int, 0, "Seed of the order of the runs and of arrivals", lambda _: True, "give a whole number"
    ),
    "max_in_flight": Number(
        int, 100, "Most requests in flight under open load", lambda n: n >= 1, "give 1 or more", 100_000
    ),
    "request_timeout": Number(
        float, 60.0, "Seconds until a request has failed", lambda n: n > 0, "give more than 0"
    ),
    "min_cosine": Number(
        float, 0.999, "Least cosine with the golden embedding", lambda n: -1 <= n <= 1, "give -1 to 1"
    ),
    "max_failure_ratio": Number(
        float, 0.0, "Failed share above which the exit code is 1", lambda n: 0 <= n <= 1, "give 0 to 1"
    ),
    "raw_results": Number(
        int, 100_000, "Most single results kept in results.parquet", lambda n: n >= 0, "give 0 or more"
    ),
    "link_mbit": Number(
        float, 0, "Known rate of the link to the servers in Mbit/s; 0 is unknown", lambda n: n >= 0,
        "give 0 or more"
    ),
    "usd_per_hour": Number(
        float, 0, "What the servers cost together in US dollars an hour; 0 is unknown", lambda n: n >= 0,
        "give 0 or more"
    ),
    "p95_bound": Number(
        float, 0, "p95 latency in ms that the best queue delay must keep; 0 is none", lambda n: n >= 0,
        "give 0 or more"
    ),
    "repeat_until_decided": Number(
        int, 0, "Most repeats while a verdict of --gate is open and more would decide; 0 adds none",
        lambda n: n >= 0, "give 0 or more", 10_000
    ),
    "prometheus_port": Number(
        int, 0, "Port of live figures for Prometheus; 0 is none", lambda n: 0 <= n < 65536, "give 0 to 65535"
    ),
}  # fmt: skip

TEXTS = {
    "rates": (
        "",
        "R[,R…]",
        "Open load, not users: requests a second to each endpoint, at batch 1",
    ),
    "arrivals": ("constant", "HOW", "How the requests of an open load arrive: constant or poisson"),
    "find_rate": (
        "",
        "BOUND",
        "Find the highest rate that keeps a latency bound in ms, e.g. 'p99<=100', from --rates or 8 on",
    ),
    "load_profile": (
        "",
        "STAGES",
        "Let the open load climb to each of --rates, stay and fall, in seconds, e.g. ramp:20,hold:40,cool:20",
    ),
    "client": (
        "prepared",
        "HOW",
        "Send requests that are prepared, or build each from its array by tritonclient: prepared or library",
    ),
    "channels": (
        "per-user",
        "HOW[,…]",
        "TCP connections of users: per-user, per-request, shared, pool:N, same-args (gRPC joins these)",
    ),
    "topology": (
        "",
        "W[@H][,…]",
        "Worker processes W that share the load, on H hosts, e.g. 1,4,4@2 (default: all there are)",
    ),
    "link": (
        "none",
        "NAME[,…]",
        "Emulated links to the servers, e.g. lan,wan-a100; of `python -m swarm run`, which makes them",
    ),
    "queue_delay_us": (
        "",
        "US[,…]",
        "Microseconds that Triton lets a request wait for others, e.g. 0,1000,10000 (default: its own)",
    ),
    "instances": (
        "",
        "N[,…]",
        "Executions of a Triton model at once, e.g. 1,2,4: its instances, over its GPUs (default: its own)",
    ),
    "gate": ("", "FILE", "Thresholds to judge the study by, e.g. thresholds.toml; the exit code is theirs"),
    "baseline": (
        "",
        "PLACE",
        "What --gate compares with: a results directory, or a file of `python -m reports baseline`",
    ),
    "images": ("", "DIR", "Folder of JPEG or PNG files to send (default: crops of photographs)"),
    "endpoints": (
        "",
        "NAME[,…]",
        "Ask these endpoints, by shell patterns, e.g. 'onnx-*', or all that are known (default: the study's)",
    ),
    "cells": ("", "GLOB", "Run only the cells with such names, e.g. 'onnx-*/b1/*' (default: all)"),
    "emulate": (
        "",
        "PROFILE",
        "Serve a model that only sleeps: a100, rtx4080, rtx4090, or BASE+PER ms as 40+1.3; none: real ones",
    ),
    "pretrained": ("", "TAG|PATH", "Weights of the embedded servers (default: random, from a seed)"),
    "tls_ca": (
        "",
        "FILE",
        "Authorities to trust over TLS, in place of the system's: their certificates in PEM form",
    ),
    "tls_client_cert": ("", "FILE", "This client's own certificate in PEM form, where servers demand one"),
    "tls_client_key": (
        "",
        "FILE",
        "The private key of --tls-client-cert, in PEM form and without a passphrase",
    ),
    "onnx_model": ("openclip_vit_b32", "NAME", "Model behind the ONNX Runtime endpoints"),
    "trt_model": ("openclip_vit_b32_trt", "NAME", "Model behind the compiled engine's endpoints"),
    "kube_url": (
        "",
        "URL",
        "Record replicas: the address at which `kubectl proxy` serves, e.g. http://127.0.0.1:8001",
    ),
    "kube_namespace": ("inferswarm-server", "NAME", "Namespace of --kube-deployment"),
    "kube_deployment": ("inferswarm-server", "NAME", "Deployment behind the service's URL"),
    "results_dir": ("results", "DIR", "Folder that gets one folder a study"),
    "prometheus_host": ("127.0.0.1", "HOST", "Address that --prometheus-port listens on"),
}
SWITCHES = {
    "skip_trt": "Leave the compiled engine out",
    "floor": "Run every cell against the servers' null model, too: the floor beneath its figures",
    "tls_no_verify": "Take any server's certificate (HTTP only): answers may be anybody's; reports say so",
    "trace": "Join Triton's own trace of each request to ours (embedded servers); costs time",
}
IN_THE_FORM = frozenset(
    (
        *("rates", "arrivals", "find_rate", "load_profile", "cells"),
        *("client", "channels", "topology", "queue_delay_us", "instances"),
    )
)
"""Texts that make sense between two presses of Start; the rest is resolved once, when the process starts."""
AT_THE_START = frozenset({"prometheus_port", "repeat_until_decided"})
"""Numbers that the web form would ask for in vain."""
CHOICES = {
    "arrivals": (CONSTANT, POISSON),
    "client": (PREPARED, LIBRARY),
}
"""What some texts may be."""
MOST_PER_S = 100_000


def flag(name: str) -> str:
    """`onnx_http_url` as it is typed: `--onnx-http-url`."""
    return "--" + name.replace("_", "-")
