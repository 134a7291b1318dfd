"""The commands of docs/run.md and docs/studies.md that make network namespaces, or ask hosts by ssh."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import re
from pathlib import Path

import pytest

from tests.locustfiles.console import ROOT, Console
from tests.readme.commands import command, run, toml_block
from tests.swarm.hosts.sshd import Sshd, checkout_at, needs_sshd
from tests.swarm.links.means import real

pytestmark = [pytest.mark.system, pytest.mark.slow]


@real
def test_links(tmp_path: Path) -> None:
    listed = run([*command("inferswarm link wan-a100")[:-1]], tmp_path, 60).text
    assert all(name in listed for name in ("lan", "wan-a100", "wan-rtx4090", "home", "clean-long"))
    # A busy machine may not keep up: then it says so, by the exit code, too.
    measured = Console(command("inferswarm link wan-a100"), tmp_path)
    assert measured.wait(60) in (0, 3), measured.text
    assert "round trip, median ms" in measured.text


@real
def test_what_slows_grpc(tmp_path: Path) -> None:
    short = ["--repeats", "1", "--seconds", "1", "--warm-up", "1", "--results-dir", str(tmp_path)]
    console = run([*command("inferswarm run"), *short, "--cells", "*/per-user"], tmp_path)
    rows = {row["endpoint"]: row for row in console.cells()}
    assert set(rows) == {"emulated-http", "emulated-grpc"}
    for row in rows.values():
        assert (row["link"], row["tcp_connections"], row["workers"]) == ("wan-a100", "16", "1")
    (link,) = console.ledger()[0]["links"]
    assert link["measured"]["h1"]["rtt_ms"] > 14


@needs_sshd
def test_hosts(tmp_path: Path) -> None:
    """The hosts of docs/run.md, of which the one by ssh is this machine, with a git checkout of its own."""
    text = toml_block("[[host]]")
    with Sshd(tmp_path) as sshd:
        there = checkout_at(tmp_path / "load-2")
        (there / ".git").symlink_to(ROOT / ".git")
        (there / "requirements-client.lock").symlink_to(ROOT / "requirements-client.lock")
        assert 'address = "bench@load-2"\n' in text
        near = text.partition('[[host]]\nname = "far"')[0]
        hosts = tmp_path / "hosts.toml"
        hosts.write_text(near + sshd.host_entry("far", there, workers=8))
        for part in ("hosts prepare", "hosts check"):
            words = [str(hosts) if word == "hosts.toml" else word for word in command(part)]
            words += ["--ssh-config", str(sshd.config)]
            said = run(words, tmp_path, 120).text
            assert re.search(r"far +ssh +yes", said), said
            assert re.search(r"near +netns +created when the study runs", said), said
