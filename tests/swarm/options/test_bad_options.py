"""Options of a study with something wrong, thousands of them: one sentence that names the option."""

from locust.argument_parser import get_empty_argument_parser

import argparse
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from swarm import __main__ as program
from swarm.errors import UsageError
from swarm.hosts import command as hosts
from swarm.options.model import flag, known_options
from swarm.options.parse import add_options, resolve
from swarm.plan.sweep import cross
from swarm.targets.endpoints import FIVE, chosen
from tests.bad_input import Tally, is_clear, said_by, tried
from users.backends.registry import url_options
from users.inputs.images import load_images
from users.inputs.pictures import ImageSetError

pytestmark = pytest.mark.slow

TALLY = Tally(typed=550, filled_in=2_080, endpoints=260, pictures=150, of_swarm=160)

WORDS = (
    "", " ", ",", ",,", "\0", "\n", "\x1b[2J", "x", "-1", "0", "1", "0.5", "nan", "inf", "-inf",
    "1e999", "1e308", "9" * 400, "9" * 5_000, "1,2", "1@2", "2@1", "0@0", "pool:0", "pool:" + "9" *
    5_000, "shared", "p99<=100", "p99<=" + "9" * 400, "p99<=0", "p98<=1", "p99 <= 5 ms", "hold:5",
    "hold:1e308", "hold:-1", "ramp:1,ramp:1", "cool:1,ramp:1", "ramp", ":", "ramp:", "٣", "²",
    "1_000", "0x10", "constant", "poisson", "prepared", "library", "lan", "none", "*", "[",
    "onnx-*", "$(id)", "; rm -rf /", "../../x", "http://[::1", "h:99999", "http://u:p@h:1",
    "\ud800", "\u202e", "é" * 3, "true", "None", "a b", "50,100", "50,50.0000001",
)  # fmt: skip
VALUE = (
    st.sampled_from(WORDS)
    | st.text(max_size=6)
    | st.builds(lambda one: one * 20_000, st.sampled_from("x9é\n,"))
)


def parser() -> argparse.ArgumentParser:
    made = get_empty_argument_parser(default_config_files=[])
    add_options(made)
    return made  # type: ignore[no-any-return]


PARSER, OPTIONS = parser(), known_options()
UNSET = resolve(PARSER.parse_args([]))
NAMES = {
    flag(name)[2:].replace("-", "_"): flag(name) for name, one in OPTIONS.items() if name not in url_options()
}
TYPED = [name for name in NAMES if OPTIONS[name.replace("study", "size")].default is not False]


def form_of(name: str, text: str) -> str | list[str]:
    """As the parser has it."""
    return [text] if OPTIONS[name.replace("study", "size")].repeated else text


def refusal(parsed: argparse.Namespace) -> str:
    """The sentence of one that is refused; empty where all of it is taken."""
    try:
        made = resolve(parsed)
    except UsageError as error:
        return str(error)
    _ = cross((), made.axes), made.to_record()
    return ""


@tried(2_600)
@given(st.dictionaries(st.sampled_from(TYPED), VALUE, min_size=1, max_size=3))
def test_fields_of_the_form(given_texts: dict[str, str]) -> None:
    parsed = PARSER.parse_args([])
    vars(parsed).update({name: form_of(name, text) for name, text in given_texts.items()})
    if said := refusal(parsed):
        named = [one for one in (*NAMES.values(), *map(flag, url_options())) if one in said]
        assert named, said
        assert is_clear(said), said
        TALLY.refused("filled_in", tuple(sorted(given_texts.items())))


@tried(900)
@given(st.sampled_from(TYPED), VALUE.filter(lambda text: "\0" not in text))
def test_what_is_typed(name: str, text: str) -> None:
    def typed(argv: list[str]) -> int:
        try:
            parsed = PARSER.parse_args(argv)
        except UsageError as error:
            parsed, said = None, str(error)
        if parsed is not None:
            said = refusal(parsed)
        print(said)
        return 2 if said else 0

    code, out, err = said_by(typed, [f"{NAMES[name]}={text}"])
    if code:
        line = (err or out).splitlines()[-1]
        assert NAMES[name] in line
        assert "Traceback" not in err
        TALLY.refused("typed", (name, text))


