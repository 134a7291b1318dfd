"""What a link really does, measured with packets of its own, beside what its profile says."""

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swarm.links.namespace import LinkError
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile

ECHOES, ECHO_PAUSE_S = 20, 0.02
OVERLOAD, OVERLOAD_S = 1.3, 1.0
"""Packets are offered at this multiple of the link's rate; what arrives is its rate."""
BIG_BYTES, SMALL_BYTES = 1500, 200
MOST_PROBES, FEW_PROBES, PROBES_S, MOST_PROBES_PER_S = 20_000, 2_000, 1.8, 12_000
"""Loss is measured with packets at half the link's rate, small and few enough for any forwarder."""
NEAR_SHARE, NEAR_MS, DEVIATIONS = 0.1, 1.0, 4.0
QUIET_S, CATCH_UP_S, PATIENCE_S = 0.2, 0.05, 15.0


@dataclass(frozen=True)
class Measured:
    """What a link did: a round trip's median and minimum, and on the way to the server rate and loss.

    The rate counts IP packets over a link with one, and what a single connection carried over one without.
    `lost` of `sent` packets did not arrive.
    """

    rtt_ms: float
    rtt_min_ms: float
    mbit_per_s: float
    sent: int
    lost: int

    @property
    def loss_pct(self) -> float:
        """The lost share of the packets sent to see it."""
        return 100 * self.lost / self.sent

    def __str__(self) -> str:
        lost = f"{self.lost:,} of {self.sent:,} packets lost"
        return f"round trip {self.rtt_ms:.3g} ms, {self.mbit_per_s:,.4g} Mbit/s, {lost}"

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "loss_pct": self.loss_pct}


def measure(network: Network, host: str, profile: LinkProfile) -> Measured:
    """Measure one link of an idle network, in a few seconds. Raises LinkError where packets do not arrive."""
    network.check()
    try:
        return measured_by(Meter(network, host, profile), profile)
    except (subprocess.SubprocessError, ValueError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1]
        raise LinkError(f"the link {profile.name} of host {host} cannot be measured: {said}") from error


def measured_by(meter: "Meter", profile: LinkProfile) -> Measured:
    """What a meter says of a link; its delay or rate is asked for once more where it is not the profile's.

    A busy machine is late and sends too little, but makes no link better than it is.
    """
    rtt_ms = meter.round_trips_ms()
    if statistics.median(rtt_ms) - profile.rtt_ms > near_ms(profile):
        rtt_ms = min(rtt_ms, meter.round_trips_ms(), key=statistics.median)
    rate = meter.rate()
    if rate < (1 - NEAR_SHARE) * arriving(profile):
        rate = max(rate, meter.rate())
    sent, lost = meter.loss()
    middle_ms, least_ms = round(statistics.median(rtt_ms), 3), round(min(rtt_ms), 3)
    return Measured(middle_ms, least_ms, round(rate, 3), sent, lost)


def arriving(profile: LinkProfile) -> float:
    """Mbit/s that arrive over a full link: lost packets had their turn; 0 where it has no rate."""
    return (profile.mbit_per_s or 0.0) * (1 - profile.loss_pct / 100)


def near_ms(profile: LinkProfile) -> float:
    """How far a median round trip may be from the profile's."""
    return max(NEAR_MS, NEAR_SHARE * profile.rtt_ms)


def differences(profile: LinkProfile, measured: Measured) -> list[str]:
    """One phrase for each figure that is not what the profile says, such as "round trip 18.2 ms, not 14"."""
    found = []
    if abs(measured.rtt_ms - profile.rtt_ms) > near_ms(profile):
        found.append(f"round trip {measured.rtt_ms:.3g} ms, not {profile.rtt_ms:g}")
    asked = arriving(profile)
    if asked and abs(measured.mbit_per_s - asked) > NEAR_SHARE * asked:
        found.append(f"rate {measured.mbit_per_s:.3g} Mbit/s, not {profile.mbit_per_s:g}")
    share = profile.loss_pct / 100
    # One packet more: where nothing should be lost, a single one is no proof.
    allowed = DEVIATIONS * math.sqrt(measured.sent * share * (1 - share)) + 1
    if abs(measured.lost - share * measured.sent) > allowed:
        found.append(f"loss {measured.loss_pct:.2g} %, not {profile.loss_pct:g}")
    return found


class Meter:
    """The three measurements of one link, each by a process at either end."""

    def __init__(self, network: Network, host: str, profile: LinkProfile) -> None:
        self._network, self._host, self._profile = network, host, profile
        self._address = network.address(host, profile)

    def round_trips_ms(self) -> list[float]:
        """Of small packets, 20 ms apart. Raises ValueError where none came back."""
        patience_s = self._profile.rtt_ms / 1e3 + QUIET_S
        with self._server("echo_server") as (_, port):
            words = [port, ECHOES, ECHO_PAUSE_S, patience_s]
            found: list[float] = self._client("echo", *words)["rtt_ms"]
        if not found:
            raise ValueError("no packet comes back over it")
        return found

    def rate(self) -> float:
        """Mbit/s that arrive where more is sent, or over one connection where the link has no rate."""
        if self._profile.mbit_per_s is None:
            with self._server("bulk_server") as (_, port):
                return float(self._client("bulk", port, OVERLOAD_S)["mbit_per_s"])
        per_s = OVERLOAD * self._profile.mbit_per_s * 1e6 / 8 / BIG_BYTES
        _, found = self._flood(round(per_s * OVERLOAD_S), BIG_BYTES, per_s, burst=per_s * CATCH_UP_S)
        # The first one begins the span in which the others came.
        arrived_bytes = (found["received"] - 1) * BIG_BYTES
        return float(arrived_bytes * 8 / 1e6 / found["span_s"]) if found["span_s"] else 0.0

    def loss(self) -> tuple[int, int]:
        """How many packets were sent, none of them too fast, and how many of them were lost."""
        half = (self._profile.mbit_per_s or math.inf) * 1e6 / 8 / SMALL_BYTES / 2
        per_s = min(half, MOST_PROBES_PER_S)
        most = MOST_PROBES if self._profile.loss_pct else FEW_PROBES
        # Half a queue at once at most, or a pause of the sender would end in a full one.
        burst = (self._profile.queue_bytes or self._profile.burst_bytes or math.inf) / 2 / SMALL_BYTES
        sent, found = self._flood(min(most, round(per_s * PROBES_S)), SMALL_BYTES, per_s, burst)
        return sent, sent - found["received"] - found["overflown"]

    def _flood(self, count: int, packet_bytes: int, per_s: float, burst: float) -> tuple[int, dict[str, Any]]:
        """How many packets were sent, and what the other end says."""
        with self._server("sink", self._profile.one_way_ms / 1e3 + QUIET_S) as (sink, port):
            sent = self._client("flood", port, count, packet_bytes, per_s, max(1, burst))["sent"]
            said, _ = sink.communicate(timeout=PATIENCE_S)
        return sent, json.loads(said)

    @contextmanager
    def _server(self, role: str, *words: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
        command = self._network.server_command(meter_command(role, self._address, *words))
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as server:
            try:
                assert server.stdout is not None
                yield server, json.loads(server.stdout.readline())["port"]
            finally:
                server.kill()

    def _client(self, role: str, *words: object) -> dict[str, Any]:
        command = self._network.command(self._host, meter_command(role, self._address, *words))
        # Sessions of their own: Ctrl-C reaches the measuring process, which ends them.
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=True, start_new_session=True
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def meter_command(role: str, *words: object) -> Sequence[str]:
    """The command line of one end of a measurement."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("meter.py")), role, *map(str, words)]
