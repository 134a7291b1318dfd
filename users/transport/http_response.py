"""The moments of an HTTP request on the wire, and the phases that lie between them."""

from __future__ import annotations


class Stamps:
    """The moments of one request on the wire, in `perf_counter_ns`; 0 where it has not come so far."""

    __slots__ = ("first_byte", "last_byte", "send_began", "send_ended")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Before a request."""
        self.send_began = self.send_ended = self.first_byte = self.last_byte = 0

    def phases_ns(self) -> dict[str, int]:
        """`send`: first to last byte handed to the kernel. `wait`: from there to the answer's first byte, 0
        where that came earlier. `receive`: from its first byte to its last.
        """
        return {
            "send": self.send_ended - self.send_began,
            "wait": max(0, self.first_byte - self.send_ended),
            "receive": self.last_byte - self.first_byte,
        }
