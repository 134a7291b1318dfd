# mypy: ignore-errors
"""Ray Serve: a JPEG file as the body to `{"embedding": [...]}`, at /embed.

python ray_serve_app.py PORT FOLDER, where FOLDER is for what Ray writes
"""

import sys

import ray
from clip_onnx import Clip, opened, prepared
from ray import serve
from starlette.requests import Request


@serve.deployment(num_replicas=1)
class ClipDeployment:
    def __init__(self) -> None:
        self.model = Clip()

    async def __call__(self, request: Request) -> dict[str, list[float]]:
        pixels = prepared(opened(await request.body()))
        return {"embedding": self.model(pixels[None])[0].tolist()}


if __name__ == "__main__":
    port, folder = int(sys.argv[1]), sys.argv[2]
    ray.init(address="local", num_cpus=2, include_dashboard=False, _temp_dir=folder)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(ClipDeployment.bind(), route_prefix="/embed", blocking=True)
