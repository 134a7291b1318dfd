"""A live page on records made by hand, and Locust's web UI around it, never served."""

from locust.env import Environment
from locust.web import WebUI

from collections.abc import Iterator
from pathlib import Path

from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, health_line, sample_line, window

MS = 1_000_000


def a_book(repeats: int = 1, cell_level: int = 2) -> Book:
    """A ledger of one cell with figures chosen: 100 successes of 40 ms, one image each."""
    book = Book()
    for repeat in range(1, repeats + 1):
        book.add("onnx-grpc", 1, cell_level, {"w0": [40 * MS] * 100}, repeat=repeat)
    return book


def second_of(tag: Record, at: int, latencies_ns: list[int], **stated: object) -> Iterator[Record]:
    """What one worker and the sampler tell of the second `FIRST_SECOND + at`."""
    second = FIRST_SECOND + at
    yield window(tag, "w0", latencies_ns, 1) | {"second": second}
    yield health_line(tag, "w0", second)
    yield sample_line(tag, second, **stated)


def tagged(book: Book) -> Record:
    """What every record of the first planned run begins with."""
    (first, *_) = book.header["plan"]
    return {"cell": first["cell"], "repeat": first["repeat"]}


def begun(tag: Record) -> Record:
    """The record with which a run begins."""
    return {"kind": "run", **tag, "event": "start", "utc": "then", "workers": ["w0"], "hosts": 1}


def web_ui(base: str = "", login: bool = False, runner: bool = False) -> WebUI:
    """Locust's web UI without a server; `base` is its --web-base-path."""
    environment = Environment(user_classes=[])
    if runner:
        environment.create_local_runner()
    ui = WebUI(environment, "127.0.0.1", 0, web_base_path=base, web_login=login, delayed_start=True)
    assert ui.app is not None
    if login:
        ui.app.config["SECRET_KEY"] = "for this test"
        ui.login_manager.user_loader(lambda name: None)
    return ui


def left(folder: Path, name: str = "step7-1") -> Path:
    """The folder of a study with the files that its end leaves."""
    place = folder / name
    place.mkdir()
    (place / "report.html").write_text(f"<p>{name}</p>")
    (place / "cells.csv").write_text(f"study\n{name}\n")
    return place
