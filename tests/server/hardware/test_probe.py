"""How a process gets at CUDA's libraries; what it then finds out is in test_providers."""

import os
import sys

import pytest

from server.hardware import probe


@pytest.mark.parametrize(
    ("path", "starts"), [("", True), ("/lib", True), ("/cublas/lib", True), ("/trt:/cublas/lib:/lib", False)]
)
def test_a_command_starts_anew_where_a_gpus_libraries_are_not_on_the_loaders_path(path, starts, monkeypatch):
    became = []
    monkeypatch.setenv("LD_LIBRARY_PATH", path)
    monkeypatch.setattr(probe, "library_folders", lambda: ("/cublas/lib", "/trt"))
    monkeypatch.setattr(probe.os, "execve", lambda *given: became.append(given))
    probe.start_with_libraries(["profile", "--batch", "4"])
    again = ["-m", "server", "profile", "--batch", "4"]
    expected = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, ["/cublas/lib", "/trt", path]))}
    assert became == ([(sys.executable, [sys.executable, *again], expected)] if starts else [])
