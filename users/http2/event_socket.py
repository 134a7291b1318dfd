"""What a connection needs of its socket."""

from collections.abc import Callable
from typing import Any, Protocol

Buffers = list[bytes | memoryview]


class EventSocket(Protocol):
    """A connected socket that is asked without waiting, and tells when it is ready: transport's Socket."""

    @property
    def readable(self) -> bool:
        """Whether something has come, or its end."""

    @property
    def unsent_bytes(self) -> int:
        """That the kernel has and that are not on the wire; 0 where it does not tell."""

    def send_now(self, parts: Buffers) -> int:
        """How many bytes it took; 0 where it would wait. Raises OSError."""

    def note_start(self, size: int) -> None:
        """Note what the kernel says of a request of so many bytes, of which the first were just sent."""

    def recv_now(self, size: int) -> bytes | None:
        """What has come; nothing at its end, None where it would wait. Raises OSError."""

    def when_readable(self, call: Callable[[], Any]) -> None:
        """Call it whenever something has come, until it is closed."""

    def when_writable(self, call: Callable[[], Any] | None) -> None:
        """Call it whenever more is taken; None ends that."""

    def close(self) -> None:
        """Close it."""
