"""How a process gets at CUDA's libraries; what it then finds out is in test_providers."""

import sys

import pytest

from server.hardware.probe import start_with_libraries


@pytest.mark.parametrize(
    ("path", "starts"), [("", True), ("/lib", True), ("/cublas/lib", True), ("/trt:/cublas/lib:/lib", False)]
)
def test_a_command_starts_anew_where_a_gpus_libraries_are_not_on_the_loaders_path(path, starts):
    became = []
    start_with_libraries(
        ["profile", "--batch", "4"],
        {"LD_LIBRARY_PATH": path},
        ("/cublas/lib", "/trt"),
        lambda *given: became.append(given),
    )
    again = ["-m", "server", "profile", "--batch", "4"]
    expected = {"LD_LIBRARY_PATH": ":".join(filter(None, ["/cublas/lib", "/trt", path]))}
    assert became == ([(sys.executable, [sys.executable, *again], expected)] if starts else [])
