"""Who may connect to this process: this machine unless told otherwise, with a warning where others may."""

from locust.argument_parser import LocustArgumentParser

import argparse
import ipaddress
import socket
from collections.abc import Iterator

from users.endpoint import is_loopback

LOOPBACK = "127.0.0.1"
BOUND = {
    "web_host": f"Host to bind the web interface to. Defaults to {LOOPBACK}; '*' is all interfaces",
    "master_bind_host": f"IP address for the master to listen on. Defaults to {LOOPBACK}, which workers on"
    " other machines do not reach; '*' is all interfaces",
}
"""Locust's own options that we bind to loopback, with what their help says then."""


def bind_loopback(parser: LocustArgumentParser) -> None:
    """Locust binds every interface by default; options, LOCUST_… variables and its files still win."""
    parser.set_defaults(**dict.fromkeys(BOUND, LOOPBACK))
    for action in parser._actions:
        action.help = BOUND.get(action.dest, action.help)


def open_listeners(options: argparse.Namespace) -> Iterator[str]:
    """A sentence for each way in from other machines that asks for no password; `options` are Locust's."""
    if not options.headless and not options.web_login and not only_here(options.web_host):
        yield (
            f"--web-host {shown(options.web_host)}: anyone who reaches port {options.web_port} can start"
            " and stop studies, change their load and read their results, without a login; leave the"
            f" option out and use a tunnel (ssh -L {options.web_port}:127.0.0.1:{options.web_port} HOST),"
            " or give --web-login"
        )
    if options.master and not only_here(options.master_bind_host):
        yield (
            f"--master-bind-host {shown(options.master_bind_host)}: anyone who reaches port"
            f" {options.master_bind_port} can join as a worker, read the study's options and send false"
            " results: Locust's link has neither login nor encryption; use `inferswarm run` with ssh"
            " hosts, an ssh tunnel, or a network that only you use"
        )
    if options.prometheus_port not in ("", "0") and not only_here(options.prometheus_host):
        yield (
            f"--prometheus-host {shown(options.prometheus_host)}: anyone who reaches port"
            f" {options.prometheus_port} can read the study's figures, without a login; leave the option out"
            " and scrape through a tunnel, or restrict the port with a firewall"
        )


def only_here(host: str) -> bool:
    """Whether what is bound to `host` is reached from this machine alone; a name counts as all its addresses.

    >>> only_here("127.0.0.1"), only_here("::1"), only_here("*"), only_here(""), only_here("10.0.0.7")
    (True, True, False, False, False)
    """
    if host in ("", "*"):
        return False
    try:
        found = {host} if is_address(host) else {str(it[4][0]) for it in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        # Nothing can listen there, and binding it fails with an error.
        return True
    return all(map(is_loopback, found))


def is_address(host: str) -> bool:
    """Whether it is an IP address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def shown(host: str) -> str:
    """As it is typed in a shell."""
    return host if host not in ("", "*") else f"'{host}'"


def for_other_machines(options: argparse.Namespace) -> str:
    """What a master that only this machine's workers reach says at its start, or nothing."""
    if not options.master or options.processes or not only_here(options.master_bind_host):
        return ""
    return (
        f"the master listens on {options.master_bind_host}:{options.master_bind_port}, for workers of this"
        " machine and of ssh tunnels; --master-bind-host ADDRESS lets other machines in"
    )
