"""Network namespaces and TUN devices of Linux, by iproute2 and /proc: what an emulated link is built from."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from swarm.errors import SwarmError

NAMESPACES = Path("/run/netns")
TUN = Path("/dev/net/tun")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
TCP = Path("/proc/sys/net/ipv4")
OURS = re.compile(r"inferswarm-(\d+)-\d+")
PATIENCE_S = 2.0


class LinkError(SwarmError):
    """Says why there is no emulated link, or why what was measured over it means nothing."""


def require_means(
    user: Callable[[], int] = os.geteuid,
    tun: Path = TUN,
    which: Callable[[str], str | None] = shutil.which,
) -> None:
    """Raises LinkError where this user or machine cannot emulate a link."""
    if user() != 0:
        raise LinkError("an emulated link needs root: run this as root, or measure over a real link")
    if not tun.exists():
        raise LinkError(
            f"an emulated link needs {tun}: load the kernel's module tun, or give the container it"
        )
    for command, package in (("ip", "iproute2"), ("nsenter", "util-linux")):
        if which(command) is None:
            raise LinkError(f"an emulated link needs the command `{command}`: install the package {package}")


def run(*argv: str) -> str:
    """A command's standard output. Raises LinkError with what it said where it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise LinkError(f"cannot emulate a link, `{' '.join(argv)}` failed: {said}")
    return done.stdout


def inside(namespace: str, *argv: str) -> list[str]:
    """The command that runs `argv` in a namespace, with the same process id.

    Not `ip netns exec`, which mounts a new /sys and hides the control groups that lie below it.
    """
    return ["nsenter", f"--net={NAMESPACES / namespace}", "--", *argv]


def open_tun(name: str) -> int:
    """A new TUN device, which lives for as long as its descriptor is open somewhere.

    One read or write is one IP packet. Raises FileExistsError where the name is taken.
    """
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        if Path("/sys/class/net", name).exists():
            raise FileExistsError(name) from None
        raise LinkError(f"cannot make the network device {name}: {error.strerror}") from None
    return descriptor


def kernel_drops(device: str, *place: str) -> int:
    """Packets that nobody read from the device in time; `place` is `-n NAMESPACE`, or nothing for our own."""
    found = json.loads(run("ip", *place, "-s", "-j", "link", "show", "dev", device))
    return int(found[0]["stats64"]["tx"]["dropped"])


def set_tcp(namespace: str, congestion_control: str, slow_start_after_idle: bool) -> None:
    """TCP's settings in a namespace. Raises LinkError where the kernel lacks the algorithm."""
    _set(namespace, "tcp_slow_start_after_idle", str(int(slow_start_after_idle)))
    with _allowed(congestion_control):
        _set(namespace, "tcp_congestion_control", congestion_control)


def _set(namespace: str, name: str, value: str) -> None:
    run(*inside(namespace, "sh", "-c", 'echo "$1" > "$2"', "sh", value, str(TCP / name)))


@contextmanager
def _allowed(congestion_control: str) -> Iterator[None]:
    """For this moment namespaces may choose the algorithm: the kernel asks when one is chosen, not later."""
    known = (TCP / "tcp_available_congestion_control").read_text().split()
    if congestion_control not in known:
        raise LinkError(
            f"congestion_control={congestion_control}: this kernel has {', '.join(known)};"
            f" choose one of them, or load its module (modprobe tcp_{congestion_control})"
        )
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


def remove_namespace(name: str) -> None:
    """End whatever still runs in it, then remove it."""
    clock = time.monotonic
    until = clock() + PATIENCE_S
    while (pids := run("ip", "netns", "pids", name).split()) and clock() < until:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.01)
    run("ip", "netns", "delete", name)


def remove_orphans(alive: Callable[[int], bool] = lambda pid: Path("/proc", str(pid)).exists()) -> list[str]:
    """Remove the namespaces, and what runs in them, of links whose process was killed; their names."""
    names = [entry.name for entry in NAMESPACES.iterdir()] if NAMESPACES.exists() else []
    found = [name for name in names if (match := OURS.fullmatch(name)) and not alive(int(match[1]))]
    for name in found:
        try:
            remove_namespace(name)
        except LinkError:
            # Somebody else may have been quicker.
            if (NAMESPACES / name).exists():
                raise
    return found
