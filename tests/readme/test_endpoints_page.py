"""docs/endpoints.md: its files can be read, it has every field and example, and its sentences are said."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm.options.endpoint_fields import RPC_TABLES, TABLES, TOP
from swarm.targets.endpoint_file import read_endpoint
from tests.locustfiles.console import LOCUST, ROOT, Console
from tests.readme.commands import SHORT
from tests.stand_ins import stand_in
from users.endpoint import Endpoint
from users.inputs.preparation import FIELDS, PRESETS
from users.tls import OPEN

PAGE = (ROOT / "docs/endpoints.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples/endpoints"
PROTO = """
syntax = "proto3";
package org.pytorch.serve.grpc.inference;
message PredictionsRequest { string model_name = 1; string model_version = 2; map<string, bytes> input = 3; }
message PredictionResponse { bytes prediction = 1; }
service InferenceAPIsService { rpc Predictions(PredictionsRequest) returns (PredictionResponse); }
"""
"""Of TorchServe's inference.proto what the page asks."""
FILE = """
url = "http://{address}/v1/embeddings"
model = "any"
headers = {{ x-api-key = "${{CLIP_KEY}}" }}
body = {{ json = {{ input = ["{item}"] }} }}
answer = {{ vectors = "data[].embedding"{order} }}
"""
ORDER = ', order = "data[].index"'
SURE = {
    "run": r"\bRun\b",
    "checked against the server's source, not run": "Checked against its source; not run",
    "checked against its documentation, not run": r"Checked against [\w']+ documentation.*; not run",
    "general knowledge, not run": "General knowledge; not run",
}


def block(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def rows(head: str) -> list[list[str]]:
    """The cells of the one table that begins so."""
    (table,) = re.findall(rf"(?m)^{re.escape(head)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]


def read(folder: Path, text: str) -> Endpoint:
    (folder / "inference.proto").write_text(PROTO)
    (folder / "mine.toml").write_text(text)
    return read_endpoint("mine", str(folder / "mine.toml"), OPEN)


def test_the_grpc_example_can_be_used(tmp_path: Path) -> None:
    made = read(tmp_path, block("toml"))
    assert (made.backend, made.codec, made.payload) == ("rpc", "declared-grpc", "jpeg")
    assert made.contract.max_batch == 1, "nothing in it repeats"


def test_each_kind_of_body_is_shown_as_it_can_be_used(tmp_path: Path) -> None:
    examples = [example.strip("`") for example, _ in rows("| an example below `[body]` |")]
    assert {example.partition(" =")[0] for example in examples} == {
        *("json", "multipart", "msgpack", "raw", "message")
    }
    rpc, tail = block("toml").partition("body")[0], '[answer]\nvectors = "{}"\n'
    for example in examples:
        own = example.startswith("message")
        head, ending = (rpc, "prediction") if own else ('url = "http://gpu-host:8000/embed"\n', "embedding")
        more = 'encoding = "json-string"\n' if own else ""
        made = read(tmp_path, f"{head}[body]\n{example}\n{tail.format(ending)}{more}")
        assert made.payload == "jpeg"


def test_it_has_every_field_and_no_other() -> None:
    shown = {word for cell, *_ in rows("| field | for |") for word in re.findall(r"`([\w.]+)`", cell)}
    tables = {**TABLES, "body": {**TABLES["body"], **RPC_TABLES["body"]}}
    inner = {f"{table}.{name}" for table, fields in tables.items() for name in fields}
    assert shown == {*TOP, *inner} - {*tables}


def test_it_has_every_preset_and_every_field_of_a_preparation() -> None:
    presets = [word for cell, _ in rows("| preset |") for word in re.findall(r"`([\w-]+)`", cell)]
    assert sorted(presets) == sorted(PRESETS)
    (sentence,) = re.findall(r"Your own file has (.*?)\n\n", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == {*FIELDS} - {"name"}


def test_it_says_of_every_example_how_sure_it_is() -> None:
    told = {how: re.findall(r"`([\w-]+)`", files) for how, files in rows("| how sure |")}
    assert sorted(name for names in told.values() for name in names) == sorted(
        path.stem for path in EXAMPLES.iterdir()
    )
    for how, names in told.items():
        for name in names:
            comment = " ".join(re.findall(r"(?m)^# (.*)", (EXAMPLES / f"{name}.toml").read_text()))
            assert re.search(SURE[how], comment), (how, name)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with stand_in("any_server.py") as found:
        yield found


def study(folder: Path, *targets: str, key: str = "a-key-of-nobody") -> Console:
    """A short study of some endpoints, in which they come as they are given."""
    asked = [word for target in targets for word in ("--endpoint", target)]
    command = [LOCUST[0], "-f", "locustfiles/study.py", "--headless", *asked, *SHORT]
    environ = {"CLIP_KEY": key} if key else {}
    return Console([*command, "--results-dir", str(folder / "results")], folder, **environ)


CASES = {
    "`choose one with --output NAME`": ("triton+http://{address}/siglip",),
    "`put a model in front of it that takes 3`": ("triton+http://{address}/depth",),
    "`give --shape pixel_values=B,3,384,384`": ("triton+http://{address}/plain",),
    "`describe it in a TOML file`": ("http://{address}/v1/embeddings",),
    "`no 'data' in the answer, which has object, result`": ("/wordy",),
    "`send the picture as $data_url, or set body.fetched_by_server = true`": ("https://cdn.example/cat.jpg",),
    "`CLIP_KEY is not set, and the header x-api-key uses it; export it`": ("no key",),
    "`set max_batch = 1`": ("/one",),
    "`rows come in another order; give answer.order`": ("no order",),
    "`give them different spaces`": ("$data_url", "$jpeg_base64"),
}
"""By what the page quotes, which targets lead to it: URLs, or what is other in FILE."""


def target(folder: Path, name: str, address: str, told: str) -> str:
    if told.endswith(("siglip", "depth", "plain")) or told.startswith("http://"):
        return f"{name}={told.format(address=address)}"
    item = told if told.startswith(("$", "https://")) else "$data_url"
    text = FILE.format(address=address, item=item, order="" if told == "no order" else ORDER)
    path = folder / f"{name}.toml"
    path.write_text(text.replace("/v1/embeddings", told) if told.startswith("/") else text)
    return f"{name}={path}"


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("said", CASES, ids=[case.strip("`")[:30] for case in CASES])
def test_each_sentence_is_said(
    said: str, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLIP_KEY", raising=False)
    assert [row[1] for row in rows("| what is wrong |")] == [*CASES]
    targets = [target(tmp_path, name, address, told) for name, told in zip("ab", CASES[said], strict=False)]
    with study(tmp_path, *targets, key="" if "no key" in CASES[said] else "a-key-of-nobody") as console:
        assert console.wait(60) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert said.strip("`") in line
