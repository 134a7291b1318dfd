"""No backend is named outside its own file: programs ask the registry, reports the facts in the header."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from users.backends.registry import backends

ROOT = Path(__file__).parent.parent
ROOMS = ("swarm", "users", "reports")
HOMES = (
    *(f"users/backends/{name}.py" for name in ("embed_service", "triton", "v2", "declared")),
    *("users/triton/", "users/codecs/v2_", "reports/version_1.py"),
)
"""The backends' own files, what theirs share, and what ledgers of old left unsaid."""
FAMILY = "triton"
AMBIGUOUS = ("service", "torch")
"""Backends, and a part of a request's time or a package: they count in programs that say how endpoints are
asked, and in no others."""
ASKING = ("swarm/options/", "swarm/targets/")
UNMISTAKABLE = ("onnx", "openvino", "pytorch", "trt")
"""Names that mean nothing else. Others, such as `emulated`, are words too: they count in a text that is one
name, alone or before a hyphen or an underscore. Sentences may speak of ONNX and Triton, the products."""
SCHEME = "the scheme of a URL that --endpoint takes, and the backend that it is of"
FLAG, EXAMPLE = "a flag of the published studies", "an example in a sentence for a person"
PACK = "the servers that are started on a GPU host"
STATED = "what a server says that it emulates, a field of the header"
ALLOWED = {
    ("swarm/targets/endpoints.py", name): "the endpoints of the published studies"
    for name in ("pytorch", "onnx", "trt", "gateway")
} | {
    **{(f"swarm/{place}.py", "trt"): FLAG for place in ("options/model", "targets/endpoints")},
    **{("users/__init__.py", name): "the users of the published studies" for name in ("pytorch", "onnx")},
    **{("swarm/options/endpoint_url.py", name): SCHEME for name in (FAMILY, "v2", "rpc", "service")},
    ("swarm/options/endpoint_fields.py", FAMILY): SCHEME,
    ("swarm/targets/discover.py", FAMILY): "what a model takes is asked by its API",
    ("swarm/targets/request_forms.py", FAMILY): "shared memory is registered by its API",
    **{(f"swarm/{place}.py", FAMILY): EXAMPLE for place in ("options/model", "targets/probe")},
    ("swarm/gpu_pack/build.py", FAMILY): "a file of requirements",
    **{(f"{place}.py", "onnx"): EXAMPLE for place in ("swarm/options/model", "reports/gates/require")},
    **{(f"reports/{place}.py", "emulated"): STATED for place in ("backend_facts", "cells_csv/sides")},
    ("swarm/output/results_folder.py", "emulated"): STATED,
    ("swarm/output/results_folder.py", "openvino"): "a package, whose version is told",
    ("users/backends/asking.py", "emulated"): STATED,
    ("users/endpoint.py", "null"): "the model of every floor, and what ledgers call its backend",
    ("reports/gates/select.py", "null"): "what ledgers call a floor's backend",
    ("reports/cells_csv/sides.py", "null"): "JSON's word for nothing",
    ("reports/topics/published/hypotheses.py", "pytorch"): "what the published studies had supposed",
    **{("swarm/gpu_pack/steps.py", name): PACK for name in ("pytorch", "inductor", "onnx", "trt")},
    **{
        (f"swarm/{place}.py", FAMILY): "the traces of a server that is started here with --trace"
        for place in ("study/master", "study/dependencies")
    },
}
"""By file and backend, why it is named there."""


def words(tree: ast.Module) -> Iterator[str]:
    """The texts of a program, docstrings left out, and the names in it."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docs:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                yield f"{name}()"
            case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)) | ast.ClassDef(name=name):
                yield f"{name}()"
            case ast.ImportFrom(module=str(name)):
                yield f"{name}()"


@cache
def named_by(word: str, asking: bool = True) -> frozenset[str]:
    """The backends that a text names, or a name, which is told by its brackets; `asking`: in ASKING."""
    lower = word.lower() if word.endswith("()") else word
    sure = {name for name in (*UNMISTAKABLE, FAMILY) if re.search(rf"(?<![a-z]){name}(?![a-z])", lower)}
    others = {*backends(), "null"} - {*AMBIGUOUS}
    found = {name for name in others if re.fullmatch(rf"{name}([-_]\S*)?", word)}
    return frozenset(sure | found | ({word} & {*AMBIGUOUS} if asking else set()))


def test_a_backend_is_named_in_its_own_file_alone() -> None:
    found = set()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        place = str(path.relative_to(ROOT))
        if not place.startswith(HOMES):
            texts = words(ast.parse(path.read_text()))
            asking = place.startswith(ASKING)
            found |= {(place, name) for word in texts for name in named_by(word, asking)}
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("onnx", "ONNX_PORT()"), {"onnx"}),
        (("openvino-",), {"openvino"}),
        (("skip_trt()",), {"trt"}),
        (("emulated-",), {"emulated"}),
        (("null",), {"null"}),
        (("triton_trace()",), {"triton"}),
        (("service",), {"service"}),
        (("v2-grpc",), {"v2"}),
        (("of a gateway", "service_time", "nullable", "emulated()", "ONNX Runtime", "strt"), set()),
    ],
)
def test_what_counts_as_a_name(words: tuple[str, ...], names: set[str]) -> None:
    assert [named_by(word) for word in words] == [names] * len(words)
