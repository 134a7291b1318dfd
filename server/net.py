"""Ports that are free, and one HTTP GET: all that starting a server needs of the network."""

import contextlib
import http.client
import ipaddress
import socket

from server.errors import SetUpError


def choose_ports(host: str, wanted: list[int]) -> list[int]:
    """The wanted ports, each replaced by a free one where it is taken; all held until all are chosen."""
    with contextlib.ExitStack() as held:
        ports = []
        for port in wanted:
            probe = _bind(host, port) or _bind(host, 0)
            if probe is None:
                raise SetUpError(
                    f"--host {host} is not an IPv4 address of this machine: give one, or 127.0.0.1."
                )
            ports.append(held.enter_context(probe).getsockname()[1])
    return ports


def reachable(host: str) -> str:
    """The address at which a server bound to `host` answers on this machine."""
    return "127.0.0.1" if host == "0.0.0.0" else host


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server bound to `host`, an IPv4 address or a name."""
    return ipaddress.ip_address(host).is_loopback if is_address(host) else host == "localhost"


def is_address(host: str) -> bool:
    """Whether it is an IP address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def get(address: str, path: str, timeout_s: float = 2.0) -> tuple[int, bytes] | None:
    """Status and body of a GET to `host:port`, past any proxy; None where nothing answers."""
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _bind(host: str, port: int) -> socket.socket | None:
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As servers do: a port whose last connections are still winding down is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((host, port))
        probe.listen()
    except OSError:
        probe.close()
        return None
    return probe
