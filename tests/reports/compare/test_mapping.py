"""Endpoints of other names: which rules are taken, what they rename, and which are refused."""

import csv
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.cells_csv.rows import SideError
from reports.cells_csv.sides import Side, load_sides
from reports.compare.differences import differences
from reports.compare.mapping import Rule, mapped, rules_of
from reports.render.console import NOT_TOLD, OK, USAGE_ERROR
from tests.reports.builder import Book
from tests.reports.compare_book import before, page_of, serial


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    """Endpoints of onnx and pytorch; and a candidate whose emulated ones take half the time."""
    candidate = Book()
    candidate.endpoint("emulated-http", "127.0.0.1:8030", "none")
    serial(candidate, "emulated-http", 1, 10)
    serial(candidate, "emulated-grpc", 1, 11)
    serial(candidate, "emulated2-http", 1, 5)
    return str(before().write(tmp_path / "mine")), str(candidate.write(tmp_path / "theirs"))


def names(side: Side) -> list[str]:
    return list(dict.fromkeys(row.endpoint for row in side.rows))


def test_rules_come_between_commas_or_one_by_one() -> None:
    rules = (Rule("emulated", "onnx"), Rule("mine-http", "trt-http"))
    assert rules_of(["emulated=onnx,mine-http=trt-http"]) == rules
    assert rules_of(["emulated=onnx", " mine-http = trt-http ,"]) == rules
    assert rules_of([]) == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("emulated", "--map emulated: give CANDIDATE=BASE, e.g. staging=prod."),
        ("=onnx", "--map =onnx: give CANDIDATE=BASE"),
        ("emulated=", "--map emulated=: give CANDIDATE=BASE"),
        ("a=b,a=c", "--map: maps a twice: leave one out."),
    ],
)
def test_what_is_no_rule_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(SideError) as refused:
        rules_of([text])
    assert str(refused.value).startswith(sentence)


def test_the_start_of_a_name_ends_where_a_word_does(places: tuple[str, str]) -> None:
    made = mapped(load_sides(places), rules_of(["emulated=onnx"]))
    assert made.renamed == {"candidate": {"emulated-http": "onnx-http", "emulated-grpc": "onnx-grpc"}}
    assert names(made.sides[1]) == ["onnx-http", "onnx-grpc", "emulated2-http"]
    assert list(made.sides[1].cells) == ["onnx-http/b1/c1", "onnx-grpc/b1/c1", "emulated2-http/b1/c1"]
    assert list(made.sides[1].header["endpoints"]) == ["onnx-http"]
    assert made.sides[0] == load_sides(places)[0]


def test_a_whole_name_takes_precedence(places: tuple[str, str]) -> None:
    made = mapped(load_sides(places), rules_of(["emulated=onnx,emulated-http=pytorch-http"]))
    assert made.renamed["candidate"] == {"emulated-http": "pytorch-http", "emulated-grpc": "onnx-grpc"}


def test_mapped_cells_are_compared_and_the_page_says_so(places: tuple[str, str]) -> None:
    assert page_of(*places).answers[0].said == (
        "Candidate (theirs) cannot be compared with base (mine): no cell in common."
    )
    page = page_of(*places, maps=["emulated=onnx"])
    assert page.answers[0].said == "Candidate (theirs) is faster than base (mine)."
    assert page.answers[0].detail == "Of 2 cells compared, by images per second: 2 faster."
    assert page.answers[1].said.startswith("onnx-grpc/b1/c1 2.00× faster, 95 % CI 1.91–2.09 (90.9 against")
    assert (
        "Endpoints of other names are compared by --map: of the candidate emulated-http with onnx-http, "
        "emulated-grpc with onnx-grpc of the base." in page.notices
    )
    assert page.commands == ("inferswarm compare results/mine results/theirs --map emulated=onnx",)


def test_what_a_header_states_of_mapped_endpoints_is_compared(places: tuple[str, str]) -> None:
    made = mapped(load_sides(places), rules_of(["emulated=onnx"]))
    weights = {it.what: it.values for it in differences(made.sides)}["endpoints.onnx-http.weights"]
    assert weights == ("random (seed 0)", "none")


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            "nothing=onnx",
            "--map nothing=onnx: matches no endpoint of candidate (theirs), which has emulated-http, "
            "emulated-grpc, emulated2-http: name one of these.",
        ),
        ("emul=onnx", "--map emul=onnx: matches no endpoint of candidate (theirs)"),
        (
            "emulated=trt",
            "--map emulated=trt: makes trt-grpc and trt-http, which base (mine) does not have: "
            "name one of its endpoints, onnx-http, onnx-grpc, pytorch-http.",
        ),
        (
            "emulated-http=onnx-http,emulated2-http=onnx-http",
            "--map emulated-http=onnx-http,emulated2-http=onnx-http: makes emulated-http and emulated2-http "
            "of candidate (theirs) one endpoint, onnx-http: map each to a name of its own.",
        ),
    ],
)
def test_a_mapping_that_maps_nothing_or_merges_is_refused(
    *, rules: str, sentence: str, places: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(["compare", *places, "--map", rules, "--out", str(out)]) == USAGE_ERROR
    error = capsys.readouterr().err
    assert error.startswith(f"inferswarm: {sentence}")
    assert error.count("\n") == 1
    assert not out.exists()


def test_names_may_be_swapped(tmp_path: Path) -> None:
    folder = str(before().write(tmp_path / "x"))
    made = mapped(load_sides((folder, folder)), rules_of(["onnx-http=onnx-grpc,onnx-grpc=onnx-http"]))
    assert names(made.sides[1]) == ["onnx-grpc", "onnx-http", "pytorch-http"]


def test_of_several_candidates_one_must_have_it(places: tuple[str, str]) -> None:
    made = mapped(load_sides((*places, places[0])), rules_of(["emulated=onnx"]))
    assert list(made.renamed) == ["candidate A", "candidate B"]
    assert made.renamed["candidate B"] == {}
    with pytest.raises(SideError, match="matches no endpoint of the candidates, which have emulated-http"):
        mapped(load_sides((*places, places[0])), rules_of(["nothing=onnx"]))


def test_the_files_have_the_cells_of_the_base(places: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["compare", *places, "--out", str(out), "--quiet"]) == NOT_TOLD
    assert main(["compare", *places, "--map", "emulated=onnx", "--out", str(out), "--quiet"]) == OK
    rows = list(csv.DictReader((out / "compare.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["cell"] for row in rows} == {"onnx-http/b1/c1", "onnx-grpc/b1/c1"}
    assert {row["verdict"] for row in rows if row["measure"] == "images_per_s"} == {"faster"}
    assert "--map emulated=onnx" in (out / "compare.html").read_text(encoding="utf-8")
