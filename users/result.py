"""One call, one Result: the only record of a request, success or not."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from users.errors import RequestError

NONE: Mapping[str, int] = MappingProxyType({})
MEASURE = "measure"
"""The phase whose requests count; those of others stand apart in Locust's statistics."""


def row_of(cell: str, phase: str) -> str:
    """The row of a cell in Locust's statistics.

    >>> row_of("onnx-grpc/b1/c1", "measure"), row_of("onnx-grpc/b1/c1", "warm-up")
    ('onnx-grpc/b1/c1', 'onnx-grpc/b1/c1 (warm-up)')
    """
    return cell if phase == MEASURE else f"{cell} ({phase})"


def is_measured(row: str) -> bool:
    """Whether a row of Locust's statistics has requests that count, and not those of a warm-up."""
    return not row.endswith((" (warm-up)", " (drain)"))


class Result(NamedTuple):
    """What one request was, when it ran and how it ended.

    `cell`, `repeat`, `phase`: the run it belongs to, by the phase it *started* in. `user`: which of this
    process's users sent it. `intended_ns`, `start_ns`, `end_ns`: `perf_counter_ns` when it should have
    started, did start, and finished. `phases_ns`: the parts of service time that the client can tell
    apart, by the names of `users.transport.base.Reply`.
    `server_ns`: the parts the server stated. `error`: None on success; `abandoned` marks a request killed at
    a stop, which is neither success nor failure. `request_id`: under which the server traced it, empty where
    it was sent without one. `request_class`: the label of its class, empty where a cell's requests are alike.
    `think_ns`: how long its user then thinks, before it may send the next one. `trace_id`: of the traceparent
    that it carried, empty where it carried none. `from_cache`: whether a cache answered, None where untold.
    """

    cell: str
    repeat: int
    phase: str
    user: int
    images: int
    intended_ns: int
    start_ns: int
    end_ns: int
    request_bytes: int
    response_bytes: int = 0
    error: RequestError | None = None
    abandoned: bool = False
    phases_ns: Mapping[str, int] = NONE
    server_ns: Mapping[str, int] = NONE
    request_id: str = ""
    request_class: str = ""
    think_ns: int = 0
    trace_id: str = ""
    from_cache: bool | None = None

    @property
    def latency_ns(self) -> int:
        """From the intended start to the end."""
        return self.end_ns - self.intended_ns

    @property
    def service_ns(self) -> int:
        """From the actual start to the end."""
        return self.end_ns - self.start_ns

    @property
    def send_delay_ns(self) -> int:
        """How late it started."""
        return self.start_ns - self.intended_ns

    @property
    def ok(self) -> bool:
        """Finished, and with the right answer."""
        return self.error is None and not self.abandoned
