"""The published study's hypotheses, judged again: true, false, partly so, inconclusive, not tested."""

import json
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.published_study import SPACE
from reports.stats.log_ratio import LogRatio
from reports.study.study import Study, load_study
from reports.topics.published.hypotheses import (
    ELSEWHERE,
    NEEDS,
    Hypothesis,
    hypotheses,
    hypotheses_table,
    judge,
    judged,
    looked_at,
)
from tests.reports.builder import Book
from tests.reports.contention_book import LINK, a_study, an_arm, axes_of, studied
from tests.reports.example import example
from tests.reports.open_load import notes_at, texts
from tests.reports.strangers import GRPC, run, stranger

MS = 1_000_000
JITTER = (1.0, 0.98, 1.02)


def serial(book: Book, batch: int, http_ms: float, grpc_ms: float, repeats: int = 3) -> None:
    """One user over the link, over both protocols."""
    for repeat in range(1, repeats + 1):
        for protocol, code, each_ms in (("http", "R0", http_ms), ("grpc", "R4", grpc_ms)):
            values = [round(each_ms * MS * JITTER[repeat - 1])] * 40
            about = axes_of(code, "wan-a100", many=False)
            book.add(f"emulated-{protocol}", batch, 1, {"w0": values}, repeat=repeat, axes=about)


def many_users(book: Book, http: float, grpc: float, repeats: int = 3) -> None:
    """Sixteen of them over the link, in images per second."""
    for repeat in range(1, repeats + 1):
        an_arm(book, "R0", http * JITTER[repeat - 1], repeat)
        an_arm(book, "R2", grpc * JITTER[repeat - 1], repeat)


def found(book: Book, folder: Path, code: str) -> Hypothesis:
    return next(it for it in hypotheses(studied(book, folder)) if it.code == code)


@pytest.mark.parametrize(
    ("http_ms", "grpc_ms", "verdict"),
    [(200, 150, "true"), (200, 205, "false"), (200, 300, "false"), (200, 179, "true"), (200, 182, "true")],
)
def test_h1_needs_a_lower_p50(tmp_path: Path, http_ms: float, grpc_ms: float, verdict: str) -> None:
    book = a_study()
    serial(book, 1, http_ms, grpc_ms)
    assert found(book, tmp_path, "H1").verdict == verdict


def test_h1_states_its_figures_and_what_they_concluded(tmp_path: Path) -> None:
    book = a_study()
    serial(book, 1, 200, 210)
    h1 = found(book, tmp_path, "H1")
    assert h1.figures == "gRPC's p50 over HTTP's: 1.050× (1.048–1.052) (emulated at batch 1 over wan-a100)"
    assert (h1.claim, h1.published) == ("gRPC lowers per-call overhead at batch 1", "false (4–14 % slower)")
    assert h1.doubt == ""


@pytest.mark.parametrize(
    ("at_16", "at_32", "verdict"), [(1.02, 0.97, "true"), (1.6, 1.7, "false"), (1.05, 1.6, "partly")]
)
def test_h2_is_of_every_large_batch(tmp_path: Path, at_16: float, at_32: float, verdict: str) -> None:
    book = a_study()
    serial(book, 8, 100, 900)
    serial(book, 16, 1_000, 1_000 / at_16)
    serial(book, 32, 2_000, 2_000 / at_32)
    h2 = found(book, tmp_path, "H2")
    assert h2.verdict == verdict
    assert "batch 8" not in h2.figures


@pytest.mark.parametrize(("grpc", "verdict"), [(7.4, "false"), (41.0, "false"), (60.0, "true")])
def test_h3_is_of_one_grpc_connection_against_16(tmp_path: Path, grpc: float, verdict: str) -> None:
    book = a_study()
    many_users(book, 42.0, grpc)
    an_arm(book, "R4", 80.0)
    h3 = found(book, tmp_path, "H3")
    assert h3.verdict == verdict
    assert h3.figures.count("×") == 1


def test_repeats_that_do_not_agree_leave_it_open(tmp_path: Path) -> None:
    book = a_study()
    for repeat, grpc in enumerate((30.0, 42.0, 80.0), 1):
        an_arm(book, "R0", 42.0, repeat)
        an_arm(book, "R2", grpc, repeat)
    assert found(book, tmp_path, "H3").verdict == "inconclusive"


def test_one_run_allows_no_verdict(tmp_path: Path) -> None:
    book = a_study()
    many_users(book, 42.0, 7.4, repeats=1)
    table = hypotheses_table(studied(book, tmp_path))
    assert texts(table)[2][:3] == ["H3", "gRPC wins under high concurrency by multiplexing", "inconclusive"]
    assert notes_at(table, 2, 2) == [
        "with one run behind a figure, this may be chance; rerun with --repeats 5 to confirm"
    ]


