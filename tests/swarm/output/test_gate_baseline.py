"""The baseline of a study's gate: what is refused before any load, and which one is taken."""

from pathlib import Path

import pytest

from reports.gates.baseline import baseline_text
from tests.swarm.output.test_gate import P50, gate, refusal

TO_BASELINE = "[[threshold]]\nrequire = 'latency_p50_ms / baseline <= 1'\n"


def test_a_baseline_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "a threshold refers to a baseline, and none is given; give --baseline" in refusal(
        tmp_path, TO_BASELINE
    )
    said = refusal(tmp_path, f"{TO_BASELINE}[baseline]\nplace = 'b'")
    assert said.startswith("--gate DIR/t.toml: [baseline] place DIR/b: is neither a directory")
    said = refusal(tmp_path, TO_BASELINE, "--baseline", str(tmp_path / "b"))
    assert said.startswith("--baseline DIR/b: is neither a directory with a ledger.jsonl nor a readable file")
    (tmp_path / "b").mkdir()
    assert "is neither" in refusal(tmp_path, TO_BASELINE, "--baseline", str(tmp_path / "b"))


def test_the_option_goes_before_the_files_own_baseline(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(baseline_text([]))
    text = f"{TO_BASELINE}[baseline]\nplace = 'a.json'"
    assert gate(tmp_path, text).baseline == str(tmp_path / "a.json")
    given = gate(tmp_path, text, "--baseline", str(tmp_path / "b.json"))
    assert given.baseline == str(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("cell,endpoint\n", "is no baseline that this program reads"),
        ('{"kind": "other", "version": 1, "studies": []}', "its kind is 'other', its version 1"),
        ('{"kind": "inferswarm-baseline", "version": 9, "studies": []}', "its version 9"),
        ('{"kind": "inferswarm-baseline", "version": 1}', "KeyError('studies')"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "b.json").write_text(content)
    said = refusal(tmp_path, TO_BASELINE, "--baseline", str(tmp_path / "b.json"))
    assert said.startswith("--baseline DIR/b.json: is no baseline that this program reads (")
    assert said.endswith("make it with `python -m reports baseline DIR`")
    assert why in said


def test_a_baseline_that_no_threshold_is_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(baseline_text([]))
    said = refusal(tmp_path, P50, "--baseline", str(tmp_path / "b.json"))
    assert said.startswith(
        "--baseline DIR/b.json: no threshold in DIR/t.toml refers to a baseline; leave it out"
    )
    assert gate(tmp_path, f"{P50}[baseline]\nplace = 'b.json'").baseline == "", "it is for other thresholds"
