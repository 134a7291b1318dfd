"""Endpoints of any model: described by a URL or a file, probed, studied, judged against each other."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.planting.processes import address_of, servers
from benchmarks.planting.setup import Setup
from benchmarks.planting.setup import emulated as emulated_by
from tests.locustfiles.console import LOCUST, ONCE, ROOT, Console, few_pictures
from tests.processes import wait_until
from tests.stand_ins import stand_in

pytestmark = pytest.mark.system

TOKEN = "a-key-of-nobody"
FILE = """
url = "http://{address}/v1/embeddings"
model = "any"
{more}
[headers]
x-api-key = "${{ANY_KEY}}"
[body]
json = {{ model = "any", input = ["$data_url"] }}
[answer]
vectors = "data[].embedding"
order = "data[].index"
[times]
headers = {{ x-infer-ms = "compute ms" }}
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with stand_in("any_server.py", "--token", TOKEN) as found:
        yield found


def file_of(folder: Path, address: str, more: str = "", swap: str = "") -> str:
    """An endpoint's file, `swap` being `OLD=>NEW` of its texts."""
    text = FILE.format(address=address, more=more)
    if swap:
        old, _, new = swap.partition("=>")
        assert old in text
        text = text.replace(old, new)
    path = folder / "any.toml"
    path.write_text(text)
    return str(path)


