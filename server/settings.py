"""The service's settings, read once from the environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from server.errors import SetUpError
from server.spec import ModelSpec

PREFIX = "INFERSWARM_"
MAX_TOKEN = 4096
MAX_SECONDS = 86_400


@dataclass(frozen=True)
class Settings:
    """What the service runs with; each field is `INFERSWARM_<FIELD>` in the environment."""

    model: str = ModelSpec.name
    pretrained: str = ModelSpec.pretrained
    seed: int = ModelSpec.seed
    device: str = "auto"
    host: str = "127.0.0.1"
    port: int = 8002
    max_batch: int = 32
    max_body_bytes: int = 32 * 2**20
    """Room for 32 images of 768 KiB each, in base64."""
    max_pixels: int = 40_000_000
    threads: int = 0
    """CPU threads of one inference; 0 leaves the choice to PyTorch."""
    upstream: str = ""
    """`host:port` of a Triton's gRPC that computes in our place: with it the service is a gateway."""
    upstream_model: str = "openclip_vit_b32"
    upstream_calls: int = 16
    """Calls in flight at once; so many requests its batcher has to choose from."""
    max_queue: int = 256
    """Requests taken and not yet answered, beyond those that are computed; 0: none may wait."""
    max_decode_s: float = 10.0
    """CPU seconds for decoding all images of one request."""
    max_receive_s: float = 120.0
    """For receiving a request's head, then its body; for a client that does not read its answer."""
    max_drain_s: int = 20
    """For answering what was taken before a signal to stop."""
    names: str = ""
    """Names of this machine besides localhost, between commas, for a service that only it reaches."""
    token: str = field(default="", repr=False)
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
        """Read `INFERSWARM_MODEL`, `INFERSWARM_PORT` and so on; SetUpError names one that will not do."""
        device = environ.get(PREFIX + "DEVICE", cls.device)
        if device not in ("auto", "cpu", "mps") and not device.startswith("cuda"):
            raise SetUpError(f"{PREFIX}DEVICE is {device!r}: it takes auto, cpu, mps, cuda or cuda:N.")
        return cls(
            model=environ.get(PREFIX + "MODEL", cls.model),
            pretrained=environ.get(PREFIX + "PRETRAINED", cls.pretrained),
            seed=_number(environ, "SEED", cls.seed, at_least=0),
            device=device,
            host=environ.get(PREFIX + "HOST", cls.host),
            port=_number(environ, "PORT", cls.port, at_least=1, at_most=65535),
            max_batch=_number(environ, "MAX_BATCH", cls.max_batch, at_least=1),
            max_body_bytes=_number(environ, "MAX_BODY_BYTES", cls.max_body_bytes, at_least=1),
            max_pixels=_number(environ, "MAX_PIXELS", cls.max_pixels, at_least=1),
            threads=_number(environ, "THREADS", cls.threads, at_least=0),
            upstream=_address(environ, "UPSTREAM", cls.upstream),
            upstream_model=environ.get(PREFIX + "UPSTREAM_MODEL", cls.upstream_model),
            upstream_calls=_number(environ, "UPSTREAM_CALLS", cls.upstream_calls, at_least=1),
            max_queue=_number(environ, "MAX_QUEUE", cls.max_queue, at_least=0),
            max_decode_s=_seconds(environ, "MAX_DECODE_S", cls.max_decode_s),
            max_receive_s=_seconds(environ, "MAX_RECEIVE_S", cls.max_receive_s),
            max_drain_s=_number(environ, "MAX_DRAIN_S", cls.max_drain_s, at_least=1),
            names=environ.get(PREFIX + "NAMES", cls.names),
            token=_token(environ),
            **_certificate(environ),
        )

    def to_env(self) -> dict[str, str]:
        """The environment variables from which `from_env` makes the same settings."""
        return {PREFIX + name.upper(): str(value) for name, value in vars(self).items()}


def _address(environ: Mapping[str, str], name: str, default: str) -> str:
    text = environ.get(PREFIX + name, default)
    host, _, port = text.rpartition(":")
    if text and not (host and "/" not in host and port.isdecimal() and 1 <= int(port) <= 65535):
        raise SetUpError(f"{PREFIX}{name} is {text!r}: it takes host:port of a Triton's gRPC.")
    return text


def _token(environ: Mapping[str, str]) -> str:
    text = environ.get(PREFIX + "TOKEN", "")
    # The sentence does not quote it: it is a secret, even a wrong one.
    if len(text) > MAX_TOKEN or not all("!" <= character <= "~" for character in text):
        raise SetUpError(
            f"{PREFIX}TOKEN will not do: it takes at most {MAX_TOKEN:,} characters of ASCII, "
            "without spaces and control characters."
        )
    return text


def _certificate(environ: Mapping[str, str]) -> dict[str, str]:
    """Both files of TLS, or neither."""
    found = {name.lower(): environ.get(PREFIX + name, "") for name in ("TLS_CERT", "TLS_KEY")}
    if any(found.values()) and not all(found.values()):
        missing = next(name.upper() for name, value in found.items() if not value)
        raise SetUpError(
            f"{PREFIX}{missing} is not set: TLS takes {PREFIX}TLS_CERT and {PREFIX}TLS_KEY, two PEM files."
        )
    return found


def decode_threads() -> int:
    """How many requests are decoded at a time: one for each CPU."""
    return os.cpu_count() or 1


def _number(
    environ: Mapping[str, str], name: str, default: int, at_least: int, at_most: int | None = None
) -> int:
    text = environ.get(PREFIX + name, str(default))
    bounds = f"of {at_least} or more" if at_most is None else f"from {at_least} to {at_most}"
    try:
        value = int(text)
    except ValueError:
        value = at_least - 1
    if value < at_least or (at_most is not None and value > at_most):
        raise SetUpError(f"{PREFIX}{name} is {text!r}: it takes a whole number {bounds}.")
    return value


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(PREFIX + name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise SetUpError(
            f"{PREFIX}{name} is {text!r}: it takes seconds, more than 0 and at most {MAX_SECONDS:,}."
        )
    return value
