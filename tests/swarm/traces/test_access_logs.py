"""Access logs as traces: lines of each format, what is left out, and logs of a real nginx."""

import random
import shutil
import time
import urllib.request
from pathlib import Path

import pytest

from benchmarks.planting.processes import listener
from benchmarks.planting.proxies import NGINX_HEAD, found
from swarm.traces.access_logs import ENVOY, LOG_FORMAT, NGINX, Converted, LogFilter, convert, find_form, said
from swarm.traces.trace import ArrivalTrace
from tests.processes import free_port

COMBINED = (
    '10.0.0.1 - - [26/Nov/2026:09:00:0{} +0100] "{} /v2/models/clip/infer HTTP/1.1" 200 2187 "-" "curl/8 [x]"'
)
ENVOY_LINE = '{{"start_time": "2026-11-26T09:00:0{}Z", "method": "{}", "path": "/embed?x", "items": {}}}'
NINE = 1_795_680_000
"""2026-11-26T08:00:00Z."""


def converted(*lines: str, form: str = "", **wanted: str) -> Converted:
    return convert(lines, form or find_form(lines), LogFilter(**wanted))


def test_a_log_of_whole_seconds_is_known_for_one() -> None:
    made = converted(*(COMBINED.format(second, "POST") for second in (1, 1, 3, 1, 1)))
    assert [row.time_s - NINE for row in made.rows] == [1, 1, 3, 1, 1]
    assert (made.coarse, next(iter(said(made)))) == (True, "5 requests taken")
    assert converted(*(ENVOY_LINE.format(f"{second}", "POST", 1) for second in (1, 1, 3))).coarse


TCP = '{"start_time": "2026-11-26T09:00:00.410Z", "method": null, "path": null, "response_code": 0}'
TEXT_FIRST = "2026-11-26T08:59:00.000000Z\tinfo\tEnvoy proxy is ready"


@pytest.mark.parametrize("line", [TCP, TCP.replace("null", '"-"'), TCP.replace("null", '""')])
def test_a_tcp_connection_in_a_log_of_envoy_is_no_request(line: str) -> None:
    made = converted(ENVOY_LINE.format("1.125", "POST", 4), line, items="items")
    assert (len(made.rows), made.left_out) == (1, {"of no HTTP request": 1})
    # whoever hung up before an answer had sent a request
    gone = TCP.replace('"method": null, "path": null', '"method": "POST", "path": "/embed"')
    assert len(converted(gone).rows) == 1


@pytest.mark.parametrize(
    ("form", "line"), [(ENVOY, ENVOY_LINE.format("1.125", "POST", 4)), (NGINX, COMBINED.format(1, "POST"))]
)
def test_the_form_of_a_log_is_that_of_its_first_line_that_has_one(form: str, line: str) -> None:
    lines = ["", TEXT_FIRST, "{}", "[]", "{", '{"level": "info", "start_time": 5}', line]
    assert find_form(lines) == form
    made = converted(*lines)
    assert (len(made.rows), made.left_out) == (1, {"that cannot be read": 5})


@pytest.mark.parametrize("start", ["1795680000.310", '"1795680000.310"', "1795680000310", "1795680000310000"])
def test_times_of_envoy_may_be_numbers_since_1970(start: str) -> None:
    (row,) = converted(f'{{"start_time": {start}, "method": "POST", "path": "/"}}').rows
    assert row.time_s - NINE == pytest.approx(0.31, abs=1e-6)


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
        ENVOY_LINE.format("0.310", "POST", 4),
        ENVOY_LINE.format("1.000", "GET", 1),
        ENVOY_LINE.format("2.125", "POST", '"16"'),
        ENVOY_LINE.format("3.000", "POST", 0),
        ENVOY_LINE.format("3.000", "POST", "1e999"),
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
        (["{}"], {}, r"\(1 that cannot be read\); give a log in nginx"),
    ],
)
def test_a_log_without_a_request(lines: list[str], wanted: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        convert(lines, find_form(lines), LogFilter(**wanted))


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
    made = convert(lines, find_form(lines), LogFilter(method="POST", path="/embed"))
    assert made.left_out == {"of another method": 1}
    assert (len(made.rows), made.coarse) == (len(GAPS_S), name == "combined")
    # Its times are cut to a millisecond, and those of a request are two of them.
    off_s = 1 if made.coarse else 0.003
    for row, (asked_s, answered_s) in zip(made.rows, spans, strict=True):
        assert asked_s - off_s <= row.time_s <= answered_s + off_s
    trace = ArrivalTrace.of(random.Random(1).sample(made.rows, len(made.rows)))
    assert len(trace) == len(GAPS_S)
    assert 0 <= trace.times_s[0] < 1
