"""inferswarm gate: verdicts on one study, or on several as one, and what a CI shows of them."""

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.gates.baseline import load_baseline
from reports.gates.judge import judge
from reports.gates.require import GateError
from reports.gates.source import GateSource, source_of
from reports.gates.thresholds import THRESHOLDS, VERDICTS, Gates, read_gates
from reports.gates.verdict import Verdict, exit_code, kept_text
from reports.page.page import Page
from reports.render.console import print_page, public_path, refused
from reports.render.files import write_files, write_report, writing
from reports.render.github import place_in_repository, tell_actions
from reports.render.junit import junit_text
from reports.render.markdown import gates_markdown
from reports.study.study import Study, load_study
from reports.topics.report import build_page, gates_page

Studies = Sequence[tuple[Path, Study]]


def add_gate(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    gated = commands.add_parser(
        "gate",
        help="judge studies by thresholds: pass, fail or inconclusive, junit.xml, Markdown, annotations",
        description="Judges DIR by thresholds.toml; several directories are repeats of one study. Writes "
        "junit.xml, gates.md and gates.json, and shows the verdicts in the study's report. In GitHub "
        "Actions it also prints annotations and adds to the job's summary.",
        epilog="Example: inferswarm gate results/step7-20261121T110000Z --thresholds thresholds.toml. "
        "Exit code: 0 all pass, 1 a threshold failed, 2 a threshold, baseline or DIR cannot be used, "
        "3 inconclusive. docs/gates.md says how it is judged.",
    )
    gated.add_argument("directories", metavar="DIR", nargs="+", type=Path, help="what a study left")
    gated.add_argument(
        "--thresholds",
        metavar="FILE",
        type=Path,
        help="the thresholds (default: DIR/thresholds.toml, which --gate keeps there, or else "
        "thresholds.toml here)",
    )
    gated.add_argument(
        "--baseline",
        metavar="PLACE",
        nargs="+",
        default=[],
        help="directories that studies left, or files of `inferswarm baseline` (default: what the "
        "study was told, or the file of thresholds says)",
    )
    gated.add_argument(
        "--out", metavar="DIR", type=Path, help="where to write (default: DIR; several take one)"
    )
    shown = gated.add_mutually_exclusive_group()
    shown.add_argument("--all", action="store_true", help="print the study's other tables, too")
    shown.add_argument(
        "--quiet", action="store_true", help="write the files, and print nothing but annotations"
    )
    gated.set_defaults(run=gate)


def gate(arguments: argparse.Namespace) -> int:
    """Judges, writes, prints: the exit code of the verdicts; GateError, LedgerError, WriteError."""
    directories: list[Path] = arguments.directories
    if directories[1:] and not arguments.out:
        return refused("--out: name where the verdicts go, since several directories are judged as one.")
    folder = arguments.out or directories[0]
    thresholds = arguments.thresholds or _thresholds(directories[-1])
    gates = read_gates(thresholds)
    studies = [(path, load_study(path)) for path in directories]
    verdicts = _verdicts(gates, studies, arguments.baseline)
    page = _page(studies, verdicts, arguments.all)
    place = place_in_repository(_original(thresholds, studies[-1][1]), os.environ)
    markdown = gates_markdown(verdicts, page.title, _command(arguments))
    with writing(folder, "fix that, or give --out"):
        _write(folder, studies, verdicts, place, markdown)
    if not arguments.quiet:
        print_page(page, f"Verdicts: {folder / 'gates.md'}, {folder / 'junit.xml'}")
    tell_actions(os.environ, verdicts, place, markdown)
    return exit_code(verdicts)


def _thresholds(directory: Path) -> Path:
    """Those that the study was judged by, or those here."""
    own = directory / THRESHOLDS
    return own if os.path.isfile(own) else Path(THRESHOLDS)


def _original(thresholds: Path, study: Study) -> Path:
    """The file that people edit: what the study was told, where the one beside its ledger is a copy of it."""
    told = Path(str((study.header.get("options") or {}).get("gate") or thresholds))
    try:
        same = os.path.isfile(told) and told.read_bytes() == thresholds.read_bytes()
    except OSError:
        return thresholds
    return told if same else thresholds


def _verdicts(gates: Gates, studies: Studies, named: Sequence[str]) -> list[Verdict]:
    if named and not gates.need_baseline:
        raise GateError(
            f"--baseline: no threshold in {gates.place} is to a baseline: leave it out, or add one such as "
            "latency_p95_ms / baseline <= 1."
        )
    # what the last study was told, or else the file of thresholds says
    told = (studies[-1][1].header.get("options") or {}).get("baseline") or gates.baseline
    places = [*named] or ([str(told)] if told else [])
    baseline: GateSource | None = load_baseline(places) if gates.need_baseline and places else None
    return judge(gates, source_of(studies), baseline)


def _page(studies: Studies, verdicts: Sequence[Verdict], whole: bool) -> Page:
    path, study = studies[-1]
    place = public_path(path, Path.cwd())
    return build_page(study, place, verdicts=verdicts) if whole else gates_page(study, place, verdicts)


def _command(arguments: argparse.Namespace) -> str:
    """What judges the same again, without naming what lies above this directory."""
    words = [*arguments.directories]
    words += ["--thresholds", arguments.thresholds] if arguments.thresholds else []
    words += ["--baseline", *map(Path, arguments.baseline)] if arguments.baseline else []
    shown = (public_path(word, Path.cwd()) if isinstance(word, Path) else word for word in words)
    return f"inferswarm gate {shlex.join(shown)}"


def _write(folder: Path, studies: Studies, verdicts: Sequence[Verdict], place: str, markdown: str) -> None:
    """What a CI takes, and the report of a study that was judged alone, in its own directory."""
    path, study = studies[-1]
    files = {
        VERDICTS: kept_text(verdicts),
        "junit.xml": junit_text(verdicts, str(study.header["study"]), place),
        "gates.md": markdown,
    }
    write_files(folder, files)
    if len(studies) == 1 and folder.resolve() == path.resolve():
        write_report(folder, study, _page(studies, verdicts, whole=True), verdicts)
