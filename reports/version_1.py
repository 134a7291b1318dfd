"""What older ledgers, and files of rows without a ledger, do not say of their backends.

Frozen: headers say the first since 2026-11-24, and plans the second since 2026-11-25. Nothing is ever added.
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
OF_THEIR_MODEL = frozenset({*BACKENDS, "pytorch", "onnx"})
"""Those that served, stood for or emulated the one model that there was, before plans said whose vectors."""
