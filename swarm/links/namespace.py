"""Network namespaces by iproute2 and /proc: made, entered, removed with all in them; congestion control."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from swarm.errors import SwarmError
from swarm.owner import identity, is_gone

NAMESPACES = Path("/run/netns")
TUN = Path("/dev/net/tun")
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}
PATIENCE_S = 2.0
COMMAND_S = 60.0
"""Timeout of one command; they take milliseconds."""
DEFERRED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
TCP = Path("/proc/sys/net/ipv4")
OFFERED = ("cubic", "bbr")
"""Congestion controls that every link offers besides its own, if the kernel has them."""


class LinkError(SwarmError):
    """Says why there is no emulated link, or why what was measured over it means nothing."""


def require_means(
    user: Callable[[], int] = os.geteuid,
    tun: Path | None = TUN,
    which: Callable[[str], str | None] = shutil.which,
) -> None:
    """Raises LinkError where this user or machine cannot emulate a link; `tun` None: without that device."""
    if user() != 0:
        raise LinkError(
            "namespaces for client hosts and emulated links need root: run as root, or use hosts of kind"
            " process or ssh without --link"
        )
    if tun is not None and not tun.exists():
        raise LinkError(
            f"an emulated link needs {tun}: load the kernel's module tun, or pass it to the container"
        )
    for command in ("ip", "nsenter"):
        if which(command) is None:
            raise _lacking(command)


def _lacking(command: str) -> LinkError:
    package = PACKAGES[command]
    return LinkError(f"an emulated link needs the command `{command}`: install the package {package}")


def run(*argv: str) -> str:
    """A command's standard output. Raises LinkError with what it said where it fails."""
    # A session of its own: Ctrl-C in the terminal must not stop it half-way.
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            timeout=COMMAND_S,
        )
    except FileNotFoundError:
        raise _lacking(argv[0]) from None
    except subprocess.TimeoutExpired:
        said = f"did not end within {COMMAND_S:g} s"
        raise LinkError(f"cannot emulate a link, `{' '.join(argv)}` {said}") from None
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise LinkError(f"cannot emulate a link, `{' '.join(argv)}` failed: {said}")
    return done.stdout


def ip(namespace: str, *words: str) -> str:
    """What `ip` says in a namespace, or in our own where the name is empty."""
    return run("ip", *(["-n", namespace] if namespace else []), *words)


def inside(namespace: str, *argv: str) -> list[str]:
    """The command that runs `argv` in a namespace, with the same process id.

    Not `ip netns exec`, which mounts a new /sys and hides the control groups that lie below it.
    """
    return ["nsenter", f"--net={NAMESPACES / namespace}", "--", *argv]


def add_namespace(suffix: str, undo: ExitStack) -> str:
    """Make a namespace with its loopback up; its name. It goes, and what runs in it, when `undo` unwinds."""
    name = f"inferswarm-{identity()}-{suffix}"
    # First, so that nothing that comes between leaves one behind.
    undo.callback(remove_namespace, name)
    run("ip", "netns", "add", name)
    ip(name, "link", "set", "dev", "lo", "up")
    return name


def remove_namespace(name: str) -> None:
    """End whatever still runs in it, then remove it and its pairs' other ends; nothing where it is gone."""
    try:
        _kill_all(name)
        _remove_pairs(name)
        run("ip", "netns", "delete", name)
    except LinkError:
        # Somebody else may have been quicker.
        if (NAMESPACES / name).exists():
            raise


def _remove_pairs(name: str) -> None:
    """Remove its devices' other ends, too: the namespace would take them along, but a moment later."""
    with suppress(LinkError):
        for link in json.loads(ip(name, "-j", "link", "show", "type", "veth")):
            ip(name, "link", "delete", "dev", link["ifname"])


def _kill_all(name: str) -> None:
    if not (NAMESPACES / name).exists():
        return
    clock = time.monotonic
    until = clock() + PATIENCE_S
    while (pids := run("ip", "netns", "pids", name).split()) and clock() < until:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.01)


def remove_orphans(user: Callable[[], int] = os.geteuid) -> list[str]:
    """Remove the namespaces, and what is and runs in them, of makers that were killed; the namespaces' names.

    Each of our devices is in one, or is one end of a pair whose other end is. Without root nothing is done.
    """
    if user() != 0:
        return []
    found = sorted(entry.name for entry in NAMESPACES.glob("inferswarm-*") if is_gone(entry.name))
    for name in found:
        remove_namespace(name)
    return found


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end us wait: half of a removal would leave the other half."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEFERRED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


def set_congestion_control(namespace: str, congestion_control: str) -> None:
    """TCP's own in a namespace. Raises LinkError where the kernel lacks the algorithm."""
    require_congestion_control(congestion_control)
    with _allowed(congestion_control):
        write = f'echo "$1" > {TCP}/tcp_congestion_control'
        run(*inside(namespace, "sh", "-c", write, "sh", congestion_control))


@contextmanager
def _allowed(congestion_control: str) -> Iterator[None]:
    """For this moment namespaces may choose the algorithm: the kernel asks when one is chosen, not later.

    Raises LinkError where the list of those that may be chosen cannot be changed.
    """
    listed = TCP / "tcp_allowed_congestion_control"
    with _locked(NAMESPACES):
        before = listed.read_text()
        if congestion_control in before.split():
            yield
            return
        try:
            listed.write_text(f"{before.strip()} {congestion_control}\n")
        except OSError as error:
            # It is one list for all: only from the first namespace can it be written.
            raise LinkError(
                f"namespaces here may not use {congestion_control}, and {listed} cannot be written "
                f"({error.strerror}): add it there as root, outside any network namespace"
            ) from error
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
