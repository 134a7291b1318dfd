"""Real servers, started as a caller starts them, and one question to a tritonserver."""

import json
import socket
import subprocess
import sys
from contextlib import contextmanager

import psutil

from server.spec import ROOT

DEADLINE_S = 120
STOP_S = 10


class Up:
    """`python -m server up --json --until-stdin-closes`, and what it has said."""

    def __init__(self, process):
        self.process = process
        self.ready = self.event("ready")
        self.endpoints = self.ready["endpoints"]
        self.family = psutil.Process(process.pid).children(recursive=True)

    def event(self, kind):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == kind:
                return event
            assert event["event"] == "progress", event
        raise AssertionError(f"the supervisor ended without saying {kind}")

    def addresses(self):
        for endpoint in self.endpoints.values():
            for kind in ("url", "http", "grpc", "metrics"):
                if kind in endpoint:
                    host, port = endpoint[kind].removeprefix("http://").removesuffix("/metrics").split(":")
                    yield host, int(port)

    def assert_nothing_is_left(self):
        _, alive = psutil.wait_procs(self.family, timeout=STOP_S)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
        for address in self.addresses():
            with socket.socket() as probe:
                assert probe.connect_ex(address) != 0


@contextmanager
def up(*options, log_dir):
    command = [sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes"]
    process = subprocess.Popen(
        [*command, "--log-dir", str(log_dir), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            yield Up(process)
        finally:
            process.stdin.close()
            process.wait(DEADLINE_S)


def embed_triton(module, address, model, pixels):
    with module.InferenceServerClient(address) as client:
        tensor = module.InferInput("input", pixels.shape, "FP32")
        tensor.set_data_from_numpy(pixels)
        return client.infer(model, [tensor]).as_numpy("embedding")
