# mypy: ignore-errors
"""BentoML: a picture as a file of a form to a list of numbers, at /embed.

python -m bentoml serve bentoml_service:ClipService
"""

import bentoml
from clip_onnx import Clip, prepared
from PIL import Image


@bentoml.service(workers=1)
class ClipService:
    def __init__(self) -> None:
        self.model = Clip()

    @bentoml.api
    def embed(self, image: Image.Image) -> list[float]:
        return self.model(prepared(image)[None])[0].tolist()
