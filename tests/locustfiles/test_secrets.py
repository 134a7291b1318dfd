"""A token is given, sent, and sent back by a server that repeats it: nothing that a study leaves has it."""

from __future__ import annotations

import secrets
import signal
import sys
from pathlib import Path

import pytest
import requests

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import Console, few_pictures, free_port, is_listening, wait_until
from tests.locustfiles.test_web_page import Page

pytestmark = pytest.mark.system

TOKEN, HIDDEN = "INFERSWARM_TOKEN", "[INFERSWARM_TOKEN]"
PAGES = (
    "/", "/stats/requests", "/stats/requests/csv", "/stats/failures/csv", "/exceptions", "/exceptions/csv",
    "/stats/report", "/stats/report?download=1", "/tasks", "/logs",
    "/inferswarm", "/inferswarm/data", "/inferswarm/report", "/inferswarm/cells.csv",
)  # fmt: skip


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def command_lines(console: Console) -> str:
    """Of the launcher, the master and the workers, as everybody on this machine may read them."""
    return "\n".join(" ".join(process.cmdline()) for process in console.family())


def test_a_token_is_in_no_file_no_page_and_on_no_command_line(
    start_service: StartService,
    consoles: list[Console],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With what JSON, URLs and HTML write otherwise.
    token = f'{secrets.token_urlsafe(32)}/+"&<{secrets.token_hex(4)}'
    temporary, results = tmp_path / "tmp", tmp_path / "results"
    temporary.mkdir()
    pictures = few_pictures()
    monkeypatch.setenv(TOKEN, token)
    monkeypatch.setenv("TMPDIR", str(temporary))
    service, port = start_service("--leak-after", "80"), free_port()
    console = Console(
        [
            sys.executable, "-m", "swarm", "run", "-f", "locustfiles/step7.py", "--workers", "2",
            "--web", "--web-port", str(port), "--pytorch-url", f"127.0.0.1:{service}", *pictures,
            "--cells", "*/b1/c1", "--seconds", "1", "--warm-up", "1", "--results-dir", str(results),
            "--csv", str(tmp_path / "table"), "--html", str(tmp_path / "page.html"),
            "--logfile", str(tmp_path / "locust.log"), "--loglevel", "DEBUG",
        ],
        tmp_path,
    )  # fmt: skip
    consoles.append(console)
    wait_until(lambda: is_listening(port), 40, lambda: console.text)
    page = Page(port)
    wait_until(lambda: len(requests.get(f"{page.url}/stats/requests", timeout=5).json()["workers"]) == 2, 30)
    page.start()
    seen = command_lines(console)
    workers = [process for process in console.family() if "--worker" in process.cmdline()]
    assert {process.environ().get(TOKEN) for process in workers} == {token}
    report = f"{page.url}/inferswarm/report"
    wait_until(lambda: requests.get(report, timeout=5).status_code == 200, 60, lambda: console.text)
    pages = {path: requests.get(f"{page.url}{path}", timeout=20) for path in PAGES}
    assert all(reply.ok for reply in pages.values()), [path for path, reply in pages.items() if not reply.ok]
    # It did come back, and was seen as what it is.
    assert HIDDEN in pages["/stats/requests"].text
    assert HIDDEN in pages["/stats/failures/csv"].text
    console.signal(signal.SIGINT)
    console.wait(60)
    files = files_below(tmp_path)
    kept = {path.name for path in files}
    assert {"ledger.jsonl", "report.html", "study.json", "worker-h1-1.log", "page.html", "locust.log"} <= kept
    holders = [str(path) for path in files if token.encode() in path.read_bytes()]
    holders += [path for path, reply in pages.items() if token in reply.text]
    assert holders == []
    # Nor any part of it, as a text that was cut might have.
    part = token[:12]
    assert not [str(path) for path in files if part.encode() in path.read_bytes()]
    assert part not in seen
    assert part not in "".join(reply.text for reply in pages.values())
