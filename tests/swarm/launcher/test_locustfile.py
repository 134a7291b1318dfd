"""Studies by their names, from any folder."""

from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.launcher.locustfile import FOLDER, check_named, find_locustfile, locustfile_of, studies


def test_the_suites_studies_have_names() -> None:
    assert studies() == ["step5a", "step6a", "step6b", "step7", "step7_contention", "step8", "study"]


def test_a_name_is_a_study_and_a_file_is_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locustfile_of("step7") == str(FOLDER / "step7.py")
    for text in ("mine.py", "study"):
        (tmp_path / text).touch()
        assert locustfile_of(text) == text, "a file goes before a name"


def test_what_is_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "step7"):
        (tmp_path / name).mkdir()
    # Locust takes more than files.
    for text in ("-", "https://a/b.py", "folder"):
        assert find_locustfile(text) == text
    assert find_locustfile("step7") == str(FOLDER / "step7.py")
    for find in (find_locustfile, locustfile_of):
        with pytest.raises(UsageError) as caught:
            find("step9")
        said = f"-f step9: no such file; give a locustfile, or one of {', '.join(studies())}"
        assert str(caught.value) == said


@pytest.mark.parametrize("first", ["step7", "mine.py"])
def test_a_study_without_its_option(first: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_named([first, "--headless"])
    assert str(caught.value) == f"{first}: name a study by -f: give -f {first}"
    for rest in ([], ["EmbeddingUser"], ["--title", "step7"]):
        check_named(rest)
