"""Files in TOML with one thing wrong or several: in fields that are known, in others, in the bytes."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

VALUES = (
    "-1", "0", "1.5", "1e400", "nan", "-inf", "true", "0x" + "f" * 6_000, "9" * 5_000, "9223372036854775808",
    '""', '" "', '"x"', '"\\u001b[31m"', '"' + "x" * 50_000 + '"', "'''\na\nb'''", "1979-05-27T07:32:00Z",
    "07:32:00", "1979-02-31", "[]", "[1]", "[[1]]", '["a", 1]', "{}", "{a = {b = 1}}",
    "[" * 3_000 + "]" * 3_000, "", "=", "inf", '"-oProxyCommand=x"', '"../../etc"', '"a b"', '"$(id)"',
    "1_0_", "0o9", '"' + "é" * 300 + '"',
)  # fmt: skip
BROKEN = (
    *(b"\xff\xfe", b"\x00", b"[", b"]]", b"= 1", b"[[", b"a.b.c = "),
    *(b'"', b"\r", b"[a]\n[a]\n", b"\x1b", b"\xc3"),
)


def bad_tomls(heads: Sequence[str], fields: Mapping[str, str]) -> st.SearchStrategy[bytes]:
    """Files with one of these heads and these fields, whose good values are replaced, left out, or cut."""
    keys = st.sampled_from([*fields, *fields, "stranger", "x" * 50_000, '"\\u0000"', "a.b"])
    wrong = st.dictionaries(keys, st.sampled_from(VALUES), min_size=1, max_size=3)
    kept = st.lists(st.sampled_from([*fields]), unique=True).map(lambda names: {n: fields[n] for n in names})
    every = st.just(dict(fields)) | kept
    texts = st.builds(_written, st.sampled_from(heads), every, wrong)
    return texts | st.builds(_cut, texts, st.integers(0, 300), st.integers(0, 9), st.sampled_from(BROKEN))


def _written(head: str, fields: Mapping[str, str], wrong: Mapping[str, str]) -> bytes:
    lines = (f"{name} = {value}" for name, value in {**fields, **wrong}.items())
    return "\n".join((head, *lines, "")).encode()


def _cut(text: bytes, at: int, lost: int, put: bytes) -> bytes:
    return text[:at] + put + text[at + lost :]
