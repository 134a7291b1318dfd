"""From an access log of nginx or Envoy to a trace: when each request came, and how many items it had."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reports.format import plural
from swarm.traces.times import NUMBERS, UNITS, read_time, unix_unit
from swarm.traces.trace import MOST_ITEMS, TraceRow
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
NO_REQUEST = "of no HTTP request"
"""Envoy writes one for a TCP connection, too, and for one whose request could not be read."""


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
        if not method:
            return NO_REQUEST
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


def find_form(lines: Iterable[str]) -> str:
    """The format of the first line that is of one; nginx's where none is."""
    for line in lines:
        if COMBINED.match(line) or WITH_MSEC.match(line):
            return NGINX
        try:
            _of_envoy("")(line)
        except UNREADABLE:
            continue
        return ENVOY
    return NGINX


def convert(lines: Iterable[str], form: str, wanted: LogFilter) -> Converted:
    """The requests of a log by the times at which they came, as far as it tells.

    Envoy tells when a request came; nginx when it was answered, in `combined` to the second.
    Raises ValueError where nothing is left.
    """
    made = Converted()
    read = _of_envoy(wanted.items) if form == ENVOY else _of_nginx
    for line in filter(str.strip, lines):
        try:
            method, path, row = read(line)
        except UNREADABLE:
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
        raise ValueError(f"has no request that is asked for ({others or 'it is empty'}); {GIVE}")
    made.coarse |= all(row.time_s % 1 == 0 for row in made.rows)
    return made


UNREADABLE = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
GIVE = (
    "give a log in nginx's format combined, in the one that --help shows, or of Envoy's JSON lines with"
    " start_time, method and path"
)


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
        moment = read_time(told["start_time"])
        unit = unix_unit(moment.value, moment.value) if moment.kind == NUMBERS else "s"
        method = _text(told["method"])
        count = int(told[items]) if items and method else 1
        if not 1 <= count <= MOST_ITEMS:
            raise ValueError
        return method, _text(told["path"]), TraceRow(moment.value / UNITS[unit], count)

    return read


def _text(value: Any) -> str:
    """What a field has; empty where Envoy has nothing to say."""
    return "" if value in (None, "-") else str(value)


def said(made: Converted) -> Iterator[str]:
    """Sentences on what was taken of a log, what was not, and how exact the times are."""
    yield f"{plural(len(made.rows), 'request')} taken"
    for why, count in sorted(made.left_out.items()):
        yield f"{plural(count, 'line')} left out: {why}"
    if made.coarse:
        yield "the log has whole seconds, so bursts within one are not the log's"
        yield f"for milliseconds give nginx {LOG_FORMAT}"
