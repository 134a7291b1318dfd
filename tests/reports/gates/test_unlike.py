"""Studies that are judged as one must be of one thing, and each of them counts once."""

from pathlib import Path

import pytest

from reports.gates.require import GateError
from tests.reports.gates.book import a_study, at_other_times, judged, outcomes, require, source
from tests.reports.gates.test_compared import BASELINE, CELL, RATIO, one

HERE, THERE = ({"fingerprint": {"cpu": name}} for name in ("Example CPU", "Other"))
KEPT = require("latency_p50_ms <= 45")
MAY = "[baseline]\nmay_differ = ['cpu']\n"
DIFFER = "differ in cpu (Example CPU or Other): "
FIX = "judge each directory alone, or let may_differ of [baseline] allow that."


def test_nothing_is_told_of_studies_of_several_machines_as_if_they_were_of_one(tmp_path: Path) -> None:
    text = KEPT + RATIO + require("latency_max_ms <= 1") + require("images_per_s >= 1")
    found = judged(tmp_path / "a", text, a_study(**HERE), a_study(30.0, **THERE))
    assert {verdict.outcome for verdict in found} == {"inconclusive"}
    assert {verdict.more_repeats for verdict in found} == {None}
    assert found[1].sentence == f"{CELL}: no run of it counts: its studies {DIFFER}{FIX}"
    assert found[2].sentence.endswith(f"no run of {CELL} counts: its studies {DIFFER}{FIX}")
    allowed = judged(tmp_path / "b", KEPT + MAY, a_study(**HERE), a_study(30.0, **THERE))
    assert {verdict.outcome for verdict in allowed} == {"pass"}


def test_a_baseline_of_several_machines_tells_nothing(tmp_path: Path) -> None:
    then = [*at_other_times(**HERE), a_study(**THERE)]
    for number, (now, said) in enumerate(
        (
            ([HERE, THERE], f"the baseline's studies {DIFFER}make it of alike ones, or let"),
            (
                [HERE],
                "the conditions are not the baseline's: cpu (Example CPU here, Example CPU or Other in the",
            ),
        )
    ):
        studies = [a_study(**header) for header in now]
        found = one(tmp_path / str(number), BASELINE, *studies, baseline=then)
        assert found.outcome == "inconclusive"
        assert said in found.sentence
        allowed = one(tmp_path / f"{number} may", BASELINE + MAY, *studies, baseline=then)
        assert allowed.outcome == "pass"


def test_a_study_is_told_by_its_name_and_when_it_began(tmp_path: Path) -> None:
    same = a_study(started_utc="2026-11-20T11:00:00.123Z")
    later = a_study(started_utc="2026-11-20T11:00:00.124Z")
    other = a_study(started_utc="2026-11-20T11:00:00.123Z", study="step8")
    assert len(source(tmp_path / "a", same, later, other).sides) == 3
    with pytest.raises(GateError) as error:
        source(tmp_path / "b", later, same, same)
    place = tmp_path / "b" / "study"
    assert str(error.value) == (
        f"{place}3: is named twice, or holds the same study as {place}2: name each once."
    )


def test_a_study_is_no_baseline_of_itself(tmp_path: Path) -> None:
    then = at_other_times()
    with pytest.raises(GateError, match=r"baseline2: is named twice, or holds the same study as .*study1"):
        judged(tmp_path / "a", BASELINE, then[1], baseline=then)
    assert outcomes(judged(tmp_path / "b", BASELINE, a_study(), baseline=then)) == {CELL: "pass"}
