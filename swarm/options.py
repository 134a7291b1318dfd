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

SIZES = ("quick", "full")
URLS = {
    "pytorch_url": "the PyTorch service, e.g. http://gpu-host:8002",
    "onnx_http_url": "Triton with ONNX Runtime over HTTP, e.g. gpu-host:8010",
    "onnx_grpc_url": "the same over gRPC, e.g. gpu-host:8011",
    "onnx_metrics_url": "its metrics, e.g. http://gpu-host:8012/metrics (recorded, not read yet)",
    "trt_http_url": "Triton with the compiled engine over HTTP, e.g. gpu-host:8020",
    "trt_grpc_url": "the same over gRPC, e.g. gpu-host:8021",
    "trt_metrics_url": "its metrics, e.g. http://gpu-host:8022/metrics (recorded, not read yet)",
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
    "repeats": Number(
        int, 1, "Times every cell is run, in a seeded order", lambda n: n >= 1, "give 1 or more"
    ),
    "seed": Number(int, 0, "Seed of the order of the runs", lambda _: True, "give a whole number"),
    "request_timeout": Number(
        float, 60.0, "Seconds until a request has failed", lambda n: n > 0, "give more than 0"
    ),
    "min_cosine": Number(
        float, 0.999, "Least cosine with the golden embedding", lambda n: -1 <= n <= 1, "give -1 to 1"
    ),
    "max_failure_ratio": Number(
        float, 0.0, "Failed share above which the exit code is 1", lambda n: 0 <= n <= 1, "give 0 to 1"
    ),
}  # fmt: skip

TEXTS = {
    "images": ("", "DIR", "Folder of JPEG or PNG files to send (default: crops of photographs)"),
    "cells": ("", "GLOB", "Run only the cells with such names, e.g. 'onnx-*/b1/*' (default: all)"),
    "pretrained": ("", "TAG|PATH", "Weights of the embedded servers (default: random, from a seed)"),
    "onnx_model": ("openclip_vit_b32", "NAME", "Model behind the ONNX Runtime endpoints"),
    "trt_model": ("openclip_vit_b32_trt", "NAME", "Model behind the compiled engine's endpoints"),
    "results_dir": ("results", "DIR", "Folder that gets one folder a study"),
}


@dataclass(frozen=True)
class Options:
    """The resolved options of one study; 0 `iterations` or `seconds` stand for the size's own."""

    urls: Mapping[str, str]
    size: str
    skip_trt: bool
    iterations: int
    seconds: float
    repeats: int
    seed: int
    request_timeout: float
    min_cosine: float
    max_failure_ratio: float
    images: str
    cells: str
    pretrained: str
    onnx_model: str
    trt_model: str
    results_dir: str

    @property
    def embedded(self) -> bool:
        """No server was named: start our own."""
        return not self.urls

    def resolved(self, size: Size) -> Options:
        """The same with the numbers that the study really uses."""
        return replace(self, iterations=size.iterations, seconds=size.seconds)

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        return {**vars(self), "urls": dict(self.urls)}


def flag(name: str) -> str:
    """`onnx_http_url` as it is typed: `--onnx-http-url`."""
    return "--" + name.replace("_", "-")


def add_options(parser: LocustArgumentParser) -> None:
    """Add ours to Locust's parser, of which it builds one for every page.

    Only what makes sense between two presses of Start is shown in the web form: the targets, pictures and
    weights are resolved once, when the process starts.
    """
    for name, text in URLS.items():
        parser.add_argument(
            flag(name), default="", metavar="URL", help=f"Address of {text}", include_in_web_ui=False
        )
    parser.add_argument(
        "--skip-trt", action="store_true", help="Leave the compiled engine out", include_in_web_ui=False
    )
    for name, (default, metavar, text) in TEXTS.items():
        parser.add_argument(flag(name), default=default, metavar=metavar, help=text, include_in_web_ui=False)
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
    texts = {name: getattr(parsed, name) for name in TEXTS}
    texts["images"] = os.path.abspath(texts["images"]) if texts["images"] else ""
    if os.path.exists(texts["pretrained"]):
        texts["pretrained"] = os.path.abspath(texts["pretrained"])
    return Options(
        urls={name: getattr(parsed, name) for name in URLS if getattr(parsed, name)},
        size=parsed.study,
        skip_trt=bool(parsed.skip_trt),
        **{name: checked(name, number, getattr(parsed, name)) for name, number in NUMBERS.items()},
        **texts,
    )


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
