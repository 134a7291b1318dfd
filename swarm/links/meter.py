"""The two ends of a measurement of a link: `meter.py ROLE ARGUMENT…`, run where each end is.

It is started by its file's name and needs the standard library only. Servers say their port, then serve until
standard input closes; both ends say what they found as one JSON object.
"""

import fcntl
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

NUMBER = struct.Struct("!I")
IP_UDP_BYTES = 28
ROOM_BYTES = 256 * 2**20
"""A late receiver must not lose what the link delivered."""
SO_RCVBUFFORCE, SIOCGSTAMPNS = 33, 0x8907
PAUSE_S = 0.0005


def say(**found: Any) -> None:
    """One line of JSON."""
    print(json.dumps(found), flush=True)


def hurry() -> None:
    """The link's round trip is asked for, not how busy the machine's processors are."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def echo_server(address: str) -> None:
    """Sends every datagram back."""
    hurry()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind((address, 0))
        say(port=found.getsockname()[1])
        waiting: list[Any] = [found, 0]
        while 0 not in select.select(waiting, [], [])[0]:
            found.sendto(*found.recvfrom(2048))


def echo(address: str, port: str, count: str, pause_s: str, patience_s: str) -> None:
    """Says the milliseconds of so many round trips, begun `pause_s` apart, of which some may be lost."""
    hurry()
    clock = time.perf_counter
    began: list[float] = []
    spans: dict[int, float] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.connect((address, int(port)))
        start = clock()
        until = start + int(count) * float(pause_s) + float(patience_s)
        while len(spans) < int(count) and (now := clock()) < until:
            due = start + len(began) * float(pause_s)
            more = len(began) < int(count)
            if more and now >= due:
                began.append(clock())
                found.send(NUMBER.pack(len(began) - 1))
            elif select.select([found], [], [], max(0, (due if more else until) - now))[0]:
                (number,) = NUMBER.unpack(found.recv(2048))
                spans[number] = clock() - began[number]
    say(rtt_ms=[1e3 * span for span in spans.values()])


def sink(address: str, quiet_s: str) -> None:
    """Takes datagrams until standard input has closed and none came for `quiet_s`; says how many and when.

    `overflown` counts those that the link brought and this process was too slow for.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
        found.bind((address, 0))
        found.setblocking(False)
        # The first question makes the kernel stamp what comes from then on.
        arrived_s(found)
        before = overflown()
        say(port=found.getsockname()[1])
        received = 0
        arrivals: list[float] = []
        waiting: list[Any] = [found, 0]
        while ready := select.select(waiting, [], [], None if 0 in waiting else float(quiet_s))[0]:
            if 0 in ready:
                waiting.remove(0)
            else:
                received += drain(found, arrivals)
        span_s = arrivals[-1] - arrivals[0] if arrivals else 0.0
        say(received=received, overflown=overflown() - before, span_s=span_s)


def drain(found: socket.socket, arrivals: list[float]) -> int:
    """How many datagrams waited; of all arrivals the first and the last are kept."""
    count, buffer = 0, bytearray(2048)
    with suppress(BlockingIOError):
        while found.recv_into(buffer):
            count += 1
            if not arrivals:
                arrivals.append(arrived_s(found))
    if count:
        arrivals[1:] = [arrived_s(found)]
    return count


def arrived_s(found: socket.socket) -> float:
    """When the datagram that was last read came to this machine, or now where the kernel did not stamp it."""
    try:
        seconds, nanoseconds = struct.unpack("ll", fcntl.ioctl(found, SIOCGSTAMPNS, bytes(16)))
    except OSError:
        return time.time()
    return float(seconds + nanoseconds / 1e9)


def overflown() -> int:
    """Datagrams that found no room in a socket, in this network namespace since it is."""
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Udp:"))
    return int(values[names.index("InErrors")])


def flood(address: str, port: str, count: str, packet_bytes: str, per_s: str, burst: str) -> None:
    """Sends so many packets at so many a second, or fewer where half as long again has passed.

    After a pause, as a busy machine makes them, a burst at most goes out at once.
    """
    clock = time.perf_counter
    payload = bytes(int(packet_bytes) - IP_UDP_BYTES)
    sent, credit, last = 0, 1.0, clock()
    until = last + 1.5 * int(count) / float(per_s)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.connect((address, int(port)))
        while sent < int(count) and last < until:
            now = clock()
            credit, last = min(float(burst), credit + (now - last) * float(per_s)), now
            for _ in range(min(int(credit), int(count) - sent)):
                found.send(payload)
                sent += 1
                credit -= 1
            time.sleep(PAUSE_S)
    say(sent=sent)


def bulk_server(address: str) -> None:
    """Takes what one connection brings."""
    with socket.create_server((address, 0)) as listener:
        say(port=listener.getsockname()[1])
        found, _ = listener.accept()
        with found:
            received = sum(iter(lambda: len(found.recv(2**18)), 0))
            found.sendall(NUMBER.pack(received >> 10))


def bulk(address: str, port: str, span_s: str) -> None:
    """Sends for so long over one connection; says what arrived by when it was there."""
    piece, clock = bytes(2**18), time.perf_counter
    with socket.create_connection((address, int(port))) as found:
        began = clock()
        while clock() - began < float(span_s):
            found.sendall(piece)
        found.shutdown(socket.SHUT_WR)
        (kilobytes,) = NUMBER.unpack(found.recv(NUMBER.size))
        say(mbit_per_s=kilobytes * 1024 * 8 / 1e6 / (clock() - began))


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role for role in (echo_server, echo, sink, flood, bulk_server, bulk)
}


if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
