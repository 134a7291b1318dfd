# mypy: ignore-errors
"""mosec: msgpack `{"image": bytes}` to JSON `{"embedding": [...]}` at /inference, batched by the server.

python mosec_server.py --address 127.0.0.1 --port PORT
"""

from clip_onnx import Clip, opened, prepared
from mosec import Server, Worker
from mosec.mixin import MsgpackMixin


class Prepare(MsgpackMixin, Worker):
    def forward(self, data):
        return prepared(opened(data["image"]))


class Embed(Worker):
    def __init__(self):
        self.model = Clip()

    def forward(self, data):
        return [{"embedding": vector.tolist()} for vector in self.model(data)]


if __name__ == "__main__":
    server = Server()
    server.append_worker(Prepare, num=1)
    server.append_worker(Embed, num=1, max_batch_size=4, max_wait_time=5)
    server.run()
