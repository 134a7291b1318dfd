"""Do the options of a study fit together?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from swarm.errors import UsageError
from swarm.options.table import NUMBERS, TEXTS, flag
from swarm.plan.rate_search import RateBound
from users.load.load_profile import seconds_of

if TYPE_CHECKING:
    from swarm.options.model import Options


def check_servers(options: Options) -> None:
    """Do the options of servers fit together? Raises UsageError."""
    for name in ("emulate", "trace"):
        if getattr(options, name) and options.urls:
            raise UsageError(f"{flag(name)}: is of embedded servers; leave the URLs out, or {flag(name)}")
    if options.urls and any(options.axes.links):
        raise UsageError(
            f"--link {options.link}: leads to embedded servers; leave the URLs out, or give --link none"
        )


def check_load(options: Options) -> None:
    """Do the options of open load fit together? Raises UsageError."""
    if options.load_profile:
        check_profile(options)
    if options.find_rate:
        RateBound.parse(options.find_rate)
        if options.repeats > 1 or len(options.rates) > 1:
            raise UsageError(
                "--find-rate: searches once, from one rate; leave --repeats or further --rates out"
            )
    elif not options.rates:
        for name in ("arrivals", "max_in_flight"):
            if getattr(options, name) != (TEXTS[name][0] if name in TEXTS else NUMBERS[name].default):
                raise UsageError(f"{flag(name)}: is of open load; give --rates or --find-rate, too")


def check_profile(options: Options) -> None:
    """Is it a load profile, and can its rates be watched? Raises UsageError."""
    try:
        seconds_of(options.load_profile)
    except ValueError as error:
        raise UsageError(f"--load-profile {options.load_profile}: {error}") from error
    if options.find_rate:
        raise UsageError("--load-profile: a search needs a rate that stays; leave it or --find-rate out")


def check_kubernetes(options: Options) -> None:
    """Do the options of the Kubernetes API fit together? Raises UsageError."""
    for name in ("kube_namespace", "kube_deployment"):
        text = getattr(options, name)
        if text != TEXTS[name][0] and not options.kube_url:
            raise UsageError(f"{flag(name)}: is of the Kubernetes API; give --kube-url, too")
        if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", text):
            raise UsageError(f"{flag(name)} {text}: give a Kubernetes name: a to z, 0 to 9, - and .")
    if options.kube_url and not options.urls:
        raise UsageError("--kube-url: watches a service of yours; give its URL, e.g. --pytorch-url, too")


def check_gate(options: Options) -> None:
    """Do the options of gates fit together? Raises UsageError."""
    for name in ("baseline", "repeat_until_decided"):
        if getattr(options, name) and not options.gate:
            raise UsageError(f"{flag(name)}: is of gates; give --gate, too")
    if options.repeat_until_decided and options.find_rate:
        raise UsageError("--repeat-until-decided: a search for a rate is not repeated; leave one of them out")
