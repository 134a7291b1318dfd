# mypy: ignore-errors
"""MLServer: a custom runtime for V2, `input` FP32 [n, 3, 224, 224] to `embedding` FP32 [n, 512].

python -c "from mlserver.cli import main; main()" start FOLDER
"""

from clip_onnx import Clip
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class ClipRuntime(MLModel):
    async def load(self) -> bool:
        self.model = Clip()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        vectors = self.model(NumpyCodec.decode_input(payload.inputs[0]))
        outputs = [NumpyCodec.encode_output("embedding", vectors)]
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=outputs)
