"""What docs/architecture.md says of adding something is true: one row, or one rule, and all others ask it."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.caveat import KINDS, CaveatKind, Trait
from reports.caveats.rate_bound import RateBound
from reports.limit import Limit
from reports.limits import rules
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book

ROOT = Path(__file__).parent.parent
MS = 1_000_000
TOY, ADVICE, WHY = "toy", "Put the toy away, then run again.", "a toy lay in the way"
GATE = '[[threshold]]\nrequire = "failure_ratio <= 0.5"\n'


def written(folder: Path, *, doubted: bool) -> Path:
    """A study of one run, which a program that knew a toy has doubted, or not."""
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 1_000})
    if doubted:
        book.caveat(tag, TOY, "a toy was seen")
    book.footer()
    (folder / "thresholds.toml").parent.mkdir(parents=True)
    (folder / "thresholds.toml").write_text(GATE)
    return book.write(folder)


def told(folder: Path, detail: str) -> dict[str, str]:
    """The one row of the CSV, where the pages have the detail and the advice."""
    for page in ("report.html", "summary.md"):
        assert detail in (folder / page).read_text()
        assert ADVICE in (folder / page).read_text()
    (row,) = csv.DictReader((folder / "cells.csv").read_text().splitlines())
    return row


@pytest.mark.parametrize("traits", [Trait(0), Trait.TAINTS])
def test_a_kind_of_caveat_is_a_row_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traits: Trait
) -> None:
    """The report, its CSV, the gates and a search go by what the row says."""
    monkeypatch.setitem(KINDS, TOY, CaveatKind(ADVICE, traits, WHY if traits else ""))
    folder = written(tmp_path / "a", doubted=True)
    assert main(["show", "--quiet", str(folder)]) == 0
    assert TOY in told(folder, "a toy was seen")["caveats"].split(";")
    assert main(["gate", str(folder)]) == 3
    assert (TOY in (folder / "gates.md").read_text()) == bool(traits)
    assert json.loads((folder / "study.json").read_text())["inconclusive_because"] == [TOY] * bool(traits)
    (run,) = load_study(folder).runs
    assert run.tainted == bool(traits)
    assert RateBound("p50", 100).met_by(run) is (None if traits else True)


def test_a_limit_is_a_rule_in_one_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def toy(run: Summary) -> Limit | None:
        return Limit(TOY, "it was in the way", ADVICE) if run.batch == 1 else None

    monkeypatch.setattr(rules, "RULES", (*rules.RULES[:1], toy, *rules.RULES[1:]))
    folder = written(tmp_path / "a", doubted=False)
    assert main(["show", "--quiet", str(folder)]) == 0
    assert told(folder, "it was in the way")["limit"] == TOY


def example(section: str) -> str:
    """The lines that a section of the page adds."""
    text = (ROOT / "docs/architecture.md").read_text().partition(f"\n### {section}\n")[2]
    (found,) = re.findall(r"```diff\n(.*?)```", text.partition("\n## ")[0].partition("\n### ")[0], re.DOTALL)
    return str(found)


def added(place: Path) -> list[str]:
    """Copies the rooms and adds the lines of the worked example; the files that it touches."""
    for room in ("reports", "swarm", "users"):
        shutil.copytree(ROOT / room, place / room, ignore=shutil.ignore_patterns("__pycache__"))
    names, texts = example("A new axis").split("+++ ")[1:], []
    for part in names:
        name, _, lines = part.partition("\n")
        before = "".join(line[1:] for line in lines.splitlines(True) if line[0] == " ")
        more = "".join(line[1:] for line in lines.splitlines(True) if line[0] == "+")
        source = (place / name).read_text()
        assert source.count(before) == 1, f"{name} has no such place"
        (place / name).write_text(source.replace(before, before + more))
        texts.append(name)
    return texts


def run_in(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with the copies before our own rooms."""
    environ = {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{ROOT}"}
    return subprocess.run([sys.executable, *words], cwd=place, env=environ, capture_output=True, text=True)


def test_an_axis_is_declared_in_two_files_and_obeyed_in_two(tmp_path: Path) -> None:
    """Parsed, refused, crossed, named, planned, handed to users, a column, a label, chosen by thresholds."""
    assert len(set(added(tmp_path))) == 4
    done = run_in(tmp_path, "-m", "tests.a_new_axis", str(tmp_path / "study"))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["imported"] == str(tmp_path / "reports/ledger/axes.py")
    assert found["help"] == "--backoff-ms MS[,…] How long a user waits after each failure (ms; default: none)"
    assert found["in_form"]
    assert found["refused"] == "--backoff-ms 1s: must be 0 to 60,000"
    names = ["pytorch-http/b1/c8/backoff-0ms", "pytorch-http/b1/c8/backoff-250ms"]
    assert found["planned"] == [[names[0], 0], [names[1], 250]]
    assert found["of_users"] == 250
    head, *rows = csv.reader((tmp_path / "study/cells.csv").read_text().splitlines())
    at = head.index("backoff_ms")
    assert [(row[1], row[at]) for row in rows] == [(names[0], "0"), (names[1], "250")]
    for page in ("report.html", "summary.md"):
        assert "pytorch-http backoff-250ms" in (tmp_path / "study" / page).read_text()
    verdicts = json.loads((tmp_path / "study/gates.json").read_text())["verdicts"]
    assert [one["cell"] for one in verdicts if one["threshold"]] == [names[1]]


TRY_CODEC = """
import struct
import sys

from locust import User
from swarm.options.parse import resolve
from swarm.targets.discover import described, own_endpoints
from tests.swarm.options.test_parse import parsed
from users.backends.registry import codec_of
from users.http2.call import GrpcAnswer
from users.inputs.images import ImageSet

options = resolve(parsed("--endpoint", f"raw={sys.argv[1]}"))
(endpoint,) = described(own_endpoints(options), options)
codec = codec_of(endpoint)
request = codec.prepare(ImageSet((b"one", b"two"), "test"), (1,))
answer = GrpcAnswer(struct.pack("<3f", 1, 2, 4.5))
print(endpoint.name, codec.name, codec.path, request.body, codec.vectors(answer).tolist())
"""


@pytest.mark.parametrize("own", [False, True], ids=["among ours", "a file of one's own"])
def test_a_codec_is_one_file(tmp_path: Path, own: bool) -> None:
    """In users/codecs by its name, or beside the endpoint that names it; nothing else is touched."""
    shutil.copytree(ROOT / "users", tmp_path / "users", ignore=shutil.ignore_patterns("__pycache__"))
    code, toml = example("A new codec").split("+++ ")[1:]
    name, lines = code.partition("\n")[::2]
    place = tmp_path / (Path(name).name if own else name)
    assert not place.exists()
    place.write_text("".join(line[1:] for line in lines.splitlines(True)))
    text = "".join(line[1:] for line in toml.partition("\n")[2].splitlines(True))
    if not own:
        assert 'codec = "raw_file.py"' in text
        text = text.replace("raw_file.py", "raw-file")
    (tmp_path / "raw.toml").write_text(text)
    done = run_in(tmp_path, "-c", TRY_CODEC, "raw.toml")
    assert (done.stdout, done.stderr) == ("raw raw-file /vector b'two' [[1.0, 2.0, 4.5]]\n", "")
