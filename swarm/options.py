"""The options of every study, on top of Locust's own."""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

import argparse
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from swarm.errors import UsageError
from swarm.plan import Size
from swarm.search import Bound
from users.pacer import CONSTANT, POISSON

SIZES = ("quick", "full")
URLS = {
    "pytorch_url": "the PyTorch service, e.g. http://gpu-host:8002",
    "onnx_http_url": "Triton with ONNX Runtime over HTTP, e.g. gpu-host:8010",
    "onnx_grpc_url": "the same over gRPC, e.g. gpu-host:8011",
    "onnx_metrics_url": "its metrics, for GPU figures, e.g. http://gpu-host:8012/metrics",
    "trt_http_url": "Triton with the compiled engine over HTTP, e.g. gpu-host:8020",
    "trt_grpc_url": "the same over gRPC, e.g. gpu-host:8021",
    "trt_metrics_url": "its metrics, for GPU figures, e.g. http://gpu-host:8022/metrics",
}


@dataclass(frozen=True)
class Number:
    """A numeric option: its type, default (None: the study's size decides), help, and what makes sense."""

    type: Callable[[str], float]
    default: float | None
    help: str
    holds: Callable[[float], bool]
    advice: str


NUMBERS = {
    "iterations": Number(
        int, None, "Least requests measured in a serial cell", lambda n: n >= 1, "give 1 or more"
    ),
    "seconds": Number(
        float, None, "Least seconds measured in a cell", lambda n: n > 0, "give more than 0"
    ),
    "warm_up": Number(
        float, None, "Most seconds a cell warms up", lambda n: n > 0, "give more than 0"
    ),
    "repeats": Number(
        int, 1, "Times every cell is run, in a seeded order", lambda n: n >= 1, "give 1 or more"
    ),
    "seed": Number(
        int, 0, "Seed of the order of the runs and of arrivals", lambda _: True, "give a whole number"
    ),
    "max_in_flight": Number(
        int, 100, "Most requests in flight under open load", lambda n: n >= 1, "give 1 or more"
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
    "prometheus_port": Number(
        int, 0, "Port of live figures for Prometheus; 0 is none", lambda n: 0 <= n < 65536, "give a port"
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
        "Find the highest rate that keeps a latency bound in ms, e.g. 'p99<=100'",
    ),
    "images": ("", "DIR", "Folder of JPEG or PNG files to send (default: crops of photographs)"),
    "cells": ("", "GLOB", "Run only the cells with such names, e.g. 'onnx-*/b1/*' (default: all)"),
    "pretrained": ("", "TAG|PATH", "Weights of the embedded servers (default: random, from a seed)"),
    "onnx_model": ("openclip_vit_b32", "NAME", "Model behind the ONNX Runtime endpoints"),
    "trt_model": ("openclip_vit_b32_trt", "NAME", "Model behind the compiled engine's endpoints"),
    "results_dir": ("results", "DIR", "Folder that gets one folder a study"),
    "prometheus_host": ("127.0.0.1", "HOST", "Address that --prometheus-port listens on"),
}
IN_THE_FORM = frozenset({"rates", "arrivals", "find_rate", "cells"})
"""Texts that make sense between two presses of Start; the rest is resolved once, when the process starts."""
ARRIVALS = (CONSTANT, POISSON)


@dataclass(frozen=True)
class Options:
    """The resolved options of one study; 0 `iterations`, `seconds` or `warm_up` stand for the size's own."""

    urls: Mapping[str, str]
    size: str
    skip_trt: bool
    iterations: int
    seconds: float
    warm_up: float
    repeats: int
    seed: int
    max_in_flight: int
    request_timeout: float
    min_cosine: float
    max_failure_ratio: float
    prometheus_port: int
    rates: tuple[float, ...]
    arrivals: str
    find_rate: str
    images: str
    cells: str
    pretrained: str
    onnx_model: str
    trt_model: str
    results_dir: str
    prometheus_host: str

    @property
    def embedded(self) -> bool:
        """No server was named: start our own."""
        return not self.urls

    def resolved(self, size: Size) -> Options:
        """The same with the numbers that the study really uses."""
        return replace(self, iterations=size.iterations, seconds=size.seconds, warm_up=size.warm_up)

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        return {**vars(self), "urls": dict(self.urls)}


def flag(name: str) -> str:
    """`onnx_http_url` as it is typed: `--onnx-http-url`."""
    return "--" + name.replace("_", "-")


def add_options(parser: LocustArgumentParser) -> None:
    """Add ours to Locust's parser, of which it builds one for every page."""
    for name, text in URLS.items():
        parser.add_argument(
            flag(name), default="", metavar="URL", help=f"Address of {text}", include_in_web_ui=False
        )
    parser.add_argument(
        "--skip-trt", action="store_true", help="Leave the compiled engine out", include_in_web_ui=False
    )
    for name, (default, metavar, text) in TEXTS.items():
        shown = name in IN_THE_FORM
        parser.add_argument(flag(name), default=default, metavar=metavar, help=text, include_in_web_ui=shown)
    parser.add_argument(
        "--study", default="quick", choices=SIZES, env_var="STUDY", help="Size of the study: quick or full"
    )
    for name, number in NUMBERS.items():
        default_text = "the size's" if number.default is None else f"{number.default:g}"
        text = f"{number.help} (default: {default_text})"
        parser.add_argument(flag(name), type=number.type, default=number.default, help=text)


def resolve(parsed: argparse.Namespace | None) -> Options:
    """Options checked for sense. Raises UsageError naming the option and the mend."""
    assert parsed is not None, "Locust parses options before it fires init"
    if parsed.study not in SIZES:
        raise UsageError(f"--study {parsed.study}: give one of {', '.join(SIZES)}")
    texts = {name: getattr(parsed, name) for name in TEXTS if name != "rates"}
    if texts["arrivals"] not in ARRIVALS:
        raise UsageError(f"--arrivals {texts['arrivals']}: give one of {', '.join(ARRIVALS)}")
    if texts["find_rate"]:
        Bound.parse(texts["find_rate"])
    texts["images"] = os.path.abspath(texts["images"]) if texts["images"] else ""
    if os.path.exists(texts["pretrained"]):
        texts["pretrained"] = os.path.abspath(texts["pretrained"])
    return Options(
        urls={name: getattr(parsed, name) for name in URLS if getattr(parsed, name)},
        size=parsed.study,
        skip_trt=bool(parsed.skip_trt),
        rates=rates_of(parsed.rates),
        **{name: checked(name, number, getattr(parsed, name)) for name, number in NUMBERS.items()},
        **texts,
    )


def rates_of(text: str) -> tuple[float, ...]:
    """`50,100`: 50 and 100 requests a second. Raises UsageError."""
    try:
        rates = tuple(dict.fromkeys(float(part) for part in text.split(",") if part.strip()))
    except ValueError:
        rates = (math.nan,)
    if not all(math.isfinite(rate) and rate > 0 for rate in rates):
        raise UsageError(f"--rates {text}: give requests a second, above 0, separated by commas, e.g. 50,100")
    return rates


def checked(name: str, number: Number, value: Any) -> Any:
    """The number, converted (the web form sends text) and found sensible, or 0 where none was given."""
    if value in (None, ""):
        return number.default or 0
    try:
        converted = number.type(value)
    except ValueError:
        converted = math.nan
    if not math.isfinite(converted) or not number.holds(converted):
        raise UsageError(f"{flag(name)} {value}: {number.advice}")
    return converted
