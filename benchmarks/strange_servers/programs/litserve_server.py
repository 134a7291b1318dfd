# mypy: ignore-errors
"""LitServe: `{"image": base64}` to `{"embedding": [...]}` at /predict, requests batched by the server.

python litserve_server.py PORT
"""

import base64
import sys

import litserve as ls
from clip_onnx import Clip, opened, prepared


class ClipAPI(ls.LitAPI):
    def setup(self, device):
        self.model = Clip()

    def decode_request(self, request):
        return prepared(opened(base64.b64decode(request["image"])))

    def predict(self, pixels):
        return self.model(pixels)

    def encode_response(self, vector):
        return {"embedding": vector.tolist()}


if __name__ == "__main__":
    server = ls.LitServer(ClipAPI(max_batch_size=4, batch_timeout=0.005), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False)
