"""Keep Locust's console to what a study's reader needs: one line a cell, and the tables at the end."""

from __future__ import annotations

from locust.env import Environment

import logging

NOISE = (
    "Ramping to",
    "All users spawned",
    "Sending spawn jobs",
    "Shape ",
    "Resetting stats",
    "Your selected spawn rate",
)
SHAPES = "--run-time, --users or --spawn-rate have no impact on LoadShapes"
IGNORED = "The following option(s) will be ignored: "


def keep_run_time_out(record: logging.LogRecord) -> bool:
    """Locust warns that a shape ignores --run-time; ours does not."""
    text = record.getMessage()
    if not text.startswith((SHAPES, IGNORED)):
        return True
    left = [name for name in text.removeprefix(IGNORED).split(", ") if name != "--run-time"]
    if text.startswith(SHAPES) or not left:
        return False
    record.msg = f"{IGNORED}{', '.join(left)}: a study decides on its users by itself"
    return True


def hush_locust(environment: Environment) -> None:
    """Drop a line for every change of users, and the statistics table every two seconds, unless asked for."""
    options = environment.parsed_options
    if options is None or options.loglevel == "DEBUG":
        return
    options.only_summary = options.only_summary or not options.print_stats
    logging.getLogger("locust.runners").addFilter(lambda record: not str(record.msg).startswith(NOISE))
