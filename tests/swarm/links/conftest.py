"""Links by our forwarder, whatever this kernel has: a test of its own emulator asks for that."""

from collections.abc import Iterator

import pytest

from swarm.links import network


@pytest.fixture(scope="package", autouse=True)
def no_netem() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(network, "kernel_has_netem", lambda: False)
        yield
