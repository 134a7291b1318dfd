"""Where people read of options: --help of a study and of the launcher, the web form, docs/options.md."""

from locust.argument_parser import get_parser

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from swarm.options.model import flag, known_options
from swarm.options.option import Option
from swarm.options.parse import add_options

ROOT, OPTIONS = Path(__file__).parents[3], known_options()
GROUPS = tuple(dict.fromkeys(option.group for option in OPTIONS.values()))
PROGRAMS = ("locust -f locustfiles/step7.py --help", "swarm run -f locustfiles/step7.py -h")


def row(name: str, option: Option) -> str:
    typed = f"{flag(name)} {option.metavar or ''}".rstrip().replace("|", "\\|")
    return f"| `{typed}` | {option.otherwise} | {option.unit} | {option.help} |"


def table(group: str) -> str:
    """The rows of a group as docs/options.md has them."""
    rows = [row(name, option) for name, option in OPTIONS.items() if option.group == group]
    head = "| option | default | unit | what it does |\n|---|---|---|---|"
    return "\n".join((f"## {group}\n", head, *rows))


@pytest.mark.parametrize("group", GROUPS)
def test_the_documentation_has_the_options_as_they_are_declared(group: str) -> None:
    text = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    assert f"{table(group)}\n\n" in text, f"docs/options.md must have\n{table(group)}"


def test_it_has_no_others() -> None:
    text = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(--[a-z0-9-]+)", text, re.MULTILINE)
    assert told == [flag(name) for group in GROUPS for name, one in OPTIONS.items() if one.group == group]
    assert len(told) == len(OPTIONS) == len(set(told)) > 50


@cache
def help_of(program: str) -> str:
    words = [sys.executable, "-m", *program.split()]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_has_every_option_by_group_with_default_and_unit(program: str) -> None:
    text = " ".join(help_of(program).split()).replace("- ", "-")
    places = [text.index(f" {group}:") for group in GROUPS]
    assert places == sorted(places)
    for name, option in OPTIONS.items():
        assert f" {flag(name)} " in text
        if option.default is not False and name != "link":
            said = f"({option.unit}; default: " if option.unit else "(default: "
            assert f"{option.help} {said}{option.otherwise})".replace("- ", "-") in text


@pytest.mark.parametrize("by_variable", [False, True])
def test_help_of_a_study_is_the_same_from_anywhere(tmp_path: Path, *, by_variable: bool) -> None:
    study = str(ROOT / "locustfiles/step7.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"LOCUST_LOCUSTFILE": study} if by_variable else {}
    named = [] if by_variable else ["-f", study]
    words = [str(Path(sys.executable).with_name("locust")), *named, "--help"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert [group for group in GROUPS if f"\n{group}:\n" in done.stdout] == list(GROUPS)
    assert list(tmp_path.iterdir()) == []


VERBS = """
Accept Add Also Check Choose Compute Count Emulate Exit Find Join Judge Keep Leave Let Limit Listen
Load Look Measure Mix Name Preprocess Present Print Push Record Repeat Replay Run Seed Send Serve Set
Split State Test Trust Use Vary Watch Write
"""


def test_help_is_in_the_imperative() -> None:
    assert {option.help.partition(" ")[0] for option in OPTIONS.values()} == {*VERBS.split()}


def test_docs_run_has_the_options_of_the_launcher() -> None:
    text = help_of(PROGRAMS[1])
    own = re.findall(r"^  (?:-\w.*, )?(--[a-z-]+)", text.partition(f"\n{GROUPS[0]}:")[0], re.MULTILINE)
    rows = (ROOT / "docs/run.md").read_text(encoding="utf-8").partition("any option of a study")[2]
    told = re.findall(r"^\| `(--?[a-z-]+)`", rows.partition("\n\n`")[0], re.MULTILINE)
    assert sorted(told) == sorted({*own, "-f"} - {"--help", "--locustfile"})
    assert len(told) == 7


def test_help_of_a_plain_locustfile_has_none_of_ours(tmp_path: Path) -> None:
    plain = tmp_path / "plain.py"
    plain.write_text("from locust import User\n\n\nclass Plain(User):\n    pass\n")
    words = [sys.executable, "-m", "locust", "-f", str(plain), "--help"]
    text = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--locustfile" in text
    assert "--channels" not in text


def test_the_web_form_asks_for_what_is_meant_for_it() -> None:
    parser = get_parser(default_config_files=[])
    add_options(parser)
    ours = {flag(name)[2:].replace("-", "_"): option for name, option in OPTIONS.items()}
    shown = [name for name in parser.args_included_in_web_ui if name in ours]
    assert shown == [name for name, option in ours.items() if option.in_form]
    assert {"rates", "channels", "warm_up", "study"} <= set(shown)
    assert parser.args_included_in_web_ui["study"].choices == ("quick", "full")
