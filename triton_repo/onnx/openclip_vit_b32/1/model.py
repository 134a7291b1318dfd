"""Triton's Python backend running the exported image tower on ONNX Runtime, on the providers it is given."""

import json
from typing import Any

import numpy as np
import onnxruntime
from tensors import embedded_together

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
# Float32 as the other backends compute it, not TF32; and no search through cuDNN for each new batch size.
CUDA_OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
HEAVY = ("MatMul", "Gemm", "Conv")


class TritonPythonModel:
    """Pixels, FP32 [n, 3, 224, 224], to embeddings, FP32 [n, 512]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the session and infer once a batch size, so that the first request pays for nothing."""
        given = json.loads(args["model_config"])["parameters"]
        parameters = {name: value["string_value"] for name, value in given.items()}
        self._session = open_session(parameters)
        for batch in parameters.get("warm_up", "1").split(","):
            self._embed(np.zeros((int(batch), 3, 224, 224), np.float32))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests of one dynamic batch with one inference."""
        return embedded_together(requests, self._embed)

    def _embed(self, pixels: np.ndarray) -> np.ndarray:
        return self._session.run(["embedding"], {"input": pixels})[0]


def open_session(parameters: dict[str, str]) -> Any:
    """A session of `onnx_path` on `providers`, best first; RuntimeError where it would compute elsewhere."""
    names = parameters.get("providers", CPU).split(",")
    tensorrt = {name: value for name, value in parameters.items() if name.startswith("trt_")}
    settings = {CUDA: CUDA_OPTIONS, TENSORRT: tensorrt}
    options = onnxruntime.SessionOptions()
    # Idle threads that spin would take cores from whatever is measured beside this server.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if names[0] != CPU:
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = onnxruntime.InferenceSession(
        parameters["onnx_path"], options, providers=[(name, settings.get(name, {})) for name in names]
    )
    if names[0] != CPU:
        refuse_fallback(session, names[0])
    return session


def refuse_fallback(session: Any, wanted: str) -> None:
    """RuntimeError where ONNX Runtime left out a provider without a word, or gave the work to the CPU."""
    got = session.get_providers()[0]
    if got != wanted:
        raise RuntimeError(f"ONNX Runtime fell back to {got}: {wanted} cannot be used here.")
    # A provider that is there need not take a node. Shapes are left to the CPU by design; products are not.
    placed = [
        (part.ep_name, node.op_type)
        for part in session.get_provider_graph_assignment_info()
        for node in part.get_nodes()
    ]
    heavy = [provider for provider, operator in placed if operator in HEAVY]
    if wanted not in heavy or CPU in heavy:
        raise RuntimeError(
            f"ONNX Runtime left {heavy.count(CPU)} of {len(heavy)} products and convolutions to the CPU, "
            f"and gave {heavy.count(wanted)} to {wanted}."
        )
