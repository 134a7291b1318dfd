"""A load profile in a TOML file: what it becomes, and one sentence for each that is none."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import re
from pathlib import Path

import pytest

from swarm.options.profile_file import profile_text
from users.load.profile_text import GIVE_POINTS, shares

ROOT = Path(__file__).parents[3]
FLAT = "points = [[0, 1], [5, 1]]"


def written(folder: Path, text: str) -> str:
    place = folder / "course.toml"
    place.write_text(text, encoding="utf-8")
    return str(place)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("points = [[0, 0.1], [20, 1.0], [60, 1]]", "points:0=0.1,20=1.0,60=1"),
        ("points = [[0, 0], [20, 1], [20, 0.5], [60, 0.5]]\nstages = ['rush hour', 'night']",
         "points:0=0,20=1 rush hour,20=0.5,60=0.5 night"),
    ],
)  # fmt: skip
def test_a_file_becomes_a_text_that_workers_need_no_file_for(tmp_path: Path, text: str, read: str) -> None:
    assert profile_text(written(tmp_path, text)) == read
    assert profile_text(read) == read
    names = [stretch.name for stretch in shares(read)]
    assert names == (["rush hour", "night"] if "rush" in text else ["0-20 s", "20-60 s"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("points = [[0, 1], [2, 1]", "is not TOML (Unclosed array"),
        (f"{FLAT}\nname = 'x'", "name is not a field of a load profile: use points and stages"),
        *((f"points = {points}", GIVE_POINTS)
          for points in ("3", "[]", "[[0, 1]]", "[[0, 1], [5]]", "[[0, 1], [5, true]]", "[[0, 1], [5, nan]]",
                         "[[0, 1], ['5', 1]]")),
        ("", GIVE_POINTS),
        ("points = [[0, 1], [5, 1.2]]", "points: 1.2 is no share of the peak"),
        (f"{FLAT}\nstages = ['a', 'b']", "stages: 2 names for 1 stages; name each, or none"),
        *((f"{FLAT}\nstages = {names}", "stages: give names of up to 40 characters without a comma")
          for names in ("'a'", "[1]", "['a,b']", "['']", f"['{41 * 'a'}']")),
    ],
)  # fmt: skip
def test_what_a_file_lacks(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        profile_text(written(tmp_path, text))
    assert str(caught.value).startswith(said)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read \(No such file or directory\): name a TOML file"):
        profile_text(str(tmp_path / "course.toml"))


def test_the_page_on_traffic_says_what_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs/traffic.md").read_text(encoding="utf-8")
    page = page.partition("## Profiles")[2].partition("\n## ")[0]
    texts = re.findall(r"^\| `([a-z]+:[^`]+)`", page, re.MULTILINE)
    assert [text.partition(":")[0] for text in texts] == ["ramp", "steps", "spikes", "sine"]
    assert [sum(one.seconds for one in shares(text)) for text in texts] == [80, 120, 120, 180]
    (toml,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    found = shares(profile_text(written(tmp_path, toml)))
    assert [(one.name, one.seconds, one.first) for one in found] == [
        *(("morning", 20, 0.1), ("noon", 40, 1.0), ("night", 10, 0.0)),
    ]
