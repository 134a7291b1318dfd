"""inferswarm gate: directories and baselines as they are named, and what it refuses of them."""

from pathlib import Path

import pytest

from reports.__main__ import main
from reports.gates.verdict import kept_in
from tests.reports.gates.outcomes import judged_place, study

PASSING = '[[threshold]]\nrequire = "latency_p50_ms <= 100"\n'
TO_BASELINE = '[[threshold]]\nrequire = "latency_p50_ms / baseline <= 1.2"\n'
MORNING, EVENING = "2026-11-20T09:00:00.000Z", "2026-11-20T21:00:00.000Z"
FILES = {"gates.json", "junit.xml", "gates.md"}
Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, in no job of GitHub Actions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def refused(capsys: Said, *arguments: str) -> str:
    assert main(["gate", *arguments]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    return told.err.removeprefix("inferswarm: ").removesuffix("\n")


def test_several_directories_are_repeats_of_one_study(here: Path) -> None:
    for name, started in (("a", MORNING), ("b", EVENING)):
        study(started_utc=started).write(here / name)
    (here / "thresholds.toml").write_text(PASSING)
    assert main(["gate", "a", "b", "--out", "out/gates", "--quiet"]) == 0
    assert names(here / "out" / "gates") == FILES
    assert names(here / "a") == names(here / "b") == {"ledger.jsonl"}
    assert all(verdict.runs == 8 for verdict in kept_in(here / "out" / "gates"))
    assert "inferswarm gate a b\n" in (here / "out" / "gates" / "gates.md").read_text()


def test_verdicts_on_a_baseline_that_is_named(here: Path) -> None:
    folder = judged_place(here / "a", '[[threshold]]\nrequire = "latency_p50_ms / baseline <= 1.2"\n')
    for day, name in enumerate(("first", "second", "third"), 1):
        study(started_utc=f"2026-11-0{day}T11:00:00.000Z").write(here / "old" / name)
    old = ["old/first", "old/second", "old/third"]
    assert main(["gate", "a", "--baseline", *old, "--quiet"]) == 0
    told = f"```\ninferswarm gate a --baseline {' '.join(old)}\n"
    assert told in (folder / "gates.md").read_text()
    assert main(["gate", "a", "--baseline", *old[:2], "--quiet"]) == 3


def test_of_several_directories_the_last_has_the_thresholds_and_no_report(here: Path) -> None:
    for name, started, thresholds in (("a", MORNING, PASSING), ("b", EVENING, PASSING.replace("100", "1"))):
        judged_place(here / name, thresholds, study(started_utc=started))
    before = names(here / "b")
    assert main(["gate", "a", "b", "--out", "b", "--quiet"]) == 1
    assert names(here / "b") == before | FILES
    assert main(["gate", "b", "a", "--out", "a", "--quiet"]) == 0


def test_a_baseline_that_is_named_goes_before_the_one_that_the_study_was_told_and_that_before_the_files(
    here: Path, capsys: Said
) -> None:
    told = study()
    told.header["options"]["baseline"] = "told"
    judged_place(here / "a", f"{TO_BASELINE}[baseline]\nplace = 'in-file'\n", told)
    judged_place(here / "b", f"{TO_BASELINE}[baseline]\nplace = 'in-file'\n")
    assert refused(capsys, "a", "--baseline", "named").startswith("baseline named: ")
    assert refused(capsys, "a").startswith("baseline told: ")
    assert refused(capsys, "b").startswith("baseline b/in-file: ")


def test_a_directory_counts_once(here: Path, capsys: Said) -> None:
    judged_place(here / "a", TO_BASELINE)
    once = "name each once."
    assert (
        refused(capsys, "a", "a", "--out", "o") == f"a: is named twice, or holds the same study as a: {once}"
    )
    assert main(["baseline", "a", "--out", "a.json"]) == 0
    capsys.readouterr()
    for named, said in (
        (("a", "a", "a"), f"a: is named twice, or holds the same study as a: {once}"),
        (("a",), f"a: is named twice, or holds the same study as a: {once}"),
        (("a.json",), f"a.json: is named twice, or holds the same study as a: {once}"),
    ):
        assert refused(capsys, "a", "--baseline", *named) == said
    assert main(["baseline", "a", "a", "--out", "a.json"]) == 2


def test_a_baseline_that_no_threshold_is_to_is_refused_where_it_is_named(here: Path, capsys: Said) -> None:
    told = study()
    told.header["options"]["baseline"] = "nowhere"
    judged_place(here / "a", f"{PASSING}[baseline]\nplace = 'nowhere, too'\n", told)
    assert main(["gate", "a", "--quiet"]) == 0
    assert refused(capsys, "a", "--baseline", "nowhere") == (
        "--baseline: no threshold in a/thresholds.toml is to a baseline: leave it out, or add one such as "
        "latency_p95_ms / baseline <= 1."
    )


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_study_that_is_not_complete_is_no_baseline(here: Path, capsys: Said, status: str) -> None:
    judged_place(here / "a", TO_BASELINE)
    cut = study(started_utc="2026-11-01T11:00:00.000Z")
    cut.records.pop()
    cut.footer(status, "Ctrl-C")
    cut.write(here / "b")
    assert refused(capsys, "a", "--baseline", "b") == (
        f"baseline b: is {status}, and what it would have measured is not known: name a complete one."
    )


def test_thresholds_that_the_study_was_told_need_not_be_there_any_more(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = study()
    book.header["options"]["gate"] = "secret.toml"
    judged_place(here / "a", PASSING, book)
    (here / "secret.toml").write_text(PASSING)
    whole = Path.read_bytes

    def unreadable(path: Path) -> bytes:
        if path.name == "secret.toml":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", unreadable)
    assert main(["gate", "a", "--quiet"]) == 0
    assert 'file="a/thresholds.toml"' in (here / "a" / "junit.xml").read_text()


def test_a_name_that_is_too_long_is_one_sentence(here: Path, capsys: Said) -> None:
    (here / "thresholds.toml").write_text(PASSING)
    assert "File name too long" in refused(capsys, "x" * 300)
