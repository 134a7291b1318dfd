"""Golden embeddings from a file: by space, and refused with a sentence where they are of none."""

import locust  # noqa: F401  (first: it patches sockets and threads)

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from swarm.errors import UsageError
from swarm.targets.golden import from_file, golden_embeddings
from users.backends.registry import backends
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.images import load_images

JPEG = Input("image", "BYTES", (1,), "jpeg")
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def endpoint(name: str, space: str, dimension: int = 3) -> Endpoint:
    contract = Contract((JPEG,), dimension=dimension, unit=False)
    return Endpoint(name, "service", "http", "jpeg", "h:1", codec="embed", contract=contract, space=space)


def saved(folder: Path, **arrays: np.ndarray) -> str:  # type: ignore[type-arg]
    path = folder / "golden.npz"
    np.savez(path, **arrays)
    return str(path)


def test_each_space_has_its_own_rows(tmp_path: Path) -> None:
    found = from_file(
        saved(tmp_path, a=ROWS, b=ROWS[:2] + 1), [endpoint("x", "a"), endpoint("y", "b"), endpoint("z", "b")]
    )
    assert found["a"].tolist() == ROWS.tolist()
    assert found["b"].tolist() == (ROWS[:2] + 1).tolist()


def test_the_only_space_need_not_be_named(tmp_path: Path) -> None:
    assert from_file(saved(tmp_path, golden=ROWS), [endpoint("x", "a")])["a"].tolist() == ROWS.tolist()


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"other": ROWS}, "'other' is no space of this study; they are a, b"),
        ({"a": ROWS[:, :2]}, "'a' has shape [4, 2], and its endpoints answer with 3 numbers each"),
        ({"a": ROWS[0]}, "'a' has shape [3], and its endpoints answer with 3 numbers each"),
        ({"a": ROWS[:0]}, "'a' has shape [0, 3], and its endpoints answer with 3 numbers each"),
        ({"golden": ROWS}, "'golden' is no space of this study; they are a, b"),
    ],
)
def test_what_fits_no_space_is_refused(tmp_path: Path, arrays: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match="--golden") as refused:
        from_file(saved(tmp_path, **arrays), [endpoint("x", "a"), endpoint("y", "b")])  # type: ignore[arg-type]
    assert sentence in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
def test_what_is_no_npz_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "golden.npz").write_bytes(content)
    with pytest.raises(UsageError, match=r"--golden .*: cannot be read .*; give an .npz"):
        from_file(str(tmp_path / "golden.npz"), [endpoint("x", "a")])
    with pytest.raises(UsageError, match="cannot be read"):
        from_file(str(tmp_path / "none.npz"), [endpoint("x", "a")])


def test_nobody_is_asked_for_what_a_file_has_or_no_model_computes(tmp_path: Path) -> None:
    emulated = replace(backends()["emulated"].preset("fp32", "http"), address="nowhere.invalid:1")
    asked = [endpoint("x", "a"), emulated]
    found = golden_embeddings(asked, load_images(""), 1.0, saved(tmp_path, a=ROWS))
    assert list(found) == ["a"]
    assert found["a"].tolist() == ROWS.tolist()
