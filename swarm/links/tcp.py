"""TCP's congestion control: what the kernel has of it, and a namespace's own."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swarm.links.namespace import NAMESPACES, LinkError, inside, run

TCP = Path("/proc/sys/net/ipv4")
OFFERED = ("cubic", "bbr")
"""What every link offers beside its own, where the kernel has it."""


def kernel_has(congestion_control: str) -> bool:
    """Whether the kernel has the algorithm; its module is loaded where we may."""
    with socket.socket() as tried:
        try:
            tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        except FileNotFoundError:
            return False
        except PermissionError:
            pass
    return True


def require_congestion_control(name: str) -> None:
    """Raises LinkError, naming those there are, where the kernel lacks the algorithm."""
    if not kernel_has(name):
        known = (TCP / "tcp_available_congestion_control").read_text().split()
        raise LinkError(
            f"congestion_control={name}: this kernel has {', '.join(known)};"
            f" choose one of them, or load its module (modprobe tcp_{name})"
        )


def controls(own: str) -> list[str]:
    """The algorithms that a link offers, its own first. Raises LinkError where the kernel lacks that."""
    require_congestion_control(own)
    return [own, *(name for name in OFFERED if name != own and kernel_has(name))]


def set_tcp(namespace: str, congestion_control: str, slow_start_after_idle: bool) -> None:
    """TCP's settings in a namespace. Raises LinkError where the kernel lacks the algorithm."""
    require_congestion_control(congestion_control)
    _set(namespace, "tcp_slow_start_after_idle", str(int(slow_start_after_idle)))
    with _allowed(congestion_control):
        _set(namespace, "tcp_congestion_control", congestion_control)


def _set(namespace: str, name: str, value: str) -> None:
    run(*inside(namespace, "sh", "-c", 'echo "$1" > "$2"', "sh", value, str(TCP / name)))


@contextmanager
def _allowed(congestion_control: str) -> Iterator[None]:
    """For this moment namespaces may choose the algorithm: the kernel asks when one is chosen, not later."""
    listed = TCP / "tcp_allowed_congestion_control"
    with _locked(NAMESPACES):
        before = listed.read_text()
        if congestion_control in before.split():
            yield
            return
        listed.write_text(f"{before.strip()} {congestion_control}\n")
        try:
            yield
        finally:
            listed.write_text(before)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
