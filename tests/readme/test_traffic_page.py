"""docs/traffic.md: its commands: a trace is made and shown; a real nginx's log is converted and replayed."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

from pathlib import Path

import pytest

from swarm import __main__ as program
from swarm.traces.access_logs import LOG_FORMAT
from tests.bad_input import said_by
from tests.locustfiles.console import ONCE, ROOT, Console, few_pictures
from tests.readme.commands import command
from tests.swarm.traces.test_access_logs import logged


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(program, "clean_up", lambda: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*parts: str) -> str:
    code, out, err = said_by(program.main, command(*parts)[1:])
    assert (code, err) == (0, "")
    return out


def test_traces_are_made_shown_and_converted(folder: Path) -> None:
    assert "requests in 300.0 s: burst.csv" in run("trace make mmpp")
    assert "mean rate   43.9 requests/s" in run("trace show")
    assert run_convert(folder)[:2] == ["8 requests taken", "1 line left out: of another method"]


def run_convert(folder: Path) -> list[str]:
    """What is said of the log of a real nginx in the page's own format."""
    assert LOG_FORMAT in (ROOT / "docs/traffic.md").read_text(encoding="utf-8")
    lines, _ = logged(folder, "trace", LOG_FORMAT)
    (folder / "access.log").write_text("\n".join(lines).replace("/embed", "/v2/models/clip/infer"))
    return run("trace convert").splitlines()


@pytest.mark.slow
@pytest.mark.system
def test_the_log_of_a_real_nginx_is_replayed_by_two_workers(folder: Path) -> None:
    run_convert(folder)
    (results := folder / "results").mkdir()
    words = command("--replay burst.csv")
    del words[words.index("--onnx-http-url") :]
    more = ["--replay", str(folder / "log.csv"), "--emulate", "5+1", "--endpoints", "emulated-http"]
    more += ["--processes", "2"]
    short = ["--results-dir", str(results), *ONCE, "--warm-up", "1", *few_pictures()]
    with Console([*words, *more, *short], results) as console:
        assert console.wait(120) in (0, 3), console.text
        (row,) = console.cells()
    assert (row["requests"], row["failures"], row["workers"], row["replay"]) == ("8", "0", "2", "log")
    assert row["cell"].startswith("emulated-http/b1/r")
    said = " ".join(console.text.split())
    assert "trace log: nothing lost of 8 requests, send delay" in said
