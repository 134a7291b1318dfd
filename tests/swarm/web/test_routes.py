"""The live page over HTTP, by Flask's test client: what it serves, to whom, and with which headers."""

from locust.web import WebUI

import subprocess
import sys
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from swarm.study.master import live_page
from swarm.web.page import FILES, LivePage, open_page
from tests.reports.builder import Book
from tests.swarm.followed import Followed
from tests.swarm.web_stand import a_book, left, web_ui

ROUTES = ("", "/data", "/report", "/cells.csv", "/report/step7-1", *(f"/file/{name}" for name in FILES))
INJECTED = "<script>alert(1)</script>"


def opened(base: str = "", login: bool = False, runner: bool = False) -> tuple[LivePage, FlaskClient, WebUI]:
    ui = web_ui(base, login, runner)
    page = open_page(ui)
    assert ui.app is not None
    return page, ui.app.test_client(), ui


def studied(page: LivePage, folder: Path, book: Book) -> None:
    Followed(book.header, page.begun(folder, book.header)).tell(*book.records)


@pytest.mark.parametrize("base", ["", "/load/"])
def test_the_page_and_all_that_it_loads_are_served_below_the_base_path(base: str) -> None:
    page, client, _ = opened(base)
    root = base.rstrip("/")
    assert page.place == f"{root}/inferswarm"
    text = client.get(page.place).text
    assert f'data-place="{root}/inferswarm"' in text
    assert f'href="{root}/"' in text
    for name in FILES:
        reply = client.get(f"{page.place}/file/{name}")
        assert reply.status_code == 200
        assert len(reply.data) > 300
        assert reply.mimetype == FILES[name][1]
        reply.close()


def test_nothing_runs_in_the_page_but_its_own_files() -> None:
    page, client, _ = opened()
    reply = client.get(page.place)
    assert "default-src 'self'" in reply.headers["Content-Security-Policy"]
    assert "unsafe" not in reply.headers["Content-Security-Policy"]
    for name in ("live.js", "charts.js", "tables.js", "form.js", "server.js"):
        with client.get(f"{page.place}/file/{name}") as file:
            script = file.text
        ways = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "https://")
        assert not any(way in script for way in ways)
    assert not any(part in reply.text for part in ("onclick", "onload", "style=", "https://"))


@pytest.mark.parametrize("path", ROUTES)
def test_no_page_from_elsewhere_may_read_an_answer(path: str) -> None:
    page, client, _ = opened()
    with client.get(f"{page.place}{path}", headers={"Origin": "https://evil.example"}) as reply:
        assert reply.headers.getlist("Access-Control-Allow-Origin") == ["http://localhost"]
        assert reply.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ROUTES)
def test_where_locust_asks_for_its_login_so_do_we(path: str) -> None:
    page, client, _ = opened("/load", login=True)
    with client.get(f"{page.place}{path}") as reply:
        assert reply.status_code == 302
        assert reply.headers["Location"].startswith("/load/login")


def test_a_study_as_a_browser_is_told_of_it(tmp_path: Path) -> None:
    page, client, _ = opened()
    assert client.get("/inferswarm/data").get_json()["study"]["status"] == "idle"
    studied(page, tmp_path / "step7-1", a_book(repeats=2))
    found = client.get("/inferswarm/data?since=0").get_json()
    assert [cell["cell"] for cell in found["cells"]] == ["onnx-grpc/b1/c2"] * 2
    newer = client.get(f"/inferswarm/data?since={found['next']}&study=step7-1").get_json()
    assert (newer["cells"], newer["seconds"]) == ([], [])
    assert len(client.get(f"/inferswarm/data?since={found['next']}").get_json()["cells"]) == 2


@pytest.mark.parametrize("since", ["", "-1", "²", "9" * 5_000, INJECTED])
def test_a_since_that_is_no_number_is_refused_in_a_sentence(since: str) -> None:
    _, client, _ = opened()
    reply = client.get("/inferswarm/data", query_string={"since": since})
    assert (reply.status_code, reply.mimetype) == (400, "text/plain")
    assert reply.text == f"since={since}: give the number that the last reply called next.\n"


def test_the_page_is_there_with_a_slash_too() -> None:
    _, client, _ = opened()
    assert [client.get(path).status_code for path in ("/inferswarm", "/inferswarm/")] == [200, 200]


