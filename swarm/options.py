"""The options of every study, on top of Locust's own."""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swarm.errors import UsageError

SIZES = ("quick", "full")
URL_OPTIONS = {
    "pytorch_url": "the PyTorch service, e.g. http://gpu-host:8002",
    "onnx_http_url": "Triton with ONNX Runtime over HTTP, e.g. gpu-host:8010",
    "onnx_grpc_url": "the same over gRPC, e.g. gpu-host:8011",
    "onnx_metrics_url": "its metrics, e.g. http://gpu-host:8012/metrics",
    "trt_http_url": "Triton with the compiled engine over HTTP, e.g. gpu-host:8020",
    "trt_grpc_url": "the same over gRPC, e.g. gpu-host:8021",
    "trt_metrics_url": "its metrics, e.g. http://gpu-host:8022/metrics",
}


@dataclass(frozen=True)
class Options:
    """The resolved options of one study; 0 `iterations` or `seconds` stand for the size's own."""

    urls: Mapping[str, str]
    size: str
    iterations: int
    seconds: float
    repeats: int
    seed: int
    images: str
    pretrained: str
    onnx_model: str
    trt_model: str
    skip_trt: bool
    request_timeout_s: float
    min_cosine: float
    max_failure_ratio: float
    results_dir: str

    @property
    def embedded(self) -> bool:
        """No server was named: start our own."""
        return not self.urls

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        return {name: dict(value) if name == "urls" else value for name, value in vars(self).items()}


def add_options(parser: LocustArgumentParser) -> None:
    """Add ours to Locust's parser; idempotent in effect, since Locust builds a parser for every page."""
    for name, text in URL_OPTIONS.items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(
            flag, default="", metavar="URL", help=f"Address of {text}", include_in_web_ui=False
        )
    parser.add_argument("--study", default="quick", choices=SIZES, env_var="STUDY", help="Size of the study")
    add_number_options(parser)
    parser.add_argument("--skip-trt", action="store_true", help="Leave the compiled engine's endpoints out")
    hidden = {"include_in_web_ui": False}
    parser.add_argument("--images", default="", metavar="DIR", help="Folder of JPEG or PNG to send", **hidden)
    parser.add_argument(
        "--pretrained", default="", metavar="TAG|PATH", help="Weights of the embedded servers", **hidden
    )
    parser.add_argument(
        "--onnx-model", default="openclip_vit_b32", metavar="NAME", help="Triton's name", **hidden
    )
    parser.add_argument(
        "--trt-model", default="openclip_vit_b32_trt", metavar="NAME", help="Triton's name", **hidden
    )
    parser.add_argument("--results-dir", default="results", metavar="DIR", help="Where results go", **hidden)


def add_number_options(parser: LocustArgumentParser) -> None:
    """The numeric options."""
    parser.add_argument(
        "--iterations",
        type=int,
        help="Least number of requests measured in a serial cell (default: the size's)",
    )
    parser.add_argument(
        "--seconds", type=float, help="Least seconds measured in a cell (default: the size's)"
    )
    parser.add_argument("--repeats", type=int, default=1, help="Times every cell is run, in a seeded order")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the order of the runs")
    parser.add_argument(
        "--request-timeout", type=float, default=60.0, help="Seconds until a request has failed"
    )
    parser.add_argument(
        "--min-cosine", type=float, default=0.999, help="Least cosine with the golden embedding"
    )
    parser.add_argument("--max-failure-ratio", type=float, default=0.0, help="Above it the exit code is 1")


def resolve(parsed: argparse.Namespace | None) -> Options:
    """Options checked for sense. Raises UsageError naming the option and the mend."""
    assert parsed is not None, "Locust parses options before it fires init"
    iterations = parsed.iterations
    require(iterations in (None, "") or int(iterations) >= 1, f"--iterations {iterations}: give 1 or more")
    require(
        parsed.seconds in (None, "") or float(parsed.seconds) > 0,
        f"--seconds {parsed.seconds}: give more than 0",
    )
    require(int(parsed.repeats) >= 1, f"--repeats {parsed.repeats}: give 1 or more")
    require(
        float(parsed.request_timeout) > 0, f"--request-timeout {parsed.request_timeout}: give more than 0"
    )
    require(-1 <= float(parsed.min_cosine) <= 1, f"--min-cosine {parsed.min_cosine}: give -1 to 1")
    require(
        0 <= float(parsed.max_failure_ratio) <= 1,
        f"--max-failure-ratio {parsed.max_failure_ratio}: give 0 to 1",
    )
    require(parsed.study in SIZES, f"--study {parsed.study}: give one of {', '.join(SIZES)}")
    return Options(
        urls={name: getattr(parsed, name) for name in URL_OPTIONS if getattr(parsed, name)},
        size=parsed.study,
        iterations=int(iterations or 0),
        seconds=float(parsed.seconds or 0),
        repeats=int(parsed.repeats),
        seed=int(parsed.seed),
        images=os.path.abspath(parsed.images) if parsed.images else "",
        pretrained=parsed.pretrained,
        onnx_model=parsed.onnx_model,
        trt_model=parsed.trt_model,
        skip_trt=bool(parsed.skip_trt),
        request_timeout_s=float(parsed.request_timeout),
        min_cosine=float(parsed.min_cosine),
        max_failure_ratio=float(parsed.max_failure_ratio),
        results_dir=parsed.results_dir,
    )


def require(holds: bool, sentence: str) -> None:
    """Raise UsageError(sentence) unless it holds."""
    if not holds:
        raise UsageError(sentence)
