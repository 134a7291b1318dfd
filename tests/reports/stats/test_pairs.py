"""HTTP against gRPC: which ways are a pair, whatever they are called, and what it is called then."""

from pathlib import Path

from reports.stats.figures import Pairs, protocol_pairs
from reports.study.study import load_study
from reports.summary.summary import Way
from tests.reports.builder import Book
from tests.reports.strangers import GRPC, a_book, run, stranger


def found(book: Book, folder: Path) -> Pairs:
    study = load_study(book.write(folder))
    return protocol_pairs(study, study.runs)


def of(**endpoints: dict[str, str]) -> Book:
    """One run of each endpoint."""
    book = a_book()
    for name, planned in endpoints.items():
        run(book, name, stranger(book, name, **planned))
    return book


def test_a_pair_is_of_one_model_of_one_server(tmp_path: Path) -> None:
    book = of(fast={}, faster=GRPC, old={"server": "gpu:9000"}, large=GRPC | {"model": "siglip-large"})
    assert found(book, tmp_path) == {"faster / fast": (Way("fast"), Way("faster"))}


def test_two_servers_of_one_kind_are_two_pairs(tmp_path: Path) -> None:
    old, new = {"server": "old"}, {"server": "new"}
    book = of(oh=old, og=old | GRPC, nh=new, ng=new | GRPC)
    assert found(book, tmp_path) == {"og / oh": (Way("oh"), Way("og")), "ng / nh": (Way("nh"), Way("ng"))}


def test_another_payload_is_no_pair(tmp_path: Path) -> None:
    assert found(of(a={}, b=GRPC | {"payload": "jpeg"}), tmp_path) == {}


def test_of_two_codecs_none_is_the_one_to_compare(tmp_path: Path) -> None:
    assert found(of(binary={}, json={"codec": "v2-json"}, grpc=GRPC), tmp_path) == {}


def test_names_are_not_read(tmp_path: Path) -> None:
    """A common beginning, or a protocol at the end, is the user's own affair."""
    book = of(**{"siglip-http": GRPC, "siglip-grpc": {}})
    assert found(book, tmp_path) == {"siglip-http / siglip-grpc": (Way("siglip-grpc"), Way("siglip-http"))}


def test_a_backends_own_endpoints_are_named_by_it(tmp_path: Path) -> None:
    book = Book()
    for name in ("onnx-http", "onnx-grpc", "onnx-jpeg-http", "onnx-jpeg-grpc"):
        book.add(name, 1, 1, {"w0": [9_000_000] * 40})
    assert list(found(book, tmp_path)) == ["onnx", "onnx-jpeg"]
