"""Token ids of texts, with a tokenizer and without."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from users.contract import Contract, Input
from users.inputs.ids import PACKAGE, encoder, random_ids
from users.inputs.images import ImageSet

IDS = Input("input_ids", "INT64", (6,), "ids")
TEXTS = ("a red bicycle", "a a a a a a a a a", "unheard")
WORDS = {"<start>": 0, "<end>": 1, "[UNK]": 2, "a": 3, "red": 4, "bicycle": 5, "<pad>": 6}


def test_random_ids_of_clip() -> None:
    rows = np.stack([random_ids(index, 77, 0) for index in range(50)])
    assert rows.shape == (50, 77)
    assert set(rows[:, 0]) == {49406}
    assert set(rows[:, -1]) == {49407}
    assert rows[:, 1:-1].min() >= 1
    assert 49_000 < rows[:, 1:-1].max() < 49_406
    np.testing.assert_array_equal(random_ids(7, 77, 0), rows[7])
    np.testing.assert_array_equal(random_ids(7, 77, 49_408), rows[7])
    assert (rows[0] != rows[1]).any()


@pytest.mark.parametrize(("most", "highest"), [(1_000, 999), (49_407, 49_406), (2, 1), (1, 0)])
def test_random_ids_of_others(most: int, highest: int) -> None:
    rows = np.stack([random_ids(index, 64, most) for index in range(200)])
    assert min(1, highest) <= rows.min() < 20
    assert highest - 20 < rows.max() <= highest
    assert not (rows[:, 0] == 49_406).all()


def test_larger_vocabularies_have_the_marks_too() -> None:
    row = random_ids(3, 512, 250_002)
    assert (row[0], row[-1]) == (49_406, 49_407)
    assert 200_000 < row.max() < 250_002


def test_rows_of_an_image_set() -> None:
    images = ImageSet((b"",), "test", TEXTS)
    for dtype, kind in (("INT32", np.int32), ("INT64", np.int64)):
        one = Input("ids", dtype, (77,), "ids", most=1000)
        contract = Contract((one,))
        assert images.count(contract) == 3
        found = images.tensor(one, contract, (2, 0))
        assert (found.shape, found.dtype) == ((2, 77), kind)
        np.testing.assert_array_equal(found, np.stack([random_ids(2, 77, 1000), random_ids(0, 77, 1000)]))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("FP32", (77,)), ("INT8", (77,)), ("INT64", (-1,)), ("INT64", (7, 7)), ("INT64", (0,))],
)
def test_inputs_that_take_no_ids(dtype: str, shape: tuple[int, ...]) -> None:
    one = Input("ids", dtype, shape, "ids")
    with pytest.raises(ValueError, match=r'input ids: token ids .* give shape = { ids = "B,77" }'):
        encoder(one, Contract((one,)), TEXTS)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ValueError) as caught:
        encoder(IDS, Contract((IDS,), tokenizer="tokenizer.json"), TEXTS)
    needs = "tokenizer tokenizer.json needs the package tokenizers"
    assert str(caught.value) == f"{needs}: pip install {PACKAGE}, or leave tokenizer out"


@dataclass
class Splitting:
    """Stands in for the package: it gives the length of each word."""

    padding: dict | None
    pad: int | None = None
    length: int = 0
    pad_id: int = -1
    direction: str = ""

    def token_to_id(self, name: str) -> int | None:
        return self.pad if name == "<pad>" else None

    def enable_padding(self, *, direction: str, pad_id: int, length: int) -> None:
        self.direction, self.pad_id, self.length = direction, pad_id, length

    def enable_truncation(self, length: int) -> None:
        assert length == self.length

    def encode(self, text: str) -> SimpleNamespace:
        ids = [len(word) for word in text.split()][: self.length]
        return SimpleNamespace(ids=ids + [self.pad_id] * (self.length - len(ids)))


def installed(monkeypatch: pytest.MonkeyPatch, tokenizer: Splitting) -> None:
    library = ModuleType("tokenizers")
    library.Tokenizer = SimpleNamespace(from_file={"tokenizer.json": tokenizer}.__getitem__)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tokenizers", library)


LEFT = {"pad_id": 7, "direction": "left"}


@pytest.mark.parametrize(("padding", "named", "pad"), [(None, None, 0), (None, 49, 49), (LEFT, 49, 7)])
def test_how_ids_are_padded(monkeypatch: pytest.MonkeyPatch, padding: Any, named: Any, pad: int) -> None:
    installed(monkeypatch, tokenizer := Splitting(padding, named))
    images = ImageSet((b"",), "test", TEXTS)
    found = images.tensor(IDS, Contract((IDS,), tokenizer="tokenizer.json"), (0, 1))
    assert found.tolist() == [[1, 3, 7, pad, pad, pad], [1] * 6]
    assert tokenizer.direction == ("left" if pad == 7 else "right")


def test_ids_beyond_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Splitting(None))
    one = Input("ids", "INT64", (6,), "ids", most=7)
    encode = encoder(one, Contract((one,), tokenizer="tokenizer.json"), TEXTS)
    assert encode(1).tolist() == [1] * 6
    with pytest.raises(
        ValueError, match="input ids: the tokenizer gives id 7, but the model only knows those"
    ):
        encode(0)


def test_a_file_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Splitting(None))
    with pytest.raises(
        ValueError, match=r"tokenizer none.json is not readable .* give the model's tokenizer"
    ):
        encoder(IDS, Contract((IDS,), tokenizer="none.json"), TEXTS)


def test_by_the_package_itself(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason=f"pip install {PACKAGE}")
    ends = ("<start>", "<end>")
    bare = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    special = [{"id": WORDS[name], "content": name, **bare} for name in (*ends, "[UNK]", "<pad>")]
    start, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ends)
    within = {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {name: {"id": name, "ids": [WORDS[name]], "tokens": [name]} for name in ends}
    template = {"single": [start, within, end], "pair": [within], "special_tokens": tokens}
    model = {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"}
    told = {
        "version": "1.0",
        "added_tokens": special,
        "model": model,
        "pre_tokenizer": {"type": "Whitespace"},
    }
    told |= {"post_processor": {"type": "TemplateProcessing", **template}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(dict.fromkeys(("truncation", "padding", "normalizer", "decoder")) | told))
    images = ImageSet((b"",), "test", TEXTS)
    contract = Contract((IDS,), tokenizer=str(path))
    rows = [[0, 3, 4, 5, 1, 6], [0, 3, 3, 3, 3, 1], [0, 2, 1, 6, 6, 6]]
    assert images.tensor(IDS, contract, (0, 1, 2)).tolist() == rows
    path.write_text("{}")
    for file in (path, tmp_path / "none.json"):
        with pytest.raises(ValueError, match="is not readable"):
            encoder(IDS, Contract((IDS,), tokenizer=str(file)), TEXTS)
