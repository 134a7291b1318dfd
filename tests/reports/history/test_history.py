"""inferswarm history: what it tells of studies that the real writer left, and what it refuses."""

import csv
import json
from pathlib import Path

import fsspec
import pytest

from reports.__main__ import main
from reports.history.reading import read_history
from reports.history.series import FOLLOWED, SAME, told_series
from reports.ledger.axes import of_trait
from tests.reports.history.past import SLOW, copied, past, template

COUNT, AT = 30, 20
Rows = list[dict[str, str]]


def eight_percent(at: int, cell: str) -> float:
    return 1.08 if cell == SLOW and at >= AT else 1.0


def machine(at: int) -> dict[str, object]:
    """A new commit each time, a new driver every eighth study, and a new package where the figures change."""
    version = "1.31.1" if at >= AT else "1.30.0"
    return {"git_commit": f"{at:07x}", "driver": f"5{(at + 4) // 8}", "packages": {"onnxruntime": version}}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(tmp_path_factory.mktemp("one") / "study")


@pytest.fixture(scope="module")
def results(one: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return past(one, tmp_path_factory.mktemp("past"), COUNT, eight_percent, machine)


def run(*words: object) -> int:
    return main(["history", *map(str, words), "--quiet"])


def rows_of(folder: Path) -> Rows:
    with (folder / "history.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def changed(rows: Rows) -> Rows:
    return [row for row in rows if row["change_ratio"]]


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_change_is_found_with_what_changed_then(one: Path, tmp_path: Path, seed: int) -> None:
    assert run(past(one, tmp_path / "in", COUNT, eight_percent, machine, seed), "--out", tmp_path) == 0
    found = changed(rows_of(tmp_path))
    assert {row["cell"] for row in found} == {SLOW}
    assert {row["measure"] for row in found} <= {"images_per_s", "latency_p50_ms", "latency_p95_ms"}
    assert len(found) >= 2
    for row in found:
        assert row["change_first"] <= "2026-05-21T06:00:00Z" <= row["change_last"]
        assert abs(int(row["started_utc"][8:10]) - 21) <= 1
        planted = 1 / 1.08 if row["measure"] == "images_per_s" else 1.08
        assert float(row["change_low"]) < planted < float(row["change_high"])
        assert row["changed_then"].split(";")[0] == "packages.onnxruntime"


def test_the_page_and_the_terminal_say_it_first(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(results), "--out", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "history.html").read_text(encoding="utf-8")
    assert "Slower since 2" in said
    assert f"{SLOW}: " in said
    assert "Changed then: packages.onnxruntime 1.30.0 → 1.31.1;" in said
    assert "(changed 29 times)" in said
    assert "What changed at the same time need not be the cause." in said
    assert "packages.onnxruntime 1.30.0 → 1.31.1" in page
    assert page.count('<figure data-kind="history">') == 2


def test_without_a_change_it_says_so(one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = past(one, tmp_path / "in", 12)
    assert main(["history", str(folder), "--out", str(tmp_path), "--fail-on-regression"]) == 0
    assert "None shown of 2 % or more." in capsys.readouterr().out
    assert changed(rows_of(tmp_path)) == []


def test_a_regression_fails_only_where_it_is_asked_to_and_stands(
    one: Path, results: Path, tmp_path: Path
) -> None:
    def mended(at: int, cell: str) -> float:
        return 1.15 if cell == SLOW and 10 <= at < AT else 1.0

    assert run(results, "--out", tmp_path / "out") == 0
    assert run(results, "--out", tmp_path / "out", "--fail-on-regression") == 1
    folder = past(one, tmp_path / "in", COUNT, mended)
    assert run(folder, "--out", tmp_path / "out", "--fail-on-regression") == 0
    half = past(one, tmp_path / "half", COUNT, lambda at, cell: 1 + 0.3 * (at >= 10) - 0.1 * (at >= AT))
    assert run(half, "--out", tmp_path / "half-out", "--fail-on-regression") == 1
    ratios = [float(row["change_ratio"]) for row in changed(rows_of(tmp_path / "out"))]
    assert min(ratios) < 0.92
    assert max(ratios) > 1.08


def test_a_mended_change_is_said_to_have_ended_and_a_new_study_that_stands_out_is_named(
    one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def times(at: int, cell: str) -> float:
        return 1.15 if 10 <= at < AT else 1.3 if at == COUNT - 1 else 1.0

    assert main(["history", str(past(one, tmp_path / "in", COUNT, times)), "--out", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Slower until 20 May 2026" in said
    assert "Slower since" not in said
    assert "Newest study" in said
    assert "of the level before. No change yet: that takes 3 studies." in said


def test_a_fact_that_is_only_newly_stated_is_not_the_first_suspect(one: Path, tmp_path: Path) -> None:
    folder = past(one, tmp_path / "in", COUNT, eight_percent, machine)
    for at, study in enumerate(sorted(folder.iterdir())):
        told = json.loads((study / "study.json").read_text())
        for about in told["endpoints"].values():
            about |= {"path": "/v2/models"} if at >= AT else {}
        (study / "study.json").write_text(json.dumps(told, indent=1))
    assert run(folder, "--out", tmp_path) == 0
    for row in changed(rows_of(tmp_path)):
        assert row["changed_then"].split(";")[:2] == ["packages.onnxruntime", "endpoints.onnx-grpc.path"]


def test_options_choose_studies_cells_and_measures(results: Path, tmp_path: Path) -> None:
    chosen = ("--since", "2026-05-06", "--cells", "*-grpc/*", "--measure", "latency_p50_ms")
    assert run(results, "--out", tmp_path, *chosen) == 0
    rows = rows_of(tmp_path)
    assert len(rows) == COUNT - 5
    assert {row["cell"] for row in rows} == {SLOW}
    assert {row["measure"] for row in rows} == {"latency_p50_ms"}
    assert len(changed(rows)) == 1


def test_another_machine_begins_another_series(one: Path, tmp_path: Path) -> None:
    """Machines that take turns, one half as fast, would be the noise of one series."""
    folder = past(
        one,
        tmp_path,
        16,
        lambda at, cell: 1.0 + at % 2,
        lambda at: {"cpu": {"model": ("old", "new")[at % 2]}},
    )
    studies, _ = read_history([str(folder)])
    series = told_series(studies, FOLLOWED[:1], lambda cell: cell == SLOW, 1.02)
    assert [(it.told_apart, len(it.values), it.course.changes) for it in series] == [
        ("cpu.model old", 8, ()),
        ("cpu.model new", 8, ()),
    ]


def test_a_machine_that_is_gone_is_no_regression_that_stands(
    one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = past(
        one,
        tmp_path / "in",
        COUNT,
        lambda at, cell: 1.2 if 9 <= at < 18 else 1.0,
        lambda at: {"cpu": "new" if at >= 18 else "old"},
    )
    assert main(["history", str(folder), "--out", str(tmp_path), "--fail-on-regression"]) == 0
    assert "Last measured 18 May 2026." in " ".join(capsys.readouterr().out.split())


def test_invalidated_runs_and_few_results_do_not_count(one: Path, tmp_path: Path) -> None:
    folder = past(one, tmp_path, 2)
    first, second = sorted(folder.iterdir())
    rows = list(csv.reader((first / "cells.csv").read_text().splitlines()))
    caveats, repeat = rows[0].index("caveats"), rows[0].index("repeat")
    for row in rows[1:]:
        row[caveats] = "worker-lost" if row[repeat] == "1" else ""
    with (first / "cells.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    studies, _ = read_history([str(folder)])
    p50, p99 = (
        told_series(
            studies, [it for it in FOLLOWED if it.column == f"latency_{name}_ms"], lambda _: True, 1.02
        )
        for name in ("p50", "p99")
    )
    assert [it.runs for it in p50] == [(2, 3), (2, 3)]
    assert second.name == p50[0].studies[1].side.name
    assert all(it.measure.least <= 600 for it in p99)


def test_what_cannot_be_read_is_left_out_with_a_sentence(one: Path, tmp_path: Path) -> None:
    folder = past(one, tmp_path / "in", 3)
    whole = sorted(folder.iterdir())[0]
    for name in ("cut", "ended", "no-number", "same"):
        copied(whole, folder / name)
    (folder / "cut" / "study.json").write_bytes((whole / "study.json").read_bytes()[:500])
    told = json.loads((whole / "study.json").read_text())
    (folder / "ended" / "study.json").write_text(json.dumps(told | {"status": "interrupted"}))
    text = (whole / "cells.csv").read_text().replace(",closed,", ",closed,x", 1)
    (folder / "no-number" / "cells.csv").write_text(text)
    copied(one, folder / "running")
    (folder / "running" / "study.json").unlink()
    copied(whole, folder / "unreadable")
    (folder / "unreadable" / "cells.csv").unlink()
    (folder / "unreadable" / "cells.csv").symlink_to("nowhere")
    studies, skipped = read_history([str(folder)])
    assert len(studies) == 3
    assert [text.partition(": ")[0].rpartition("/")[2] for text in skipped[:4]] == [
        *("cut", "ended", "no-number", "running"),
    ]
    assert "is damaged" in skipped[0]
    assert "is interrupted: only complete studies are counted." in skipped[1]
    assert "which is no number" in skipped[2]
    assert "has no study.json; if it is not running, make it: inferswarm report" in skipped[3]
    assert "is the same study as" in skipped[4]
    assert "cells.csv cannot be read (FileNotFoundError" in skipped[5]
    assert len(skipped) == 6


def test_a_store_far_away_tells_the_same(results: Path, tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(results), "/bucket/results", recursive=True)
    try:
        assert run("memory://bucket/results", "--out", tmp_path / "far") == 0
    finally:
        store.rm("/bucket", recursive=True)
    assert run(results, "--out", tmp_path / "near") == 0
    far, near = ([{**row, "place": ""} for row in rows_of(tmp_path / name)] for name in ("far", "near"))
    assert far == near
    assert rows_of(tmp_path / "far")[0]["place"] == "memory://bucket/results/step7-20260501T060000Z"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{}/none"], 2, "{}/none: is not there: name a folder with results of studies."),
        (["foo://bucket"], 2, "foo://bucket: cannot be read (ValueError: Protocol not known: foo)"),
        (["abfs://bucket"], 2, "needs another package"),
        (["{}/empty"], 3, "has no complete study: name a folder with results of studies."),
        (
            ["{}/in", "--cells", "none"],
            3,
            "of 2 complete studies none has what --since, --cells and --measure",
        ),
        (["{}/in", "--since", "May"], 2, "'May' is no date: give one such as 2026-10-01"),
        (["{}/in", "--least-effect", "-1"], 2, "'-1' is no percentage: give a number from 0 to 100"),
        (["{}/in", "--measure", "speed"], 2, "invalid choice: 'speed'"),
    ],
)
def test_what_cannot_be_told_is_refused(
    one: Path, tmp_path: Path, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    past(one, tmp_path / "in", 2)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(run(*(word.format(tmp_path) for word in words), "--out", tmp_path / "out"))
    assert ended.value.code == code
    assert said.format(tmp_path) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_ctrl_c_ends_it_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*of: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reports.commands.history.read_history", stopped)
    assert run(tmp_path, "--out", tmp_path / "out") == 130
    assert capsys.readouterr().err == "inferswarm: stopped by Ctrl-C.\n"


def test_conditions_of_comparisons_are_those_of_series() -> None:
    assert {f"options.{name}" for name in of_trait("condition")} <= set(SAME)
