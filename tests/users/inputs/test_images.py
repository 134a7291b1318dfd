"""The picture sets."""

import hashlib
import io
import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from PIL import Image

from users.contract import Contract, Input
from users.inputs.images import ImageSet, captions, load_images, opened
from users.inputs.pictures import ImageSetError, picture_paths, spread

PIXELS = Input("input", "FP32", (3, 224, 224), "picture", "NCHW")
CONTRACT = Contract((PIXELS,))


@cache
def default_set() -> ImageSet:
    """The built-in photographs, which take a third of a second."""
    return load_images("")


def test_default_set() -> None:
    images = default_set()
    assert len(images) == 64
    assert len(set(images.jpegs)) == 64
    sizes = [len(jpeg) for jpeg in images.jpegs]
    assert 5_000 <= min(sizes) <= max(sizes) <= 15_000
    assert all(Image.open(io.BytesIO(jpeg)).size == (224, 224) for jpeg in images.jpegs)
    assert images.tensor(PIXELS, CONTRACT, range(64)).shape == (64, 3, 224, 224)
    assert images.count(CONTRACT) == images.count(Contract()) == 64
    assert load_images("").sha256 == images.sha256


def test_folder_of_jpeg_and_png(tmp_path: Path) -> None:
    Image.new("RGB", (300, 260), (200, 10, 10)).save(tmp_path / "b.jpg")
    Image.new("RGBA", (250, 250), (10, 200, 10, 128)).save(tmp_path / "a.PNG")
    (tmp_path / "notes.txt").write_text("not a picture, and not asked for")
    images = load_images(str(tmp_path))
    assert len(images) == 2
    assert images.jpegs[1] == (tmp_path / "b.jpg").read_bytes()
    assert Image.open(io.BytesIO(images.jpegs[0])).format == "JPEG"
    assert (images.names, images.left_out) == (("a.PNG", "b.jpg"), "1 .txt")
    assert images.source == f"2 files of {tmp_path.name}/ (left out: 1 .txt)"


def test_a_large_folder_is_sampled_evenly(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}.jpg").write_bytes(bytes(100))
    assert len(picture_paths(tmp_path, 30_000)) == 300
    taken = [int(path.stem) for path in picture_paths(tmp_path, 25_699)]
    assert len(taken) == 256
    assert taken[:7] == [0, 1, 2, 3, 4, 5, 7]
    assert taken[-1] == 298


def test_a_few_large_files_among_small_ones() -> None:
    sizes = [1, 1, 1, 97] * 25
    chosen = spread(sizes, 1000)
    assert sum(sizes[index] for index in chosen) <= 1000
    assert len(chosen) >= 20
    assert max(later - one for one, later in itertools.pairwise(chosen)) <= 6
    assert spread([5000, 1], 1000) == [0]
    assert spread([0, 0, 0], 0) == [0, 1, 2]


def test_files_are_kept_up_to_the_bound(tmp_path: Path) -> None:
    for name in "abcdef":
        Image.effect_noise((60, 60), 60).save(tmp_path / f"{name}.jpg", quality=90)
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    images = load_images(str(tmp_path), pool_bytes=3 * max(sizes))
    assert images.jpegs == tuple((tmp_path / f"{name}.jpg").read_bytes() for name in "ace")
    assert images.source == f"3 files of {tmp_path.name}/ (left out: 3 beyond --pool-mb)"
    assert images.names == ("a.jpg", "c.jpg", "e.jpg")
    assert images.pool_bytes == 3 * max(sizes)
    assert len(load_images(str(tmp_path), pool_bytes=1)) == 1


def test_png_files_count_as_the_jpeg_that_they_become(tmp_path: Path) -> None:
    for name in "abc":
        Image.new("RGB", (400, 400)).save(tmp_path / f"{name}.png")
    (size, _, _) = map(len, load_images(str(tmp_path)).jpegs)
    assert size > 2 * (tmp_path / "a.png").stat().st_size
    assert len(load_images(str(tmp_path), pool_bytes=2 * size)) == 2


def test_the_packaged_texts() -> None:
    assert len(captions()) == len(set(captions())) == 64
    assert all(text.strip() == text and 15 < len(text) < 80 and text.isascii() for text in captions())
    assert default_set().texts == captions()


def test_texts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "queries.txt"
    path.write_bytes("\ufeffein Fahrrad\r\n\n  zwei Hüte \nlast".encode())
    images = load_images("", str(path))
    assert images.texts == ("ein Fahrrad", "zwei Hüte", "last")
    assert images.text(4) == "zwei Hüte"
    assert load_images("", str(path), 16).texts == ("ein Fahrrad",)


