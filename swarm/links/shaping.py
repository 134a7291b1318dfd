"""What an emulated link does to the packets that it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swarm.errors import UsageError


@dataclass(frozen=True)
class LinkSpec:
    """A path between clients and servers; the rate counts IP packets and holds for each direction by itself.

    `mbit_per_s` None is no limit. `loss` is the share of packets lost from client to server, `loss_back`
    from server to client. Congestion control holds for both ends, slow start after idle for the clients.
    """

    rtt_s: float = 0.0
    mbit_per_s: float | None = None
    loss: float = 0.0
    loss_back: float = 0.0
    queue_bytes: int = 1_000_000
    seed: int = 0
    mtu: int = 1500
    congestion_control: str = "cubic"
    slow_start_after_idle: bool = True

    def __post_init__(self) -> None:
        """Raises UsageError for what no path can be."""
        bounds = {
            "rtt_s": (0 <= self.rtt_s <= 60, "0 to 60 seconds"),
            "mbit_per_s": (self.mbit_per_s is None or self.mbit_per_s > 0, "above 0, or None for no limit"),
            "loss": (0 <= self.loss < 1, "a share from 0 to below 1"),
            "loss_back": (0 <= self.loss_back < 1, "a share from 0 to below 1"),
            "mtu": (576 <= self.mtu <= 65_521, "576 to 65521 bytes"),
            "queue_bytes": (self.queue_bytes >= self.mtu, f"at least one packet, {self.mtu} bytes"),
        }
        for name, (holds, wanted) in bounds.items():
            if not holds:
                raise UsageError(f"{name}={getattr(self, name)}: a link's {name} is {wanted}")

    def lanes(self) -> dict[str, dict[str, Any]]:
        """The forwarder's two directions, `up` from client to server and `down` back."""
        both = {
            "delay_ns": round(self.rtt_s * 5e8),
            "ns_per_byte": 8_000 / self.mbit_per_s if self.mbit_per_s else 0.0,
            "queue_bytes": self.queue_bytes,
        }
        return {
            "up": {**both, "loss": self.loss, "seed": f"{self.seed}-up"},
            "down": {**both, "loss": self.loss_back, "seed": f"{self.seed}-down"},
        }
