"""`inferswarm link`: what it prints, how it ends, and that it leaves nothing."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from swarm import __main__ as swarm
from swarm.links import command, network
from swarm.links.command import measured_table, profiles_table
from swarm.links.measure import Measured
from swarm.links.profiles import LinkProfile, read_profiles
from tests.swarm.links.means import ROOT, here, namespaces_of, real, serving

KNOWN = read_profiles()
LIST = """
 link         rtt ms  Mbit/s  loss %  queue or burst kB  TCP    description
 ────────────────────────────────────────────────────────────────────────────────────────────────────────
 lan               0       –       0                  –  cubic  a plain cable: nothing is emulated
 wan-a100         14     210    0.07               1000  cubic  the published study's way to its A100
 wan-rtx4090      30     160    0.07               1000  cubic  the published study's way to its RTX 4090
 home             20      50       0                250  cubic  a household line: near, narrow, clean
 clean-long       80    1000       0              10000  cubic  across an ocean: long, wide, clean
"""
MEASURED = """
 wan-a100, emulated by our forwarder  asked  measured
 ────────────────────────────────────────────────────
 round trip, median ms                   14     14.31
 round trip, minimum ms                         14.10
 to the server, Mbit/s                  210     209.5
 lost of 20000 packets, %              0.07      0.07
"""
AS_ASKED = Measured(rtt_ms=14.31, rtt_min_ms=14.1, mbit_per_s=209.46, sent=20_000, lost=14)
# Started in the background, as tests may be, it would be told to ignore Ctrl-C.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from swarm.__main__ import main; sys.exit(main(['link', *sys.argv[1:]]))"
)
CLIENT = """
import os, socket, sys
with socket.create_connection((os.environ["INFERSWARM_SERVER"], int(sys.argv[1]))) as found:
    found.shutdown(socket.SHUT_WR)
    print(found.makefile().read(), flush=True)
sys.exit(7)
"""


def main(argv: list[str]) -> int:
    return swarm.main(["link", *argv])


def printed(table: object) -> str:
    """A table as lines, without what is blank."""
    out = io.StringIO()
    Console(file=out, width=120).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(["", *filter(None, lines), ""])


def test_the_list_of_links() -> None:
    assert printed(profiles_table(KNOWN.values())) == LIST


def test_a_policer_is_listed_with_its_burst() -> None:
    policer = LinkProfile("police", mbit_per_s=40, burst_bytes=60_000)
    assert printed(profiles_table([policer])).split()[-2:] == ["60", "cubic"]


def test_asked_beside_measured() -> None:
    assert printed(measured_table(KNOWN["wan-a100"], AS_ASKED, "tun")) == MEASURED


def test_without_a_name_links_are_listed_and_a_file_adds_to_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "links.toml"
    own.write_text("[moon]\none_way_ms = 1280\n")
    assert main(["--links", str(own)]) == 0
    said = capsys.readouterr().out
    first_words = [line.split()[0] for line in said.splitlines() if line[1:2].isalnum()]
    assert first_words == ["link", *KNOWN, "moon"]


def test_a_name_that_nobody_knows_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lan,home"]) == 2
    said, known = capsys.readouterr().err, "lan, wan-a100, wan-rtx4090, home, clean-long"
    assert said == f"inferswarm: there is no link named 'lan,home': choose from {known}\n"


def test_a_command_without_a_link_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--", "true"])
    assert ended.value.code == 2
    assert "a command needs a link: give its NAME before `--`" in capsys.readouterr().err


def test_without_root_there_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require: Callable[..., None] = network.require_means
    monkeypatch.setattr(network, "require_means", lambda **means: require(lambda: 1000, **means))
    assert main(["home", "--", "true"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("inferswarm: namespaces for client hosts and emulated links need root: run as")


@real
def test_a_link_is_built_and_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lan"]) == 0
    said = capsys.readouterr().out
    assert "lan, not emulated" in said
    assert "lost of 2000 packets, %" in said
    assert namespaces_of(os.getpid()) == []


@real
def test_a_figure_off_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "measure", lambda *_: AS_ASKED)
    assert main(["lan"]) == 3
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == ["lan: round trip 14.3 ms, not 0", "lan: loss 0.07 %, not 0"]


@real
def test_a_command_reaches_this_machines_servers_over_the_link(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(here) as port:
        code = main(["home", "--", sys.executable, "-I", "-S", "-c", CLIENT, str(port)])
    assert code == 7
    assert '"peer": "198.18.' in capfd.readouterr().out
    assert namespaces_of(os.getpid()) == []


@real
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_is_stopped_leaves_nothing(number: signal.Signals, code: int) -> None:
    asleep = [sys.executable, "-c", PROGRAM, "home", "--", "sh", "-c", "echo here; exec sleep 100"]
    with subprocess.Popen(
        asleep, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        assert len(namespaces_of(process.pid)) == 1
        # As a terminal does it for Ctrl-C: to everybody.
        os.killpg(process.pid, number)
        assert process.wait(30) == code
    assert namespaces_of(process.pid) == []


@real
def test_ctrl_c_while_a_link_is_measured_leaves_nothing() -> None:
    measuring = [sys.executable, "-c", PROGRAM, "wan-a100"]
    with subprocess.Popen(measuring, cwd=ROOT, start_new_session=True) as process:
        while len(namespaces_of(process.pid)) < 2:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert namespaces_of(process.pid) == []
