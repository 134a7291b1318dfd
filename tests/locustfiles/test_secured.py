"""Studies over TLS and with a token: what they send, what they show, and what stands in no file."""

from pathlib import Path

import pytest

from tests.certificates import Certificates
from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import LOCUST, SHORT, Console, study
from tests.processes import free_port
from users.tls import TOKEN

pytestmark = [pytest.mark.system, pytest.mark.slow]

SECRET = "hunter2-and-more"


@pytest.fixture
def guarded(start_service: StartService, made: Certificates) -> int:
    """The port of a service over TLS that wants the token, and repeats what it is not given."""
    return start_service("--token", SECRET, "--cert", made.server.cert, "--key", made.server.key)


def test_a_whole_study_over_tls_with_a_token_that_stands_in_no_file(
    guarded: int, made: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    url = f"https://localhost:{guarded}"
    ways = ("--processes", "2", "--cells", "*/b1/*", *SHORT)
    console = study(tmp_path, "--pytorch-url", url, "--tls-ca", made.ca, *ways)
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == {"pytorch-http/b1/c1", "pytorch-http/b1/c8"}
    assert all(int(row["requests"]) >= 3 and row["failures"] == "0" for row in rows.values())
    # Counters are asked for over TLS and with the token, too, and connections are kept.
    assert all("probe-gap" not in row["caveats"] for row in rows.values())
    assert rows["pytorch-http/b1/c8"]["tcp_connections"] == "8"
    header = console.ledger()[0]
    (target,) = header["fingerprint"]["targets"].values()
    assert target["resolved"]
    assert {"127.0.0.1", "::1"} >= set(target["resolved"])
    assert (target["address"], target["tls"], target["token"]) == (f"localhost:{guarded}", True, TOKEN)
    said = f"target pytorch-http: {url} is {', '.join(target['resolved'])}, over TLS, token of {TOKEN}"
    assert console.text.index(said) < console.text.index("results in")
    assert url in (console.result() / "report.html").read_text()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.name for path in written}
    assert names >= {"ledger.jsonl", "results.parquet", "report.html", "console.log"}
    assert [path.name for path in written if SECRET.encode() in path.read_bytes()] == []


def test_without_its_token_nothing_starts(
    guarded: int, made: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token, sentence in (
        ("", "requires a token; export it as INFERSWARM_TOKEN"),
        ("another-secret", "does not accept the token in INFERSWARM_TOKEN"),
        ("two words", "INFERSWARM_TOKEN is not a token: give printable ASCII without spaces"),
    ):
        monkeypatch.setenv(TOKEN, token)
        folder = tmp_path / (token or "none")
        folder.mkdir()
        console = study(folder, "--pytorch-url", f"https://localhost:{guarded}", "--tls-ca", made.ca)
        assert console.wait(20) == 2, console.text
        (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
        assert sentence in line
        assert not token or token not in console.text
        assert [path for path in folder.iterdir() if path.is_dir()] == []


def test_a_worker_without_the_token_is_named_before_any_load(
    guarded: int, made: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    monkeypatch.setenv("INFERSWARM_PYTORCH_TOKEN", SECRET)
    ways = ("--master", "--expect-workers", "1", "--master-bind-port", port)
    master = study(tmp_path, "--pytorch-url", f"https://localhost:{guarded}", "--tls-ca", made.ca, *ways)
    monkeypatch.delenv("INFERSWARM_PYTORCH_TOKEN")
    worker = Console([*LOCUST, "--worker", "--master-port", port], tmp_path, "worker")
    assert master.wait(40) == 3, master.text
    (line,) = [line for line in master.text.splitlines() if "is not set" in line and "inferswarm: " in line]
    assert "INFERSWARM_PYTORCH_TOKEN is not set" in line
    assert "_" in line.split(":")[1], "the worker's own name comes before the sentence"
    assert {record["kind"] for record in master.ledger()} <= {"header", "footer"}
    assert "Traceback" not in master.text + worker.text


def test_what_is_not_verified_is_a_caveat_of_every_run(
    start_service: StartService, made: Certificates, tmp_path: Path
) -> None:
    port = start_service("--cert", made.expired.cert, "--key", made.expired.key)
    url = f"https://127.0.0.1:{port}"
    console = study(tmp_path, "--pytorch-url", url, "--tls-no-verify", "--cells", "*/b1/c1", *SHORT)
    assert console.wait(60) == 0, console.text
    (row,) = console.cells()
    assert row["failures"] == "0"
    assert "tls-unverified" in row["caveats"].split(";")
    assert "has not proved its identity" in (console.result() / "summary.md").read_text()
    assert f"{url} is 127.0.0.1, over TLS, unverified, without a token" in console.text
