"""Keep Locust's console to what a study's reader needs: one line a cell, and the tables at the end."""

from __future__ import annotations

from locust.env import Environment

import logging

NOISE = ("Ramping to", "All users spawned", "Sending spawn jobs", "Shape ", "Resetting stats")


def hush_locust(environment: Environment) -> None:
    """Drop a line for every change of users, and the statistics table every two seconds, unless asked for."""
    options = environment.parsed_options
    if options is None or options.loglevel == "DEBUG":
        return
    options.only_summary = options.only_summary or not options.print_stats
    logging.getLogger("locust.runners").addFilter(lambda record: not str(record.msg).startswith(NOISE))