def run(folder: Path, *arguments: str) -> Console:
    """A short generic study."""
    amounts = ("--iterations", "3", "--seconds", "0.3", "--warm-up", "0.3", *ONCE, *few_pictures())
    command = [LOCUST[0], "-f", "locustfiles/study.py", "--headless", "--results-dir", str(folder)]
    return Console([*command, *amounts, *arguments], folder, ANY_KEY=TOKEN)


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `inferswarm probe` says."""
    command = [sys.executable, "-m", "swarm", "probe", *arguments, *few_pictures()]
    return subprocess.run(
        command, cwd=ROOT, env={"PATH": "", "ANY_KEY": TOKEN}, capture_output=True, text=True, timeout=60
    )


def test_a_service_that_a_file_describes_is_measured(tmp_path: Path, address: str) -> None:
    more = ("--batches", "1,3", "--levels", "1,2", "--max-failure-ratio", "0")
    with run(tmp_path, "--endpoint", f"mine={file_of(tmp_path, address)}", *more) as console:
        assert console.wait(60) in (0, 3), console.text
    rows = console.cells()
    assert {row["cell"] for row in rows} == {
        f"mine/b{batch}/c{users}" for batch in (1, 3) for users in (1, 2)
    }
    assert {row["failures"] for row in rows} == {"0"}
    told = {(row["backend"], row["protocol"], row["payload"], row["model"], row["codec"]) for row in rows}
    assert told == {("service", "http", "jpeg", "any", "declared-http")}
    assert all(float(row["server_compute_ms"]) == pytest.approx(1.5) for row in rows)
    about = console.ledger()[0]["endpoints"]["mine"]
    assert (about["dimension"], about["space"]) == (24, "any")
    page = (console.result() / "report.html").read_text() + console.text
    assert TOKEN not in page + (console.result() / "ledger.jsonl").read_text()
    assert "Hypotheses" not in page
    assert "published" not in page


@pytest.mark.parametrize(
    ("target", "swap", "sentence"),
    [
        ("siglip", "", "choose one with --output"),
        ("depth", "", "a picture input of 4 channels"),
        ("", "/v1/embeddings=>/wordy", "no 'data' in the answer, which has object, result"),
        ("", "ANY_KEY=>NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ("", "/v1/embeddings=>/one", "set max_batch = 1"),
        ("", "nowhere", "cannot be read"),
    ],
    ids=["outputs", "channels", "path", "header", "one row", "no file"],
)
def test_each_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path, address: str, target: str, swap: str, sentence: str
) -> None:
    asked = f"triton+http://{address}/{target}"
    if not target:
        asked = "/nowhere.toml" if swap == "nowhere" else file_of(tmp_path, address, swap=swap)
    with run(tmp_path, "--endpoint", f"mine={asked}") as console:
        assert console.wait(30) == 2, console.text
        (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
        assert sentence in line
        assert line.startswith("inferswarm: --endpoint mine")
        assert "Traceback" not in console.text
        assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
        wait_until(lambda: not console.left_behind(), 12, lambda: console.text)


def test_one_item_a_request_is_measured_where_the_file_says_so(tmp_path: Path, address: str) -> None:
    one = file_of(tmp_path, address, more="max_batch = 1", swap="/v1/embeddings=>/one")
    with run(tmp_path, "--endpoint", f"mine={one}", "--batches", "1,2", "--levels", "1") as console:
        assert console.wait(60) in (0, 3), console.text
    assert [row["cell"] for row in console.cells()] == ["mine/b1/c1"]
    assert "mine takes at most 1 item per request: batch 2 is left out" in console.text


def test_a_probe_shows_what_there_is_and_writes_nothing_unasked(tmp_path: Path, address: str) -> None:
    done = probe(f"mine={file_of(tmp_path, address)}")
    assert done.returncode == 0, done.stderr
    assert "2 rows, in the order sent" in done.stdout
    assert "24 numbers, not of length 1" in done.stdout
    assert "with each answer: compute" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["any.toml"]


def test_a_probe_of_rows_in_another_order_says_so(tmp_path: Path, address: str) -> None:
    done = probe(file_of(tmp_path, address, swap='order = "data[].index"=>'))
    assert done.returncode == 0, done.stderr
    assert "2 rows, but they differ from those of the single items" in done.stdout


def test_a_codec_of_ones_own_is_one_file(tmp_path: Path, address: str) -> None:
    """That of docs/endpoints.md."""
    (shown,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/endpoints.md").read_text(), re.DOTALL)
    (tmp_path / "mine.py").write_text(shown)
    place = tmp_path / "own.toml"
    place.write_text(f'url = "http://{address}/"\ncodec = "mine.py"\n[headers]\nx-api-key = "${{ANY_KEY}}"\n')
    with run(tmp_path, "--endpoint", f"own={place}", "--batches", "2", "--levels", "1") as console:
        assert console.wait(60) in (0, 3), console.text
    (row,) = console.cells()
    assert row["failures"] == "0"
    assert row["codec"].endswith("mine.py")


def test_a_written_file_asks_the_same(tmp_path: Path, emulated: str) -> None:
    out = tmp_path / "found.toml"
    done = probe(f"triton+grpc://{emulated}/emulated", "--out", str(out))
    assert done.returncode == 0, done.stderr
    told = tomllib.loads(out.read_text())
    assert told["url"] == f"triton+grpc://{emulated}/emulated"
    assert told["output"] == "embedding"
    again = probe(f"same={out}")
    assert again.returncode == 0, again.stderr
    here, there = (text.splitlines()[1:-2] for text in (done.stdout.partition("\nWritten")[0], again.stdout))
    unlike = ("guessed", "first answer")
    said, again_said = ([s for s in text if not any(word in s for word in unlike)] for text in (here, there))
    assert said == again_said


@pytest.fixture(scope="module")
def emulated() -> Iterator[str]:
    """The gRPC address of a real tritonserver whose model sleeps for 60 ms."""
    with triton("60+0") as found:
        yield found


@contextmanager
def triton(profile: str) -> Iterator[str]:
    """One of its own."""
    setup = Setup("slow", "", "emulated-grpc", emulated_by(profile))
    with servers(setup, "127.0.0.1") as ready:
        yield address_of(setup, ready, "127.0.0.1")


@pytest.mark.slow
def test_old_and_new_of_one_kind_in_one_study_are_judged(tmp_path: Path, emulated: str) -> None:
    with triton("60+0") as alike, triton("69+0") as slower:
        places = {"old": emulated, "alike": alike, "slower": slower}.items()
        targets = [f"{name}=triton+grpc://{place}/emulated" for name, place in places]
        asked = [word for target in targets for word in ("--endpoint", target)]
        bound = '[[threshold]]\nrequire = "{} / old >= 0.95"\nof = "images_per_s"\n'
        (tmp_path / "thresholds.toml").write_text(bound.format("alike") + bound.format("slower"))
        gate = ("--gate", str(tmp_path / "thresholds.toml"), "--levels", "1", "--repeats", "6")
        amounts = ("--iterations", "40", "--seconds", "2", "--warm-up", "5")
        with run(tmp_path, *asked, *gate, *amounts) as console:
            assert console.wait(240) == 1, console.text
    verdicts = json.loads((console.result() / "gates.json").read_text())["verdicts"]
    found = {verdict["require"].partition(" ")[0]: verdict["outcome"] for verdict in verdicts}
    assert found["slower"] == "fail", verdicts
    assert found["alike"] in ("pass", "inconclusive"), verdicts