@tried(300)
@given(VALUE)
def test_endpoints(text: str) -> None:
    try:
        found = chosen(FIVE, replace(UNSET, endpoints=text))
    except UsageError as error:
        said = str(error)
    else:
        assert found
        return
    assert said.startswith("--endpoints ")
    assert is_clear(said)
    TALLY.refused("endpoints", text)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pictures")
    for name in ("a.jpg", "b.png"):
        Image.effect_noise((40, 30), 60).save(place / name)
    return place


@tried(260)
@given(st.data())
def test_pictures(pictures: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = pictures / "bad"
    place.mkdir(exist_ok=True)
    for path in place.iterdir():
        path.unlink()
    name = data.draw(st.sampled_from(("a.jpg", "b.png")))
    whole = (pictures / name).read_bytes()
    at, lost = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.sampled_from((0, 1, 40, len(whole))))
    text = whole[:at] + data.draw(st.binary(max_size=8)) + whole[at + lost :]
    (place / name).write_bytes(text)
    try:
        load_images(str(place))
    except ImageSetError as error:
        said = str(error)
    else:
        return
    assert said.startswith("--images")
    assert is_clear(said)
    TALLY.refused("pictures", (name, text))


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "endless"])
def test_pictures_that_are_no_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.jpg"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else "/dev/zero")
    with pytest.raises(ImageSetError, match=r"a\.jpg is not a readable JPEG or PNG picture; remove it"):
        load_images(str(tmp_path))


COMMANDS = st.sampled_from(
    (
        *("run -f /none.py --hosts {}", "run --workers {}", "run -f {}", "hosts check {}/none", "{}"),
        *("hosts {}", "link --links {}"),
    )
)


@tried(200)
@given(COMMANDS, VALUE.filter(lambda text: text.strip() not in ("", "1") and "\0" not in text))
def test_programs_of_the_suite(command: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(program, "clean_up", lambda: None)
        patched.setattr(hosts, "report", lambda found: 0)
        patched.setattr("swarm.launcher.command.Signals", lambda: None)
        code, out, err = said_by(program.main, [word.format(text) for word in command.split()])
    assert "Traceback" not in out + err
    if code == 2:
        line = err.splitlines()[-1]
        assert is_clear(line), line
        TALLY.refused("of_swarm", (command, text))


@pytest.mark.parametrize("text", ["9" * 5_000, "999999999", "0"])
def test_so_many_hosts_are_not_made(text: str) -> None:
    with pytest.raises(UsageError, match="hosts: give 1 to 250, or a hosts"):
        hosts.hosts_named(text)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("seed", "9" * 400, "must be at most 9,223,372,036,854,775,808"),
        ("repeats", "1000000000", "must be 1 to 10,000"),
        ("max_in_flight", "1000000000", "must be 1 to 100,000"),
        ("topology", "9" * 5_000, "give worker processes, or WORKERS@HOSTS"),
        ("channels", "pool:" + "9" * 5_000, "give per-user, per-request, shared, same-args or pool:N"),
        ("find_rate", "p99<=" + "9" * 400, "give p50, p90, p95, p99 or p99.9 and ms"),
    ],
)
def test_numbers_that_would_fill_the_memory(name: str, text: str, sentence: str) -> None:
    parsed = PARSER.parse_args([])
    vars(parsed)[name] = text
    assert sentence in refusal(parsed)


def test_rates_of_one_name_are_one_rate() -> None:
    assert resolve(PARSER.parse_args(["--rates", "50,50.0000001"])).rates == (50.0,)


def test_enough_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    TALLY.tell(capsys)
