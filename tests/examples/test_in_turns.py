"""The script that measures two servers in turns, with stand-ins for locust and inferswarm."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "examples/ci/in_turns.sh"
STUDY = """#!/usr/bin/env bash
echo "$@" >> calls
while [ $# -gt 0 ]; do
  case $1 in --results-dir) mkdir -p "$2/study-$(wc -l < calls)" ;; esac
  shift
done
exit $(cat code)
"""
JUDGE = '#!/usr/bin/env bash\necho "$@" > judged\nexit 1\n'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a file of thresholds and stand-ins that write down how they were called."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name, text in (("locust", STUDY), ("inferswarm", JUDGE)):
        program = tmp_path / ".venv/bin" / name
        program.write_text(text)
        program.chmod(0o755)
    (tmp_path / "code").write_text("3")
    (tmp_path / "bounds.toml").touch()
    return tmp_path


def run(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments], cwd=here, capture_output=True, text=True, timeout=60, check=False
    )


def test_neither_is_always_first_and_the_gates_code_is_its_own(here: Path) -> None:
    done = run(here, "3", "bounds.toml", "--a-url 1:1", "--b-url 2:2", "-f", "x.py", "--cells", "a b")
    assert (done.returncode, done.stdout) == (1, "turn 1 of 3\nturn 2 of 3\nturn 3 of 3\n")
    calls = (here / "calls").read_text().splitlines()
    assert ["--a-url 1:1" in call for call in calls] == [True, False, False, True, True, False]
    assert all(call.endswith("-f x.py --cells a b") and "--repeats 1" in call for call in calls)
    judged = (here / "judged").read_text()
    new, old = judged.split("--baseline")
    assert (new.count("/new/study-"), old.count("/old/study-")) == (3, 3)
    assert "--thresholds bounds.toml --out results/turns-" in judged


@pytest.mark.parametrize("turns", ["abc", "2", ""])
def test_turns_must_be_a_number_of_three_or_more(here: Path, turns: str) -> None:
    done = run(here, turns, "bounds.toml", "a", "b")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: in_turns.sh TURNS")
    assert not (here / "results").exists()


def test_thresholds_are_looked_for_first(here: Path) -> None:
    done = run(here, "3", "bouds.toml", "a", "b")
    assert done.returncode == 2
    assert done.stderr == "in_turns.sh: bouds.toml cannot be read: name a file of thresholds.\n"
    assert not (here / "calls").exists()


@pytest.mark.parametrize("code", ["2", "127", "137"])
def test_a_study_that_could_not_be_made_ends_it(here: Path, code: str) -> None:
    (here / "code").write_text(code)
    assert run(here, "3", "bounds.toml", "a", "b").returncode == 2
    assert len((here / "calls").read_text().splitlines()) == 1
    assert not (here / "judged").exists()
