"""The gateway's model: a Triton elsewhere, asked over gRPC by several threads at once."""

from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from server.errors import NotYet, Refusal, SetUpError
from server.settings import Settings
from server.spec import DIM, IMAGE_SIZE

PATIENCE_S = 5.0
CALL_TIMEOUT_S = 60.0
OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # gRPC's own pauses between two tries to connect grow to two minutes: requests would be refused long after
    # an upstream is back.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
UNKNOWN = "unknown"


class GatewayEmbedder:
    """An Embedder that computes nothing itself, and whose `embed` may be called from many threads."""

    dim = DIM
    device = "upstream"
    model = weights = UNKNOWN
    weights_sha256 = ""

    def __init__(self, settings: Settings) -> None:
        self._address, self._name = settings.upstream, settings.upstream_model
        self._channel = grpc.insecure_channel(self._address, options=OPTIONS)
        self._stub = GRPCInferenceServiceStub(self._channel)

    def load(self) -> None:
        """Ask what the upstream holds, and let it infer once; NotYet where it is not there yet."""
        try:
            ready = self._stub.ModelReady(messages.ModelReadyRequest(name=self._name), timeout=PATIENCE_S)
            if not ready.ready:
                raise NotYet(f"the upstream {self._address} has no model {self._name} that is ready")
            asked = messages.ModelConfigRequest(name=self._name)
            self._know(self._stub.ModelConfig(asked, timeout=PATIENCE_S).config)
            self.embed(np.zeros((1, 3, IMAGE_SIZE, IMAGE_SIZE), np.float32))
        except grpc.RpcError as error:
            raise NotYet(f"the upstream {self._address} does not answer ({_code(error)})") from error
        except Refusal as error:
            raise NotYet(error.detail) from error

    def embed(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 [n, 3, 224, 224] to float32 [n, 512]; Refusal 502 where the upstream does not give them."""
        request = messages.ModelInferRequest(model_name=self._name)
        request.inputs.add(name="input", datatype="FP32", shape=pixels.shape)
        request.outputs.add(name="embedding")
        request.raw_input_contents.append(pixels.tobytes())
        try:
            answer = self._stub.ModelInfer(request, timeout=CALL_TIMEOUT_S)
            raw = answer.raw_output_contents[0]
            return np.frombuffer(raw, np.float32).reshape(len(pixels), DIM)
        except grpc.RpcError as error:
            said = " ".join(str(error.details()).split())
            raise Refusal(502, f"the upstream {self._address} failed ({_code(error)}): {said}") from None
        except (IndexError, ValueError):
            raise Refusal(
                502, f"the upstream {self._address} did not return {DIM} numbers per image"
            ) from None

    def close(self) -> None:
        """Let the connection go; calls under way end at once."""
        self._channel.close()

    def _know(self, config: Any) -> None:
        """Take model and weights from what `up` writes into Triton's configurations."""
        told = {key: value.string_value for key, value in config.parameters.items()}
        sizes = {tensor.name: list(tensor.dims) for tensor in (*config.input, *config.output)}
        if sizes.get("input") != [3, IMAGE_SIZE, IMAGE_SIZE] or sizes.get("embedding") != [DIM]:
            raise SetUpError(
                f"the upstream's model {self._name} does not turn `input` of 3 x {IMAGE_SIZE} x {IMAGE_SIZE} "
                f"into `embedding` of {DIM}: name one that does in INFERSWARM_UPSTREAM_MODEL."
            )
        self.model = told.get("model", self._name)
        self.weights = told.get("weights", "none (emulated)" if "emulated" in told else UNKNOWN)
        self.weights_sha256 = told.get("weights_sha256", "")


def _code(error: grpc.RpcError) -> str:
    return str(error.code().name.lower().replace("_", " "))
