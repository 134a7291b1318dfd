"""What ledgers of version 1, and files of rows without a ledger, do not say of their backends.

Frozen on 2026-11-24, when headers began to say it themselves: nothing is ever added here.
"""

from typing import Any

OPENVINO = "OpenVINO: a stand-in for the compiled engine, which is TensorRT on a GPU host."
BACKENDS: dict[str, dict[str, Any]] = {
    "null": {"computes": False, "floor": True},
    "emulated": {"computes": False, "emulated": True},
    "openvino": {"compiled": True, "stands_for": "trt", "stand_in": OPENVINO},
    "trt": {"compiled": True},
    "gateway": {"passes_to": "onnx"},
}