def test_h4_compares_pytorch_with_the_best_tensor_that_a_model_answered(tmp_path: Path) -> None:
    book = a_study()
    for repeat in (1, 2, 3):
        about = axes_of("R0", "wan-a100", many=False)
        for endpoint, each_ms in (("pytorch-http", 60), ("onnx-http", 200), ("emulated-http", 5)):
            values = [round(each_ms * MS * JITTER[repeat - 1])] * 40
            book.add(endpoint, 1, 1, {"w0": values}, repeat=repeat, axes=about)
    h4 = found(book, tmp_path, "H4")
    assert (h4.verdict, h4.published) == ("true", "confirmed")
    assert h4.figures.endswith("3.333× (3.327–3.340) (batch 1, 1 user over wan-a100)")


def test_what_was_not_run_is_not_tested(tmp_path: Path) -> None:
    book = a_study()
    serial(book, 1, 200, 210)
    told = {it.code: it.verdict for it in hypotheses(studied(book, tmp_path))}
    assert told == {"H1": "false", "H2": "not tested", "H3": "not tested", "H4": "not tested"} | {
        "H5": "not tested"
    }


@pytest.mark.parametrize(
    ("ratio", "error", "kinds"),
    [
        (1.0, 0.03, ["equal"]),
        (1.0, 0.05, []),
        (1.12, 0.02, ["more"]),
        (1.12, 0.04, []),
        (0.88, 0.02, ["below", "less"]),
        (0.95, 0.005, ["below", "equal"]),
        (1.05, 0.005, ["equal"]),
    ],
)
def test_what_counts_as_about_equal(ratio: float, error: float, kinds: list[str]) -> None:
    ((it,), (adjusted,)) = looked_at([("here", [LogRatio(ratio, 3, error, 2)])])
    assert it == adjusted
    assert [name for name in ("below", "less", "equal", "more") if getattr(it, name)] == kinds


def test_partly_takes_two_places_that_disagree_among_all() -> None:
    def verdict(*ratios: float, error: float = 0.02) -> str:
        places = [(str(at), [LogRatio(ratio, 3, error, 2)]) for at, ratio in enumerate(ratios)]
        return judge("H1", "", looked_at(places), lambda it: it.below).verdict

    assert verdict(0.85, 0.86) == "true"
    assert verdict(1.2, 1.15) == "false"
    assert verdict(0.85, 1.17, error=0.033) == "inconclusive", "each by itself, but not both of two"
    assert verdict(0.7, 1.4) == "partly"
    assert verdict(0.7, 1.05) == "inconclusive"


def test_the_best_other_is_one_of_all_that_were_compared() -> None:
    found = looked_at([("here", [LogRatio(ratio, 3, 0.02, 2) for ratio in (1.15, 1.3, 1.4)])])
    ((alone,), (adjusted,)) = found
    assert (alone.ratio.ratio, alone.more, adjusted.more) == (1.15, True, True)
    ((alone,), (adjusted,)) = looked_at(
        [("here", [LogRatio(ratio, 3, 0.02, 2) for ratio in (1.15, 1.16, 1.16)])]
    )
    assert (alone.more, adjusted.more) == (True, False)


def shown(study: Study) -> int:
    return len(hypotheses_table(study).rows)


def test_over_another_path_than_theirs_it_is_judged_with_that_doubt(tmp_path: Path) -> None:
    assert shown(load_study(example().write(tmp_path / "example"))) == 5
    book = a_study(links=[LINK | {"published": ""}])
    serial(book, 1, 200, 210)
    first, second, *_ = judged(studied(book, tmp_path / "link"))
    assert (first.verdict, first.doubt.partition(";")[0]) == ("false", ELSEWHERE)
    assert (second.verdict, second.doubt, second.figures) == ("not tested", "", NEEDS["H2"])


def test_where_nothing_was_run_none_is_judged(tmp_path: Path) -> None:
    assert shown(load_study(Book().write(tmp_path))) == 0


def test_they_are_in_the_table_and_in_study_json(tmp_path: Path) -> None:
    book = a_study()
    serial(book, 1, 200, 210)
    assert shown(studied(book, tmp_path)) == 5
    assert main(["show", str(tmp_path), "--quiet"]) == 0
    told = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))["hypotheses"]
    assert [it["code"] for it in told] == ["H1", "H2", "H3", "H4", "H5"]
    assert "The published study's hypotheses" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_endpoints_of_ones_own_are_named_both_and_of_three_none_is_compared(tmp_path: Path) -> None:
    book = a_study()
    for name, planned in (("h", {}), ("g", GRPC)):
        told = stranger(book, name, space=SPACE, **planned)
        run(book, name, told | {"channels": "per-user"}, [10.0] * 3)
    study = studied(book, tmp_path / "two")
    assert study.of_published_study
    first = next(it for it in hypotheses(study) if it.code == "H1")
    assert (first.verdict, first.figures) == (
        "false",
        "gRPC's p50 over HTTP's: 1.000× (0.998–1.002) (g / h at batch 1)",
    )
    told = stranger(book, "other", space=SPACE, codec="v2-json")
    run(book, "other", told | {"channels": "per-user"}, [10.0] * 3)
    first = next(it for it in hypotheses(studied(book, tmp_path / "three")) if it.code == "H1")
    assert first.verdict == "not tested"
