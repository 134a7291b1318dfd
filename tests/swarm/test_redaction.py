"""What is printed, logged, kept and shown by a process that has a token."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask, Response

from swarm.redaction import RedactedLedger, copy_escaped, guard_output, redact_exceptions
from swarm.web.page import open_page
from tests.swarm.web_stand import web_ui
from users.redact import spellings

ROOT = Path(__file__).parents[2]
TOKEN, HIDDEN = "a-token-of-some-length", "[INFERSWARM_TOKEN]"
SAYS = """
import logging, sys, traceback
from swarm.redaction import guard_output
guard_output(); guard_output()
logging.basicConfig(stream=sys.stdout)
token = "a-token-of-some-length"
print("printed", token); print("to stderr", token, file=sys.stderr)
logging.warning("logged %s", token)
try:
    raise ValueError(token)
except ValueError:
    logging.exception("caught"); traceback.print_exc()
sys.stdout.writelines(["line ", token])
raise RuntimeError(token)
"""


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("INFERSWARM_TOKEN", TOKEN)
    spellings.cache_clear()
    yield
    spellings.cache_clear()


@pytest.mark.system
def test_nothing_that_a_process_says_has_it(token: None) -> None:
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, text=True, check=False)
    assert TOKEN not in done.stdout + done.stderr
    shown = ("printed", "WARNING:root:logged", "ValueError:", "line")
    assert all(f"{words} {HIDDEN}" in done.stdout for words in shown), done.stdout
    for words in ("to stderr", "ValueError:", "RuntimeError:"):
        assert f"{words} {HIDDEN}" in done.stderr


LOGS = """
import logging, sys, traceback
import locust.log
from swarm.redaction import guard_output
guard_output(); guard_output()
locust.log.setup_logging("INFO", *sys.argv[1:])
words = "\\x1b]0;t\\x07\\x9b2J\\x7f\\x00\\r\\u202e\\u2066\\ud800"
logging.warning("as an argument %s %d", words, 7)
logging.getLogger("locust.runners").warning(f"in a message {words}\\nanother line, größer")
logging.getLogger("a.library").error("with a stack", stack_info=True)
try:
    raise ValueError(words)
except ValueError:
    logging.getLogger("locust.user").exception("caught"); traceback.print_exc()
print(logging.getLogger("root").handlers[-1].logs, file=sys.stderr)
raise RuntimeError(words)
"""
SHOWN = r"\x1b]0;t\x07\x9b2J\x7f\x00 \u202e\u2066\ud800"


@pytest.mark.system
@pytest.mark.parametrize("to_file", [False, True])
def test_nothing_that_is_logged_tells_a_terminal_anything(tmp_path: Path, to_file: bool) -> None:
    file = tmp_path / "locust.log"
    argv = [sys.executable, "-c", LOGS, *([str(file)] if to_file else [])]
    done = subprocess.run(argv, capture_output=True, check=False, cwd=ROOT)
    text = done.stderr.decode() + (file.read_text() if to_file else "")
    assert {char for char in text if not char.isprintable()} == {"\n"}
    for words in ("as an argument", "in a message", "ValueError:", "RuntimeError:"):
        assert f"{words} {SHOWN}" in text, text
    assert "\nanother line, größer" in text
    assert text.count("Traceback (most recent call last)") >= 3
    assert done.stdout == b""


@pytest.mark.system
def test_without_a_token_nothing_is_in_the_way_of_what_is_printed() -> None:
    code = "import sys; from swarm.redaction import *; old = sys.stdout; guard_output(); "
    code += "print(sys.stdout is old)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "True\n"


def test_streams_that_are_closed_stay_so(token: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "setLogRecordFactory", lambda _: None)  # which is for all tests
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    guard_output()
    assert (sys.stdout, sys.stderr) == (None, None)


def test_what_workers_code_raised(token: None) -> None:
    kept: list[tuple[str, ...]] = []
    runner: Any = SimpleNamespace(log_exception=lambda *told: kept.append(told))
    redact_exceptions(runner)
    runner.log_exception("w", f"no {TOKEN}", f"Traceback: {TOKEN}")
    assert kept == [("w", f"no {HIDDEN}", f"Traceback: {HIDDEN}")]


def test_ledgers_and_copied_logs(token: None, tmp_path: Path) -> None:
    ledger = RedactedLedger(tmp_path / "ledger.jsonl")
    ledger.write({"reason": f"<{TOKEN}>", "told": [{"of": (TOKEN,)}]})
    ledger.close()
    kept = f'{{"reason":"<{HIDDEN}>","told":[{{"of":["{HIDDEN}"]}}],"line":1,'
    assert (tmp_path / "ledger.jsonl").read_text().startswith(kept)
    (tmp_path / "log").write_bytes(b"\xff a line\r\n" + TOKEN.encode() + b"\x1b[2J\n")
    copy_escaped(str(tmp_path / "log"), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text() == f"\\xff a line\n{HIDDEN}\\x1b[2J\n"


@pytest.mark.parametrize("token", ["1234", "null", "kind", "window", "measure", "HIST", "second"])
def test_a_token_like_a_ledgers_own_words_breaks_none(
    token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INFERSWARM_TOKEN", token)
    spellings.cache_clear()
    record = {
        "kind": "window",
        "phase": "measure",
        "second": 12345678,
        "of": None,
        "histograms": {"a": "HISTx"},
    }
    ledger = RedactedLedger(tmp_path / "ledger.jsonl")
    ledger.write(record)
    ledger.close()
    spellings.cache_clear()
    assert json.loads((tmp_path / "ledger.jsonl").read_text()).items() >= record.items()


@pytest.fixture(scope="module")
def argv() -> Iterator[None]:
    """Locust's page reads its options there."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.argv", ["locust"])
        yield


def made_app() -> Flask:
    ui = web_ui(runner=True)
    open_page(ui)
    assert ui.app is not None
    return ui.app


@pytest.fixture(scope="module")
def app(argv: None) -> Flask:
    return made_app()


def test_pages(token: None, argv: None) -> None:
    app = made_app()
    app.add_url_rule("/says", "says", lambda: Response(TOKEN))
    app.add_url_rule("/image", "image", lambda: Response(b"\xff\xfe", mimetype="image/png"))
    client = app.test_client()
    assert client.get("/says").text == HIDDEN
    assert client.get("/image").data == b"\xff\xfe"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "https://bench.example", "X-Forwarded-Host": "bench.example"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
    ],
)
def test_another_pages_requests_are_not_answered(app: Flask, headers: dict[str, str], status: int) -> None:
    client = app.test_client()
    for path in ("/stats/requests", "/inferswarm/data", "/tasks"):
        assert client.get(path, headers=headers).status_code == status
    assert (client.post("/swarm", data={}, headers=headers).status_code == 403) is (status == 403)


def test_another_page_may_link_to_what_shows_and_no_link_acts(app: Flask) -> None:
    client, link = app.test_client(), {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/inferswarm/", headers=link).status_code == 200
    assert client.get("/stats/reset", headers=link).status_code == 405
    assert client.get("/swarm", headers=link).status_code == 405
