"""thresholds.toml, kept files and options with something wrong: one sentence that names it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.__main__ import main
from reports.gates.require import GateError
from reports.gates.thresholds import read_gates
from tests.bad_input import Tally, is_clear, said_by, tried
from tests.bad_toml import bad_tomls
from tests.reports.bad_ledgers import WHOLE

pytestmark = pytest.mark.slow

TALLY = Tally(thresholds=1_280, baselines=270, csv_files=95, verdicts=85, options_of_reports=345)
FIELDS = {
    "require": "'latency_p99_ms <= 120'",
    **{"cell": "'*'", "endpoint": "'onnx-http'", "batch": "1", "level": "[1, 8]", "name": "'a'"},
    **{"severity": "'fail'", "abort_after_s": "5", "least_effect": "0.1"},
}
BASELINE = {"place": "'b.json'", "may_differ": "['cpu']"}
THRESHOLDS = bad_tomls(
    ["[[threshold]]", "[[threshold]]", "[threshold]", "", "[[thresholds]]"], FIELDS
) | bad_tomls(
    ["[[threshold]]\nrequire = 'latency_p99_ms <= 120'\n[baseline]", "[baseline]", "[[baseline]]"], BASELINE
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bad")
    (place / "study").mkdir()
    (place / "study" / "ledger.jsonl").write_bytes(WHOLE)
    (place / "good.toml").write_text("[[threshold]]\nrequire = 'latency_p95_ms / baseline <= 1'\n")
    return place


def refusal(*argv: object) -> str:
    """The one line that a command says; empty where it refuses nothing."""
    code, out, said = said_by(main, [str(one) for one in argv])
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in out + said
    if code != 2:
        return ""
    line = said.splitlines()[-1]
    assert is_clear(line), said
    # what argparse itself says comes after how the command is used
    assert said.count("\n") == 1 or said.startswith("usage: "), said
    return line


@tried(1_400)
@given(THRESHOLDS)
def test_thresholds(folder: Path, text: bytes) -> None:
    path = folder / "t.toml"
    path.write_bytes(text)
    try:
        read_gates(path)
    except GateError:
        line = refusal("gate", folder / "study", "--thresholds", path, "--quiet")
        assert line.startswith(f"inferswarm: {path}: ")
        TALLY.refused("thresholds", text)
    assert sorted(os.listdir(folder / "study")) == ["ledger.jsonl"]


KEPT = (
    b"", b"[]", b"7", b"{}", b"null", b'{"kind":"inferswarm-baseline","version":1}', b"[" * 90_000,
    b'{"kind":"inferswarm-baseline","version":2,"studies":[]}', b"\xff", b'{"kind":NaN}', b'{"verdicts":7}',
    b'{"kind":"inferswarm-baseline","version":1,"studies":[{}]}', b'{"verdicts":[{}]}', b'{"verdicts":[[]]}',
)  # fmt: skip


def cut(text: bytes) -> st.SearchStrategy[bytes]:
    """The text with some bytes lost or others in their place."""
    at = st.integers(0, len(text) - 1)
    put = st.binary(max_size=4) | st.sampled_from((b'"', b"null", b"1e999", b"-1", b"[]", b"{}", b",", b"\n"))
    return st.builds(lambda at, lost, put: text[:at] + put + text[at + lost :], at, st.integers(1, 40), put)


@pytest.fixture(scope="module")
def kept(folder: Path) -> bytes:
    path = folder / "kept.json"
    assert said_by(main, ["baseline", str(folder / "study"), "--out", str(path)])[0] == 0
    return path.read_bytes()


@tried(300)
@given(st.data())
def test_baselines(folder: Path, kept: bytes, data: st.DataObject) -> None:
    text, path = data.draw(st.sampled_from(KEPT) | cut(kept)), folder / "b.json"
    path.write_bytes(text)
    argv = (
        "gate",
        folder / "study",
        "--thresholds",
        folder / "good.toml",
        "--out",
        folder / "out",
        "--quiet",
    )
    if line := refusal(*argv, "--baseline", path):
        assert f"baseline {path}: " in line or f"{path}: " in line
        TALLY.refused("baselines", text)


@tried(160)
@given(st.data())
def test_files_as_cells_csv_is(folder: Path, kept: bytes, data: st.DataObject) -> None:
    whole = "\n".join(json.loads(kept)["studies"][0]["cells_csv"]).encode()
    text, path = (
        data.draw(cut(whole) | st.sampled_from((b"", b"\x00", b"a,b\n1,2\n", b"\xff\n"))),
        folder / "c.csv",
    )
    path.write_bytes(text)
    if line := refusal("compare", folder / "study", path, "--out", folder / "out", "--quiet"):
        assert str(path) in line
        TALLY.refused("csv_files", text)


@pytest.fixture(scope="module")
def judged(folder: Path) -> bytes:
    (folder / "judged").mkdir()
    (folder / "judged" / "ledger.jsonl").write_bytes(WHOLE)
    (folder / "one.toml").write_text("[[threshold]]\nrequire = 'latency_p99_ms <= 120'\n")
    said_by(main, ["gate", str(folder / "judged"), "--thresholds", str(folder / "one.toml"), "--quiet"])
    return (folder / "judged" / "gates.json").read_bytes()


@tried(130)
@given(st.data())
def test_verdicts(folder: Path, judged: bytes, data: st.DataObject) -> None:
    text, path = data.draw(st.sampled_from(KEPT) | cut(judged)), folder / "judged" / "gates.json"
    path.write_bytes(text)
    if line := refusal("show", folder / "judged", "--quiet"):
        assert line.startswith(f"inferswarm: {path}: is not what gates leave (")
        TALLY.refused("verdicts", text)


WORDS = st.sampled_from(
    ("", " ", "\0", "\n", "\x1b[2J", "x", "-1", "nan", "1e999", "9" * 5_000, "é" * 3, "../x", "*")
)
TEXT = st.text(max_size=8) | WORDS | st.builds(lambda one: one * 300_000, st.sampled_from("xé\n\x1b"))
OPTIONS = st.sampled_from(
    (
        *(
            "show {} --quiet --usd-per-hour",
            "calibrate {} --pairs",
            "calibrate {} --measure",
            "calibrate {} --cells",
        ),
        *(
            "compare {} --quiet",
            "show",
            "gate {} --quiet --thresholds",
            "compare {} --quiet --out /dev/null --nope",
        ),
        *("baseline", "baseline {} --out /proc/none", "gate {} --quiet --baseline", "none"),
    )
)


@tried(450)
# argparse ends a line with what was typed
@given(OPTIONS, TEXT.filter(lambda text: "\0" not in text and not text.endswith((":", ";", ","))))
def test_options(folder: Path, command: str, text: str) -> None:
    words = [word.format(folder / "study") for word in command.split()]
    if "--out" in words:
        words[-1] += f"/{text}"
    else:
        words.append(text)
    if refusal(*words):
        TALLY.refused("options_of_reports", (command, text))


def no_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def an_endless_file(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("made", [no_file, a_pipe, a_folder, an_endless_file, a_link_to_itself])
@pytest.mark.parametrize("command", ["show", "gate", "baseline", "thresholds", "place", "side"])
def test_what_is_no_file_is_refused_at_once(
    folder: Path, tmp_path: Path, made: Callable[[Path], None], command: str
) -> None:
    path = tmp_path / ("ledger.jsonl" if command in ("show", "gate") else "f")
    made(path)
    out = ("--out", tmp_path / "out", "--quiet")
    argv: dict[str, tuple[object, ...]] = {
        "show": ("show", tmp_path, "--quiet"),
        "gate": ("gate", tmp_path, "--thresholds", folder / "good.toml", *out),
        "baseline": ("baseline", path, "--out", tmp_path / "out"),
        "thresholds": ("gate", folder / "study", "--thresholds", path, *out),
        "place": ("gate", folder / "study", "--thresholds", folder / "good.toml", "--baseline", path, *out),
        "side": ("compare", folder / "study", path, *out),
    }
    assert str(path) in refusal(*argv[command])


def test_enough_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    TALLY.tell(capsys)