def test_the_report_is_served_once_the_study_has_ended_and_apart_from_this_origin(tmp_path: Path) -> None:
    page, client, _ = opened()
    assert client.get("/inferswarm/report").status_code == 404
    studied(page, left(tmp_path), a_book())
    reply = client.get("/inferswarm/cells.csv")
    assert reply.status_code == 404
    assert reply.text == "There is no cells.csv yet: it is written when a study ends.\n"
    page.ended("complete", "", 0)
    for path in ("/inferswarm/report", "/inferswarm/report/step7-1"):
        with client.get(path) as found:
            assert found.text == "<p>step7-1</p>"
            assert "sandbox allow-scripts" in found.headers["Content-Security-Policy"]
            assert "default-src 'none'" in found.headers["Content-Security-Policy"]
    with client.get("/inferswarm/cells.csv/step7-1") as table:
        assert (table.mimetype, table.text) == ("text/csv", "study\nstep7-1\n")


@pytest.mark.parametrize("study", ["step7-9", "..", "%2e%2e%2fstep7-1", INJECTED.replace("/", "")])
def test_an_unknown_report_is_a_sentence(tmp_path: Path, study: str) -> None:
    page, client, _ = opened()
    studied(page, left(tmp_path), a_book())
    page.ended("complete", "", 0)
    reply = client.get(f"/inferswarm/report/{study}")
    assert reply.status_code == 404
    assert "step7-1</p>" not in reply.text
    if study == "step7-9":
        assert reply.text == ("step7-9: no finished study of this process has this name and a report.html.\n")
        assert reply.mimetype == "text/plain"


def test_an_unknown_file_is_a_sentence() -> None:
    _, client, _ = opened()
    reply = client.get("/inferswarm/file/page.py")
    assert (reply.status_code, reply.text) == (404, "page.py: the live page has no such file.\n")


def test_markup_from_outside_is_data_and_stands_nowhere_in_the_page(tmp_path: Path) -> None:
    page, client, _ = opened()
    book = Book(title=INJECTED)
    book.add("onnx-grpc", 1, 1, {"w0": []}, status="failed", note=INJECTED)
    studied(page, tmp_path / "step7-1", book)
    page.ended("failed", INJECTED, 3)
    reply = client.get("/inferswarm/data")
    assert reply.mimetype == "application/json"
    assert reply.get_json()["study"]["title"] == reply.get_json()["study"]["reason"] == INJECTED
    assert INJECTED not in client.get("/inferswarm").text


@pytest.mark.parametrize("base", ["", "/load"])
def test_locusts_page_gets_our_tab(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["locust"])  # Locust's page reads it for its options
    page, client, ui = opened(base, runner=True)

    studied(page, tmp_path / "step7-1", a_book())
    for _ in range(2):
        report = client.get(f"{base}/stats/requests").get_json()
        (ours,) = report["extended_stats"]
        assert (ours["key"], ours["data"][0]["cell"]) == ("inferswarm", "onnx-grpc/b1/c2")
    assert report["state"] == "ready"
    text = client.get(f"{base}/").text
    assert f'"{base}/inferswarm/cells.csv"' in text.replace("\\/", "/")
    (table,) = ui.template_args["extended_tables"]
    assert {column["key"] for column in table["structure"]} == set(ours["data"][0]) - {"name"}
    assert ui.template_args["extended_tabs"] == [{"title": "inferswarm", "key": table["key"]}]

    assert ui.environment.runner is not None
    ui.environment.runner.quit()


def test_without_a_web_ui_nobody_watches() -> None:
    assert live_page(None) is None


@pytest.mark.system
def test_a_headless_study_imports_nothing_of_the_page() -> None:
    code = "import sys, swarm.study.shape; print([n for n in sys.modules if n.startswith('swarm.web')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", ["/inferswarm", "/inferswarm/data", "/inferswarm/file/live.js"])
def test_a_name_made_to_stand_for_our_address_is_not_ours(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client, _ = opened()

    def status(host: str) -> int:
        with client.get(path, headers={"Host": host}) as reply:
            return reply.status_code

    monkeypatch.setenv("INFERSWARM_NAMES", "bench.example,other")
    assert {status(host) for host in ("evil.example:8089", "127.0.0.1.evil.example", "[::1", "x:y")} == {421}
    assert {status(host) for host in ("127.0.0.1:8089", "localhost:8089", "[::1]", "10.0.0.7")} == {200}
    assert [status("BENCH.example:8089"), status("bench.example.")] == [200, 200]


def test_behind_a_login_any_name_will_do() -> None:
    _, client, _ = opened(login=True)
    with client.get("/inferswarm", headers={"Host": "bench.example"}) as reply:
        assert reply.status_code == 302
