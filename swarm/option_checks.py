"""Do the options of a study fit together?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.errors import UsageError
from swarm.option_table import NUMBERS, TEXTS, flag
from swarm.search import Bound

if TYPE_CHECKING:
    from swarm.options import Options


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
    if options.find_rate:
        Bound.parse(options.find_rate)
        if options.repeats > 1 or len(options.rates) > 1:
            raise UsageError(
                "--find-rate: searches once, from one rate; leave --repeats or further --rates out"
            )
    elif not options.rates:
        for name in ("arrivals", "max_in_flight"):
            if getattr(options, name) != (TEXTS[name][0] if name in TEXTS else NUMBERS[name].default):
                raise UsageError(f"{flag(name)}: is of open load; give --rates or --find-rate, too")


def check_gate(options: Options) -> None:
    """Do the options of gates fit together? Raises UsageError."""
    for name in ("baseline", "repeat_until_decided"):
        if getattr(options, name) and not options.gate:
            raise UsageError(f"{flag(name)}: is of gates; give --gate, too")
    if options.repeat_until_decided and options.find_rate:
        raise UsageError("--repeat-until-decided: a search for a rate is not repeated; leave one of them out")
