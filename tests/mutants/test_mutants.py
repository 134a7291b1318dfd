"""What counts as a mutant, and how the score is reckoned."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.__main__ import Mutant, alike, main, score

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ('fail("no such cell")', 'fail("XXno such cellXX")', True),
        ('fail("No such cell")', 'fail("no such cell")', True),
        ('find("cell", "no such cell")', 'find("cell", "NO SUCH CELL")', True),
        ('path.read_text(encoding="utf-8")', 'path.read_text(encoding="UTF-8")', True),
        ("zip(a, b, strict=True)", "zip(a, b, )", True),
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)", True),
        ('found.get("cell")', 'found.get("CELL")', False),
        ('fail("no such cell", 1)', 'fail("no such cell", 2)', False),
        ("zip(a, b, strict=True)", "zip(None, b, strict=True)", False),
        ("count > 1", "count >= 1", False),
    ],
)
def test_other_words_in_a_message_and_strictness_are_no_fault(was: str, now: str, same: bool) -> None:
    assert alike(Mutant("a.py: f", was, now)) is same


def test_the_score_leaves_out_what_types_refuse_and_what_changes_nothing() -> None:
    counts = Counter({"killed": 6, "timeout": 2, "survived": 1, "no tests": 1, "equivalent": 5})
    assert score(counts + Counter({"caught by type check": 9, "not checked": 7})) == 80.0
    assert score(Counter({"caught by type check": 9})) == 100.0


def test_every_group_has_modules_and_tests_and_every_argument_a_function() -> None:
    groups = tomllib.loads((HERE / "groups.toml").read_text(encoding="utf-8"))
    for found in groups.values():
        assert all(list(ROOT.glob(module)) for module in found["modules"])
        assert all((ROOT / tests).exists() for tests in found["tests"])
    for group, entries in tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8")).items():
        assert group in groups
        for entry in entries:
            module, _, function = entry["in"].partition(": ")
            assert f"def {function.rpartition('.')[2]}(" in (ROOT / module).read_text(encoding="utf-8")
            assert entry["was"] != entry["now"]
            assert entry["why"].strip()


def test_a_wrong_name_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["nosuch"])
    assert "nosuch is no group: give some of histogram" in capsys.readouterr().err
