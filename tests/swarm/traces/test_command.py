"""`inferswarm trace`: what it prints and writes, and what it refuses in one sentence."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from swarm import __main__ as swarm
from swarm.traces.trace import read_trace
from tests.bad_input import is_clear, said_by

MMPP = "make mmpp --rate 20 --high-rate 200 --low-seconds 10 --high-seconds 2 --seconds 120 --seed 3"
LOG = """\
{"start_time": "2026-11-26T09:00:00.500Z", "method": "POST", "path": "/embed"}
{"start_time": "2026-11-26T09:00:00.000Z", "method": "POST", "path": "/embed"}
{"start_time": "2026-11-26T09:00:02.000Z", "method": "GET", "path": "/health"}
"""
SHOWN = """\
a.csv
  rows        5,871
  seconds     120.0
  mean rate   48.9 requests/s
  peak        218 requests in a second
  times       in s, counted from the first row at 0.001639 s
  dispersion  75.0: variance over mean of the seconds' counts, 1 for Poisson
  items       1 (69.9%), 4 (20.1%), 16 (10.1%)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "clean_up", lambda: None)
    monkeypatch.chdir(tmp_path)


def run(line: str) -> tuple[int, str, str]:
    return said_by(swarm.main, ["trace", *line.split()])


def test_a_trace_is_made_shown_and_the_same_again() -> None:
    for name in ("a.csv", "b.csv"):
        code, out, _ = run(f"{MMPP} --batch-mix 1:0.7,4:0.2,16:0.1 -o {name}")
        assert (code, out) == (0, f"5,871 requests in 120.0 s: {name}\n")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert run("show a.csv")[1] == SHOWN


@pytest.mark.parametrize("process", ["poisson --rate 40", "diurnal --rate 40 --swing 0.5"])
def test_other_processes(process: str) -> None:
    assert run(f"make {process} --seconds 50 -o a.jsonl")[0] == 0
    assert read_trace("a.jsonl").mean_per_s == pytest.approx(40, rel=0.1)


def test_a_log_is_converted_and_what_was_left_out_is_said() -> None:
    Path("access.log").write_text(LOG)
    code, out, _ = run("convert access.log --method POST -o a.csv")
    assert code == 0
    assert out == ("2 requests taken\n1 line left out: of another method\n2 requests in 1.0 s: a.csv\n")
    assert Path("a.csv").read_text() == "time,items\n0.0,1\n0.5,1\n"


def test_times_that_do_not_tell_are_asked_for_and_a_log_may_be_compressed() -> None:
    Path("a.csv").write_text("timestamp\n0\n0\n900\n4000\n")
    code, _, err = run("show a.csv")
    assert code == 2
    assert "give --replay-unit" in err
    code, out, _ = run("show a.csv --replay-unit ms --replay-resolution 0")
    assert (code, "in ms, counted from the first row at 0 s" in out) == (0, True)
    Path("access.log").write_bytes(gzip.compress(LOG.encode()))
    code, _, err = run("convert access.log -o b.csv")
    assert (code, "is compressed" in err, Path("b.csv").exists()) == (2, True, False)


def test_requests_of_one_second_stay_in_their_order() -> None:
    line = '{{"start_time": "2026-11-26T09:00:0{}Z", "method": "POST", "path": "/", "items": {}}}'
    logged = [(second, items) for second in (2, 0, 1) for items in (16, 1, 4, 1)]
    Path("access.log").write_text("\n".join(line.format(*one) for one in logged))
    assert run("convert access.log --items items -o a.csv")[0] == 0
    assert read_trace("a.csv").items.tolist() == [16, 1, 4, 1] * 3


@pytest.mark.parametrize("seed", ["", " --jitter 7"])
def test_a_log_of_whole_seconds_is_spread_as_a_trace_of_them_is(seed: str) -> None:
    line = '10.0.0.1 - - [26/Nov/2026:09:00:{:02} +0100] "POST /embed HTTP/1.1" 200 2187 "-" "curl/8"\n'
    seconds = [second for second in range(12) for _ in range(20)]
    Path("access.log").write_text("\ufeff" + "\r\n".join(map(line.format, seconds)))
    code, out, _ = run(f"convert access.log -o a.csv{seed}")
    assert (code, out.splitlines()[0]) == (0, "240 requests taken")
    Path("b.csv").write_text("\n".join(["time", *map(str, seconds)]))
    converted, whole = (read_trace(name).times_s for name in ("a.csv", "b.csv"))
    same = np.allclose(converted - converted[0], whole - whole[0], atol=2e-6)
    assert same is (not seed)
    assert len(np.unique(converted)) == 240


def test_endpoints_pictures_and_notes_are_shown() -> None:
    Path("a.csv").write_text("time,endpoint,picture,status\n1,onnx-http,3,200\n0,,,500\n")
    out = run("show a.csv")[1]
    assert "  endpoints   none named (50.0%), onnx-http (50.0%)\n" in out
    assert "  pictures    2 different\n" in out
    assert "  note        columns that a trace does not have are left out: status\n" in out
    assert "  note        1 row came before the one above: all were sorted by time\n" in out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("make poisson --rate 0 --seconds 1 -o a.csv", "argument --rate: '0': give a number above 0, up"),
        ("make poisson --rate nan --seconds 1 -o a.csv", "argument --rate: 'nan': give a number above 0"),
        ("make poisson --rate 5 --seconds 1 --seed -1 -o a.csv", "--seed: '-1': give a whole number from 0"),
        ("make diurnal --rate 5 --seconds 9 --swing 2 -o a.csv", "--swing: '2': give a share from 0 to 1"),
        ("make poisson --rate 9000 --seconds 9000 -o a.csv", "make: about 81,000,000 requests would come"),
        ("make poisson --rate 9 --seconds 9 --batch-mix 1:2 -o a.csv", "give the shares of all requests"),
        ("make poisson --rate 9 --seconds 9 -o a.txt", "-o a.txt: give a file that ends in .csv or .jsonl"),
        ("make poisson --rate 9 --seconds 9 -o here.csv", "-o here.csv: already exists; name another file"),
        ("make poisson --rate 9 --seconds 9 -o no/a.csv", "-o no/a.csv: cannot be written (No such file"),
        ("convert none.log -o a.csv", "none.log: cannot be read (No such file or directory); name an"),
        ("convert . -o a.csv", ".: cannot be read (Is a directory); name an access log"),
        ("convert here.csv -o a.csv", "here.csv: has no request that is asked for (1 that cannot be read)"),
        ("show none.csv", "none.csv: cannot be read (No such file or directory); name a trace"),
        ("show here.csv", "here.csv: has no requests; give at least one row"),
    ],
)  # fmt: skip
def test_what_is_refused(line: str, sentence: str) -> None:
    Path("here.csv").write_text("time\n")
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert sentence in err
    assert is_clear(err.splitlines()[-1])
    assert [path.name for path in Path().iterdir()] == ["here.csv"]
