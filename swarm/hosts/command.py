"""`inferswarm hosts check | prepare`: client hosts, before a study runs on them."""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reports.format import plain, plain_lines
from reports.parser import Parser
from swarm.hosts.check import Checked, HostFacts, Problem, check, check_all, problems
from swarm.hosts.host import Host
from swarm.hosts.hosts_file import HostSpec, add_ssh_config, hosts_named, read_hosts
from swarm.hosts.prepare import gather, prepare, steps

OK, UNFIT = 0, 2
LEAST_WIDTH = 140
DEFAULT_FILE = Path("hosts.toml")
EXAMPLE = """\
A hosts file names places that client processes run on:

  [[host]]
  name = "near"
  kind = "netns"                # process | netns | ssh
  workers = 2                   # optional: how many Locust workers

  [[host]]
  name = "frankfurt"
  kind = "ssh"
  address = "bench@10.0.0.7"    # as ssh takes it; it must log in without a prompt
  port = 22                     # optional, like everything below
  identity = "~/.ssh/bench"     # a private key
  path = "inferswarm"           # the checkout there, relative to the user's home
  python = "python3.11"         # used to make the virtual environment there
"""


def main(argv: list[str]) -> int:
    """Run one command; 2 if a host cannot be used. Raises SwarmError if a file or an option is not valid."""
    arguments = parser().parse_args(argv)
    return int(arguments.run(arguments))


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each thing to do."""
    top = Parser(
        prog="inferswarm hosts",
        description="Check and prepare client hosts before a study runs on them.",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    form = argparse.RawDescriptionHelpFormatter
    checked = commands.add_parser(
        "check",
        formatter_class=form,
        help="check every host, and report its problems",
        description="Reads every host's versions, commit, limits and clock, and prints them with any\n"
        "problems. Exit code: 0 if all hosts can be used, 2 otherwise.",
        epilog=EXAMPLE,
    )
    checked.add_argument(
        "hosts",
        nargs="?",
        default="",
        metavar="FILE|N",
        help="a hosts file, or a number of hosts on this machine (default: hosts.toml, else this machine)",
    )
    add_ssh_config(checked)
    checked.set_defaults(run=run_check)
    prepared = commands.add_parser(
        "prepare",
        formatter_class=form,
        help="send this checkout to every ssh host and install what workers need there",
        description="For every ssh host: sends this checkout's last commit, or this installed\n"
        "inferswarm, makes .venv there, installs requirements-client.lock, and checks the\n"
        "host. It can be repeated at any time.\n"
        "Exit code: 0 if all hosts can be used, 2 otherwise.",
        epilog=EXAMPLE,
    )
    prepared.add_argument("hosts", nargs="?", default=str(DEFAULT_FILE), metavar="FILE", help="a hosts file")
    prepared.add_argument(
        "--wheels", type=Path, metavar="DIR", help="send this folder's wheels, for hosts without internet"
    )
    add_ssh_config(prepared)
    prepared.set_defaults(run=run_prepare)
    return top


def run_check(arguments: argparse.Namespace) -> int:
    """Ask, print, judge."""
    text = arguments.hosts or (str(DEFAULT_FILE) if DEFAULT_FILE.exists() else "1")
    return report([Host(spec) for spec in hosts_named(text, ssh_config=arguments.ssh_config)])


def run_prepare(arguments: argparse.Namespace) -> int:
    """Take every ssh host through its steps, one after the other, then check them all."""
    specs = read_hosts(Path(arguments.hosts), arguments.ssh_config)
    with tempfile.TemporaryDirectory(prefix="inferswarm-") as folder:
        source = gather(Path(folder), arguments.wheels)
        if source.changed:
            say(f"uncommitted changes are not sent: hosts get commit {source.commit}")
        for spec in specs:
            if spec.kind == "ssh":
                prepare(spec, steps(spec, source), say)
            else:
                say(f"{spec.name}: nothing to do, it is of kind {spec.kind}")
    return report([Host(spec) for spec in specs])


def say(text: str) -> None:
    """A line for the person."""
    print(plain_lines(text), flush=True)


def report(hosts: Sequence[Host]) -> int:
    """Ask all hosts, print what they say and what is wrong; the exit code."""
    own = check(Host(HostSpec("here", "process")))
    found = check_all(hosts)
    console = Console(highlight=False)
    # Rather a line that the terminal breaks than a figure that is cut off.
    console.width = max(console.width, LEAST_WIDTH)
    console.print(table(found))
    wrong = [problem for checked in found for problem in judged(checked, own)]
    for problem in wrong:
        console.print(plain(problem), markup=False, soft_wrap=True)
    return UNFIT if any(problem.fatal for problem in wrong) else OK


def judged(checked: Checked, own: HostFacts) -> list[Problem]:
    """What is wrong with a host that was asked."""
    if checked.facts is None:
        return [Problem(checked.why)]
    found = problems(checked.facts, own, checked.spec.workers)
    return [replace(problem, text=f"host {checked.spec.name}: {problem.text}") for problem in found]


def table(found: Sequence[Checked]) -> Table:
    """What the hosts said, a row each."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("host", "kind", "reachable", "python", "locust", "commit"):
        made.add_column(title, no_wrap=True)
    for title in ("cores", "load", "file limit", "clock offset"):
        made.add_column(title, justify="right", no_wrap=True)
    for checked in found:
        made.add_row(*(Text(plain(cell)) for cell in row(checked)))
    return made


def row(checked: Checked) -> list[str]:
    """A host's cells; `?` where it should have said something, and did not."""
    spec, facts = checked.spec, checked.facts
    if facts is None:
        return [spec.name, spec.kind, "no", *[""] * 7]
    return [
        spec.name,
        spec.kind,
        "created when the study runs" if spec.kind == "netns" else "yes",
        facts.python or "?",
        facts.packages.get("locust", "missing"),
        facts.commit or "?",
        str(facts.cores or "?"),
        "?" if facts.load is None else f"{facts.load:.2f}",
        "none" if facts.files_soft is None else str(facts.files_soft),
        f"{facts.clock_offset_ns / 1e6:+.1f} ± {facts.clock_doubt_ns / 1e6:.1f} ms",
    ]
