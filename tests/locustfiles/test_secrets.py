"""A token is given, sent, and sent back by a server that repeats it: nothing that a study leaves has it."""

import secrets
import signal
import sys
from pathlib import Path

import pytest
import requests

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import ONCE, Console, few_pictures
from tests.locustfiles.test_web_page import Page
from tests.processes import free_port, is_listening, wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow]

TOKEN, HIDDEN = "INFERSWARM_TOKEN", "[INFERSWARM_TOKEN]"
PAGES = (
    "/", "/stats/requests", "/stats/requests/csv", "/stats/failures/csv", "/exceptions", "/exceptions/csv",
    "/stats/report", "/stats/report?download=1", "/tasks", "/logs",
    "/inferswarm", "/inferswarm/data", "/inferswarm/report", "/inferswarm/cells.csv",
)  # fmt: skip


def command_lines(console: Console) -> str:
    """Of the launcher, the master and the workers, as everybody on this machine may read them."""
    return "\n".join(" ".join(process.cmdline()) for process in console.family())


def started(folder: Path, service: int, port: int) -> Console:
    """A study behind the web UI that writes whatever it can write, with both workers there."""
    results, csv, html, log = (str(folder / name) for name in ("results", "table", "page.html", "locust.log"))
    console = Console(
        [
            sys.executable, "-m", "swarm", "run", "-f", "locustfiles/step7.py", "--workers", "2",
            "--web", "--web-port", str(port), "--pytorch-url", f"127.0.0.1:{service}", *few_pictures(),
            "--cells", "*/b1/c1", "--seconds", "1", "--warm-up", "1", *ONCE, "--results-dir", results,
            "--csv", csv, "--html", html, "--logfile", log, "--loglevel", "DEBUG",
        ],
        folder,
    )  # fmt: skip
    wait_until(lambda: is_listening(port), 40, lambda: console.text)
    stats = f"{Page(port).url}/stats/requests"
    wait_until(lambda: len(requests.get(stats, timeout=5).json()["workers"]) == 2, 30)
    return console


def pages_of(page: Page) -> dict[str, str]:
    """Every page of the web UI, once the study has its report."""
    report = f"{page.url}/inferswarm/report"
    wait_until(lambda: requests.get(report, timeout=5).status_code == 200, 60)
    replies = {path: requests.get(f"{page.url}{path}", timeout=20) for path in PAGES}
    assert all(reply.ok for reply in replies.values()), {path: reply.ok for path, reply in replies.items()}
    return {path: reply.text for path, reply in replies.items()}


def test_a_token_is_in_no_file_no_page_and_on_no_command_line(
    start_service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With what JSON, URLs and HTML write otherwise.
    token = f'{secrets.token_urlsafe(32)}/+"&<{secrets.token_hex(4)}'
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv(TOKEN, token)
    monkeypatch.setenv("TMPDIR", str(temporary))
    port = free_port()
    console = started(tmp_path, start_service("--leak-after", "80"), port)
    page = Page(port)
    page.start()
    seen = command_lines(console)
    workers = [process for process in console.family() if "--worker" in process.cmdline()]
    assert {process.environ().get(TOKEN) for process in workers} == {token}
    pages = pages_of(page)
    # It did come back, and was seen as what it is.
    assert HIDDEN in pages["/stats/requests"]
    assert HIDDEN in pages["/stats/failures/csv"]
    console.signal(signal.SIGINT)
    console.wait(60)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {path.name for path in files}
    assert {"ledger.jsonl", "report.html", "study.json", "worker-h1-1.log", "page.html", "locust.log"} <= kept
    # Nor its beginning, as a text that was cut might have.
    for secret in (token, token[:12]):
        assert [str(path) for path, held in files.items() if secret.encode() in held] == []
        assert [path for path, text in pages.items() if secret in text] == []
        assert secret not in seen
