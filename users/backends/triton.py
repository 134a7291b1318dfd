"""Triton with ONNX Runtime, TensorRT or what stands in for it, PyTorch, and with a model that only sleeps."""

from dataclasses import replace
from functools import partial
from typing import Any

from users.backends.base import Backend, Facts
from users.backends.presets import DIMENSION, SPACE
from users.codecs.packing import ALGORITHMS
from users.contract import Contract, Input
from users.triton import model_control
from users.triton.api import DIRECT, check, describe
from users.triton.counters import counter_reader, metrics_of


def taking(one: Input) -> Contract:
    """That of the published study's model, with this input."""
    return Contract((one,), output="embedding", dimension=DIMENSION, unit=True)


TENSOR = taking(Input("input", "FP32", (3, 224, 224), "picture", "NCHW"))
PIXELS = taking(Input("input", "UINT8", (3, 224, 224), "picture", "NCHW"))
JPEG = taking(Input("input", "BYTES", (1,), "jpeg"))


def triton(name: str, facts: Facts, **more: Any) -> Backend:
    """A Triton whose model takes tensors; before others stands an ensemble that makes them."""
    fix = f"name another by --{name}-model" if more.get("model_help") else ""
    return Backend(
        name=name,
        ways={
            ("fp32", "http"): ("v2-binary", TENSOR),
            ("fp32", "grpc"): ("v2-grpc", TENSOR),
            # Over gRPC numbers are binary anyway.
            ("json", "http"): ("v2-json", TENSOR),
            ("jpeg", "http"): ("v2-binary", JPEG),
            ("jpeg", "grpc"): ("v2-grpc", JPEG),
            ("uint8", "http"): ("v2-binary", PIXELS),
            ("uint8", "grpc"): ("v2-grpc", PIXELS),
        },
        space=SPACE,
        facts=facts,
        check=partial(check, fix=fix),
        describe=describe,
        counters=counter_reader,
        metrics=metrics_of,
        adjust=model_control,
        compressions={"http": ALGORITHMS, "grpc": ALGORITHMS},
        regions=True,
        direct=DIRECT,
        has_floor=True,
        **more,
    )


ONNX = triton(
    "onnx",
    Facts(),
    model="openclip_vit_b32",
    model_help="Name the model behind the ONNX Runtime endpoints",
    embedded="onnx",
    profiled=True,
    urls={
        "http": "Triton with ONNX Runtime over HTTP, e.g. gpu-host:8010",
        "grpc": "the same over gRPC, e.g. gpu-host:8011, or grpcs://gpu-host:8011 for TLS",
        "metrics": "its metrics, or dcgm-exporter's, for GPU figures, e.g. http://gpu-host:8012/metrics",
    },
)
TRT = triton(
    "trt",
    Facts(compiled=True),
    model="openclip_vit_b32_trt",
    model_help="Name the model behind the compiled engine's endpoints",
    urls={
        "http": "Triton with the compiled engine over HTTP, e.g. gpu-host:8020",
        "grpc": "the same over gRPC, e.g. gpu-host:8021",
        "metrics": "its metrics, or dcgm-exporter's, for GPU figures, e.g. http://gpu-host:8022/metrics",
    },
)
OPENVINO = triton(
    "openvino",
    Facts(
        compiled=True,
        stands_for=TRT.name,
        stand_in="OpenVINO: a stand-in for the compiled engine, which is TensorRT on a GPU host.",
    ),
    model="openclip_vit_b32_openvino",
    embedded="compiled",
)
TORCH = triton("torch", Facts(), model="openclip_vit_b32_torch", embedded="torch")
INDUCTOR = triton("inductor", Facts(), model="openclip_vit_b32_inductor", embedded="inductor")
EMULATED = triton(
    "emulated",
    Facts(computes=False, emulated=True, stands_for=ONNX.name),
    model="emulated",
    embedded="emulated",
    urls={
        "http": "Triton with the emulated model over HTTP, e.g. gpu-host:8030",
        "grpc": "the same over gRPC, e.g. gpu-host:8031",
    },
)
ANY = replace(
    triton("triton", Facts()),
    ways={},
    codecs={"http": "v2-binary", "grpc": "v2-grpc"},
    space="",
    direct=(),
    has_floor=False,
    check=partial(check, fix="give the name of one that is ready"),
)
"""A Triton whose endpoints say themselves what its models take."""
BACKENDS = (ONNX, TRT, OPENVINO, TORCH, INDUCTOR, EMULATED, ANY)
