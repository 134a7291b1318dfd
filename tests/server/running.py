"""Real servers, started as a caller starts them, and one question to a tritonserver."""

import http.client
import json
import os
import ssl
import subprocess
import sys
from contextlib import contextmanager

import psutil

from server.spec import ROOT
from tests.processes import free_port, is_listening, wait_until

DEADLINE_S = 120
STOP_S = 10


class Up:
    """`inferswarm up --json --until-stdin-closes`, and what it has said."""

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
        for host, port in self.addresses():
            assert not is_listening(port, host)


@contextmanager
def up(*options, log_dir):
    command = [sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes"]
    command += ["--log-dir", str(log_dir), *options]
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, cwd=ROOT, **piped)
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


class Asked:
    """A service on a port, and what it answers."""

    def __init__(self, port, context=None):
        self.port = port
        self._context = context

    def connect(self):
        if self._context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self._context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()


class Live(Asked):
    """`python -m server service` as a process of its own, whose model takes a while and tells colours."""

    def __init__(self, process, port, context):
        super().__init__(port, context)
        self.process = process

    def ready(self):
        assert self.process.poll() is None, self.process.communicate()
        try:
            return self.request("GET", "/readyz")[0] == 200
        except (ConnectionError, ssl.SSLError):
            return False

    def stop(self):
        """Ask it to end; its exit code and what it has written to stderr."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, said


@contextmanager
def live(seconds=0.0, context=None, **settings):
    port = free_port()
    given = {f"INFERSWARM_{name}": str(value) for name, value in {"PORT": port, **settings}.items()}
    command = [sys.executable, "-m", "tests.server.colour", str(seconds)]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, **given}}
    process = subprocess.Popen(command, text=True, cwd=ROOT, **how)
    with process:
        try:
            service = Live(process, port, context)
            wait_until(service.ready, DEADLINE_S)
            yield service
        finally:
            process.kill()
