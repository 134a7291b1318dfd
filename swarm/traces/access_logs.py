"""From an access log of nginx or Envoy to a trace: when each request came, and how many items it had."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reports.format import plural
from swarm.traces.trace import MOST_ITEMS, TraceRow, seconds_of
from users.load.replay import MOST_ROWS

NGINX, ENVOY = "nginx", "envoy"
FORMATS = (NGINX, ENVOY)
LOG_FORMAT = """log_format trace '$msec $request_time "$request" $status';"""
"""What nginx is to be told for times to the millisecond."""
_REQUEST = r'"(?P<method>[A-Z]+) (?P<path>\S+)[^"]*" [0-9]{3}'
COMBINED = re.compile(r"\S+ \S+ .*?\[(?P<stamp>[^\]]+)\] " + _REQUEST)
"""Source: nginx's documentation of ngx_http_log_module, the predefined format `combined`."""
WITH_MSEC = re.compile(r"(?P<msec>[0-9]+\.[0-9]{3}) (?P<took>[0-9]+\.[0-9]{3}) " + _REQUEST)
STAMP = "%d/%b/%Y:%H:%M:%S %z"
OTHER_METHOD, OTHER_PATH, UNREAD = "of another method", "of another path", "that cannot be read"


@dataclass(frozen=True)
class LogFilter:
    """Which requests of a log are taken: of a method, with a path that begins so; empty for any.

    `items` is the field of Envoy's lines that says how many items a request has; each has one without it.
    """

    method: str = ""
    path: str = ""
    items: str = ""

    def left_out(self, method: str, path: str) -> str:
        """Why a request is not taken; empty where it is."""
        if self.method and method.upper() != self.method.upper():
            return OTHER_METHOD
        return "" if path.startswith(self.path) else OTHER_PATH


@dataclass
class Converted:
    """The requests of a log, how many of its lines were left out and why; `coarse` if by the second alone."""

    rows: list[TraceRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    coarse: bool = False


Read = Callable[[str], tuple[str, str, TraceRow]]
"""Method, path and request of a line. Raises one of many errors where it cannot be read."""


def guessed(line: str) -> str:
    """The format of a log that begins with this line."""
    return ENVOY if line.lstrip().startswith("{") else NGINX


def convert(lines: Iterable[str], form: str, wanted: LogFilter, jitter_seed: int | None = None) -> Converted:
    """The requests of a log by the times at which they came, as far as it tells.

    Envoy tells when a request came; nginx when it was answered, in `combined` to the second. Requests of one
    second are then spread over it: evenly, or at random from a seed. Raises ValueError where nothing is left.
    """
    made = Converted()
    read = _of_envoy(wanted.items) if form == ENVOY else _of_nginx
    for line in filter(str.strip, lines):
        try:
            method, path, row = read(line)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            made.left_out[UNREAD] += 1
            continue
        if why := wanted.left_out(method, path):
            made.left_out[why] += 1
            continue
        made.rows.append(row)
        made.coarse |= form == NGINX and not WITH_MSEC.match(line)
        if len(made.rows) > MOST_ROWS:
            raise ValueError(f"has more than {MOST_ROWS:,} requests; select fewer by --path, or cut the log")
    if not made.rows:
        others = ", ".join(f"{count:,} {why}" for why, count in made.left_out.items())
        raise ValueError(f"has no request that is asked for ({others or 'it is empty'}); {GIVE[form]}")
    if made.coarse:
        made.rows = list(spread(made.rows, jitter_seed))
    return made


GIVE = {
    NGINX: "give a log in nginx's format combined, or in the one that --help shows",
    ENVOY: "give a log of JSON lines with start_time, method and path",
}


def spread(rows: Iterable[TraceRow], seed: int | None = None) -> Iterator[TraceRow]:
    """Those of one second evenly over it, or each at random in it, in their order."""
    seconds: dict[float, list[TraceRow]] = {}
    for row in rows:
        seconds.setdefault(row.time_s, []).append(row)
    for second_s, together in sorted(seconds.items()):
        generator = random.Random(f"{seed}/{second_s:.0f}")
        parts = sorted(
            generator.random() if seed is not None else place / len(together)
            for place in range(len(together))
        )
        yield from (row._replace(time_s=second_s + part) for row, part in zip(together, parts, strict=True))


def _of_nginx(line: str) -> tuple[str, str, TraceRow]:
    if exact := WITH_MSEC.match(line):
        return exact["method"], exact["path"], TraceRow(round(float(exact["msec"]) - float(exact["took"]), 3))
    found = COMBINED.match(line)
    if found is None:
        raise ValueError
    return found["method"], found["path"], TraceRow(datetime.strptime(found["stamp"], STAMP).timestamp())


def _of_envoy(items: str) -> Read:
    def read(line: str) -> tuple[str, str, TraceRow]:
        told: Mapping[str, Any] = json.loads(line)
        time_s, _ = seconds_of(told["start_time"])
        count = int(told[items]) if items else 1
        if not 1 <= count <= MOST_ITEMS:
            raise ValueError
        return str(told["method"]), str(told["path"]), TraceRow(time_s, count)

    return read


def said(made: Converted, jitter_seed: int | None = None) -> Iterator[str]:
    """Sentences on what was taken of a log, what was not, and how exact the times are."""
    yield f"{plural(len(made.rows), 'request')} taken"
    for why, count in sorted(made.left_out.items()):
        yield f"{plural(count, 'line')} left out: {why}"
    if made.coarse:
        how = "evenly over it" if jitter_seed is None else f"at random over it, by seed {jitter_seed}"
        yield (
            "the log has only the second in which each request was answered: requests of one second were"
            f" spread {how}, so bursts within it are not the log's; for milliseconds use {LOG_FORMAT}"
        )
