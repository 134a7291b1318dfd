"""The service's settings, read once from the environment."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from server.errors import SetUpError
from server.spec import FP32, PRECISIONS, ModelSpec

PREFIX = "INFERSWARM_"
MAX_TOKEN = 4096
MAX_SECONDS = 86_400
TOKEN = re.compile(f"[!-~]{{0,{MAX_TOKEN}}}")
TOKEN_TAKES = f"at most {MAX_TOKEN:,} characters of ASCII, without spaces and control characters"
T = TypeVar("T")


def _setting(
    default: T, kind: Callable[[str], T], fits: Callable[[T], object], takes: str, secret: bool = False
) -> T:
    """A field that `kind` reads from a text, with ValueError or a value that does not fit refused."""
    return field(default=default, repr=not secret, metadata={"kind": kind, "fits": fits, "takes": takes})


def _whole(default: int, at_least: int, at_most: float = math.inf) -> int:
    bounds = f"of {at_least} or more" if at_most == math.inf else f"from {at_least} to {at_most}"
    return _setting(default, int, lambda value: at_least <= value <= at_most, f"a whole number {bounds}")


def _seconds(default: float) -> float:
    takes = f"seconds, more than 0 and at most {MAX_SECONDS:,}"
    return _setting(default, float, lambda value: 0 < value <= MAX_SECONDS, takes)


def _is_device(text: str) -> bool:
    return text in ("auto", "cpu", "mps") or text.startswith("cuda")


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return not text or bool(host and "/" not in host and port.isdecimal() and 1 <= int(port) <= 65535)


@dataclass(frozen=True)
class Settings:
    """What the service runs with; each field is `INFERSWARM_<FIELD>` in the environment."""

    model: str = ModelSpec.name
    pretrained: str = ModelSpec.pretrained
    seed: int = _whole(ModelSpec.seed, 0)
    device: str = _setting("auto", str, _is_device, "auto, cpu, mps, cuda or cuda:N")
    precision: str = _setting(FP32, str, PRECISIONS.__contains__, " or ".join(PRECISIONS))
    host: str = "127.0.0.1"
    port: int = _whole(8002, 1, 65535)
    max_batch: int = _whole(32, 1)
    max_body_bytes: int = _whole(32 * 2**20, 1)
    """Room for 32 images of 768 KiB each, in base64."""
    max_pixels: int = _whole(40_000_000, 1)
    threads: int = _whole(0, 0)
    """CPU threads of one inference; 0 lets PyTorch choose."""
    upstream: str = _setting("", str, _is_address, "host:port of a Triton's gRPC")
    """`host:port` of a Triton's gRPC that computes instead of the service, which then is a gateway."""
    upstream_model: str = "openclip_vit_b32"
    upstream_calls: int = _whole(16, 1)
    """Calls in flight at once: the requests that its batcher can choose from."""
    max_queue: int = _whole(256, 0)
    """Requests that may wait, besides those being computed; 0: none may wait."""
    max_decode_s: float = _seconds(10.0)
    """CPU seconds for decoding all images of one request."""
    max_receive_s: float = _seconds(120.0)
    """For receiving a request's head, then its body; for a client that does not read its answer."""
    max_drain_s: int = _whole(20, 1)
    """For answering requests accepted before a signal to stop."""
    names: str = ""
    """Names of this machine besides localhost, separated by commas, for a service that only it can reach."""
    token: str = _setting("", str, TOKEN.fullmatch, TOKEN_TAKES, secret=True)
    tls_cert: str = ""
    tls_key: str = ""

    @property
    def at_once(self) -> int:
        """How many requests are computed, or are under way to be computed, at a time."""
        return self.upstream_calls if self.upstream else 1

    @property
    def parts(self) -> tuple[str, ...]:
        """What the service says of where a request's time went.

        The call to an upstream holds Triton's queue and the way there as well, so it is not called compute.
        """
        return ("decode", "preprocess", "queue", "upstream" if self.upstream else "compute")

    @property
    def spec(self) -> ModelSpec:
        return ModelSpec(self.model, self.pretrained, self.seed)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read `INFERSWARM_MODEL`, `INFERSWARM_PORT` and so on; SetUpError names one that is not valid."""
        made = cls(**{each.name: _value(each, environ) for each in fields(cls)})
        if bool(made.tls_cert) != bool(made.tls_key):
            missing = "TLS_KEY" if made.tls_cert else "TLS_CERT"
            both = f"{PREFIX}TLS_CERT and {PREFIX}TLS_KEY"
            raise SetUpError(f"{PREFIX}{missing} is not set: TLS takes {both}, two PEM files.")
        return made

    def to_env(self) -> dict[str, str]:
        """The environment variables from which `from_env` makes the same settings."""
        return {PREFIX + name.upper(): str(value) for name, value in vars(self).items()}


def _value(each: Field[Any], environ: Mapping[str, str]) -> Any:
    """A field's value in the environment, else its default; SetUpError where it takes something else."""
    variable = PREFIX + each.name.upper()
    if variable not in environ or not each.metadata:
        return environ.get(variable, each.default)
    with contextlib.suppress(ValueError):
        value = each.metadata["kind"](environ[variable])
        if each.metadata["fits"](value):
            return value
    # A secret is not quoted, not even a wrong one.
    said = f"is {environ[variable]!r}" if each.repr else "is not valid"
    raise SetUpError(f"{variable} {said}: it takes {each.metadata['takes']}.")


def decode_threads() -> int:
    """How many requests are decoded at a time: one for each CPU."""
    return os.cpu_count() or 1