def test_a_digest_names_pictures_and_own_texts() -> None:
    plain = ImageSet((b"one", b"two"), "test")
    own = ImageSet((b"one", b"two"), "test", ("a", "b"))
    sets = [plain, own, ImageSet((b"two", b"one"), "test"), ImageSet((b"one", b"two"), "test", ("b", "a"))]
    assert len({images.sha256 for images in sets}) == 4
    assert ImageSet((b"one", b"two"), "elsewhere", captions()).sha256 == plain.sha256
    assert ImageSet((b"one", b"two"), "test", ("a", "b")).sha256 == own.sha256
    # As it has been of pictures alone: two studies of different versions are comparable.
    parts = b"".join(hashlib.sha256(jpeg).digest() for jpeg in (b"one", b"two"))
    assert plain.sha256 == hashlib.sha256(parts).hexdigest()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(None, "no such file; name"), (b"\xff\xfea", "is not readable as UTF-8"), (b" \n\n", "it has no text")],
)
def test_bad_texts(tmp_path: Path, data: bytes | None, sentence: str) -> None:
    path = tmp_path / "queries.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ImageSetError, match=rf"^--texts {path}:? {sentence}"):
        load_images("", str(path))


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.txt": b"hello"}, "no .jpg, .jpeg or .png file in it"),
        ({"a.jpg": b"hello"}, "is not a readable JPEG or PNG picture"),
        ({"a.png": b""}, "is not a readable JPEG or PNG picture"),
    ],
)
def test_bad_folders(tmp_path: Path, files: dict[str, bytes], sentence: str) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ImageSetError, match=sentence):
        load_images(str(tmp_path))
    with pytest.raises(ImageSetError, match="no such folder"):
        load_images(str(tmp_path / "none"))


def test_a_mix_of_the_built_in_photographs() -> None:
    images = load_images("", kinds=("64", "224", "640"))
    sizes = {kind: {opened(images.jpegs[at]).size for at in own} for kind, own in images.groups.items()}
    assert sizes == {"64": {(64, 64)}, "224": {(224, 224)}, "640": {(640, 640)}}
    assert [images.groups[kind][:3] for kind in images.groups] == [(0, 3, 6), (1, 4, 7), (2, 5, 8)]
    assert tuple(images.jpegs[at] for at in images.groups["224"]) == default_set().jpegs
    assert sorted(itertools.chain(*images.groups.values())) == list(range(len(images)))
    fewer = len(images.groups["640"])
    assert 15 <= fewer < 64
    assert len(set(images.jpegs)) == len(images) == 128 + fewer
    assert images.source.endswith(f"'s photographs (64 of 64, 64 of 224, {fewer} of 640)")


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Six small pictures and two large ones, each kind in a folder, beside one without pictures."""
    for kind, side, names in (("small", 60, "abcdef"), ("large", 240, "gh")):
        (tmp_path / kind).mkdir()
        for name in names:
            Image.effect_noise((side, side), 60).save(tmp_path / kind / f"{name}.jpg")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_a_mix_of_folders(folders: Path) -> None:
    images = load_images(str(folders), kinds=("small", "large"))
    assert images.groups == {"small": (0, 2, 4, 5, 6, 7), "large": (1, 3)}
    files = [folders / f"{name}.jpg" for name in ("small/a", "large/g", "small/b", "large/h", "small/c")]
    assert images.jpegs[:5] == tuple(file.read_bytes() for file in files)
    assert images.source == f"8 files of {folders.name}/ (6 of small, 2 of large)"
    others = [("large", "small"), ("small",)]
    assert (
        len({load_images(str(folders), kinds=kinds).sha256 for kinds in [("small", "large"), *others]}) == 3
    )
    apart = replace(images, groups={"small": (0,), "large": tuple(range(1, 8))})
    assert apart.sha256 != images.sha256 != replace(images, groups={}).sha256


def test_kinds_share_the_memory(folders: Path) -> None:
    size = (folders / "large" / "g.jpg").stat().st_size
    images = load_images(str(folders), pool_bytes=2 * size, kinds=("small", "large"))
    assert [len(own) for own in images.groups.values()] == [6, 1]


ROW = 4 * 3 * 224 * 224
CAPTIONS = Contract((Input("text", "BYTES", (1,), "text"),))


@pytest.mark.parametrize(
    ("rows", "small", "large"), [(9, [0, 2, 4, 5, 6, 7], [1, 3]), (3, [0, 2], [1]), (1, [0], [1])]
)
def test_each_kind_has_pictures_however_few_tensors_fit(
    folders: Path, rows: int, small: list[int], large: list[int]
) -> None:
    images = replace(load_images(str(folders), kinds=("small", "large")), pool_bytes=rows * ROW)
    assert (images.items(CONTRACT, "small"), images.items(CONTRACT, "large")) == (small, large)
    assert list(images.items(CONTRACT)) == sorted(small + large)
    assert images.tensor(PIXELS, CONTRACT, large).shape == (len(large), 3, 224, 224)


def test_texts_have_no_kind(folders: Path) -> None:
    images = replace(load_images(str(folders), kinds=("small", "large")), texts=("a", "b", "c"))
    assert list(images.items(CAPTIONS, "large")) == [0, 1, 2]
    few = replace(images, pool_bytes=1)
    assert (list(few.items(CAPTIONS, "large")), few.items(CONTRACT, "large")) == ([0], [1])
    assert list(default_set().items(CONTRACT)) == list(range(64))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        *(
            (kind, "is no side of 64 to 4,096 pixels")
            for kind in ("63", "4097", "0224", "1e3", "small", "²²4")
        ),
        *((kind, "is no folder in --images") for kind in ("huge", "..", "small/a.jpg", "small/", ".")),
        ("empty", "no .jpg, .jpeg or .png file in it"),
    ],
)
def test_bad_kinds(folders: Path, kind: str, sentence: str) -> None:
    folder = "" if "side" in sentence else str(folders)
    with pytest.raises(ImageSetError, match=f"^--(picture-mix|images).*{sentence}"):
        load_images(folder, kinds=(kind, "small") if folder else (kind, "224"))
