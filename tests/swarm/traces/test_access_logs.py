"""Access logs as traces: lines of each format, what is left out, and logs of a real nginx."""

import random
import shutil
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from benchmarks.planting.processes import listener
from benchmarks.planting.proxies import NGINX_HEAD, found
from swarm.traces.access_logs import LOG_FORMAT, Converted, LogFilter, convert, guessed, said, spread
from swarm.traces.trace import ArrivalTrace, TraceRow
from tests.processes import free_port

COMBINED = (
    '10.0.0.1 - - [26/Nov/2026:09:00:0{} +0100] "{} /v2/models/clip/infer HTTP/1.1" 200 2187 "-" "curl/8 [x]"'
)
ENVOY = '{{"start_time": "2026-11-26T09:00:0{}Z", "method": "{}", "path": "/embed?x", "items": {}}}'
NINE = 1_795_680_000
"""2026-11-26T08:00:00Z."""


def converted(*lines: str, form: str = "", **wanted: str) -> Converted:
    return convert(lines, form or guessed(lines[0]), LogFilter(**wanted))


def test_requests_of_one_second_are_spread_over_it_evenly() -> None:
    made = converted(*(COMBINED.format(second, "POST") for second in (1, 1, 3, 1, 1)))
    assert [row.time_s - NINE for row in made.rows] == [1, 1.25, 1.5, 1.75, 3]
    assert next(iter(said(made))) == "5 requests taken"
    assert "only the second in which each request was answered" in list(said(made))[1]


def test_jitter_is_that_of_its_seed_and_keeps_the_order() -> None:
    rows = [TraceRow(5, items) for items in range(1, 101)]
    made, again, other = (list(spread(rows, seed)) for seed in (1, 1, 2))
    assert made == again != other
    times_s = [row.time_s for row in made]
    assert times_s == sorted(times_s)
    assert 5 <= times_s[0] < times_s[-1] < 6
    assert [row.items for row in made] == [row.items for row in rows]
    assert len({round(gap, 6) for gap in np.diff(times_s)}) > 90


def test_times_in_milliseconds_are_those_at_which_requests_came() -> None:
    lines = (
        '1795680000.250 0.250 "POST /embed HTTP/1.1" 200',
        '1795680000.300 0.020 "POST /embed HTTP/1.1" 499',
        '1795680000.310 0.300 "GET /health HTTP/1.1" 200',
    )
    made = converted(*lines, method="post")
    assert [round(row.time_s - NINE, 6) for row in made.rows] == [0, 0.28]
    assert list(said(made)) == ["2 requests taken", "1 line left out: of another method"]


def test_lines_of_envoy_have_milliseconds_and_may_have_items() -> None:
    lines = (
        ENVOY.format("0.310", "POST", 4),
        ENVOY.format("1.000", "GET", 1),
        ENVOY.format("2.125", "POST", '"16"'),
        ENVOY.format("3.000", "POST", 0),
        ENVOY.format("3.000", "POST", "1e999"),
        '{"start_time": "2026-11-26T09:00:04Z", "method": "POST", "path": "/other"}',
        "upstream reset",
    )
    made = converted(*lines, method="POST", path="/embed", items="items")
    assert [(round(row.time_s - NINE - 3600, 6), row.items) for row in made.rows] == [(0.31, 4), (2.125, 16)]
    assert made.left_out == {"of another method": 1, "that cannot be read": 4}
    assert not made.coarse
    every = converted(*lines, path="/embed")
    assert [row.items for row in every.rows] == [1, 1, 1, 1, 1]
    assert every.left_out == {"of another path": 1, "that cannot be read": 1}


@pytest.mark.parametrize(
    ("lines", "wanted", "sentence"),
    [
        ([], {}, r"has no request that is asked for \(it is empty\); give a log in nginx's format combined"),
        (["x", "y"], {}, r"\(2 that cannot be read\); give a log in nginx's format"),
        ([COMBINED.format(1, "GET")], {"method": "POST"}, r"\(1 of another method\)"),
        (["{}"], {}, r"\(1 that cannot be read\); give a log of JSON lines with start_time, method and path"),
    ],
)
def test_a_log_without_a_request(lines: list[str], wanted: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        convert(lines, guessed(lines[0] if lines else ""), LogFilter(**wanted))


SERVER = """
  {formats}
  access_log {folder}/access.log {name};
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }}
}}
"""
GAPS_S = (0.0, 0.03, 0.3, 0.02, 0.6, 0.02, 0.02, 0.25)


def logged(folder: Path, name: str, formats: str = "") -> tuple[list[str], list[tuple[float, float]]]:
    """The access log of a real nginx, and the wall-clock times between which it had each request."""
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(
        NGINX_HEAD.replace("access_log off;", "").format(folder=folder)
        + SERVER.format(folder=folder, formats=formats, name=name, port=port)
    )
    command = [found("nginx"), "-p", str(folder), "-c", str(config), "-e", str(folder / "nginx.log")]
    spans = []
    with listener(command, port, folder / "nginx.out"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10).close()
        for gap_s in GAPS_S:
            time.sleep(gap_s)
            asked_s = time.time()
            urllib.request.urlopen(f"http://127.0.0.1:{port}/embed", b"x", timeout=10).close()
            spans.append((asked_s, time.time()))
    return (folder / "access.log").read_text().splitlines(), spans


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("nginx", path="/usr/sbin:/usr/bin"), reason="no nginx here")
@pytest.mark.parametrize(("name", "formats"), [("combined", ""), ("trace", LOG_FORMAT)])
def test_the_log_of_a_real_nginx(tmp_path: Path, name: str, formats: str) -> None:
    lines, spans = logged(tmp_path, name, formats)
    made = convert(lines, guessed(lines[0]), LogFilter(method="POST", path="/embed"))
    assert made.left_out == {"of another method": 1}
    assert (len(made.rows), made.coarse) == (len(GAPS_S), name == "combined")
    # Its times are cut to a millisecond, and those of a request are two of them.
    off_s = 1 if made.coarse else 0.003
    for row, (asked_s, answered_s) in zip(made.rows, spans, strict=True):
        assert asked_s - off_s <= row.time_s <= answered_s + off_s
    trace = ArrivalTrace.of(random.Random(1).sample(made.rows, len(made.rows)))
    assert len(trace) == len(GAPS_S)
    assert trace.times_s[0] == 0
