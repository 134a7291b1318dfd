"""The operator profile as a study gets it: a process of its own, whose failure ends nothing."""

import sys
from dataclasses import replace

import pytest

from swarm.options.model import Options
from swarm.plan.matrix import Size
from swarm.study.shape import StudyShape
from swarm.targets.embedded import profile_argv, profile_operators, wants_profile
from tests.swarm.options.test_parse import options as options_of


class Asking(StudyShape):
    """A study that wants it."""

    name, title, operators = "asking", "Asking", True
    sizes = {"quick": Size((1, 8, 32), (1,), 30, 2)}  # noqa: RUF012


@pytest.fixture
def options() -> Options:
    return options_of()


READY = {"endpoints": {"onnx": {"http": "h:1", "grpc": "h:2", "model": "m"}}}


def test_only_a_study_that_asks_on_an_embedded_engine(options: Options) -> None:
    assert wants_profile(Asking(), options, READY)
    assert not wants_profile(StudyShape(), options, READY), "most do not ask"
    assert not wants_profile(Asking(), replace(options, urls={"onnx_http_url": "h:1"}), READY)
    assert not wants_profile(Asking(), options, {"endpoints": {"emulated": {}}})
    assert not wants_profile(Asking(), options, {})


def test_the_command_names_the_studys_batches_and_weights(options: Options) -> None:
    size = Asking.sizes["quick"]
    assert profile_argv(options, size, READY)[1:] == [
        *("-m", "server", "profile", "--json", "--batches", "1,8,32", "--iterations", "10")
    ]
    other = replace(options, pretrained="laion2b")
    assert profile_argv(other, size, READY)[-2:] == ["--pretrained", "laion2b"]
    assert profile_argv(options, replace(size, iterations=6), READY)[-1] == "3"
    on_cuda = {"endpoints": {"onnx": {"provider": "CUDAExecutionProvider"}}}
    assert profile_argv(options, size, on_cuda)[-2:] == ["--providers", "cuda"]


def ran(code: str, patience_s: float = 30) -> dict[str, object]:
    return profile_operators([sys.executable, "-c", code], patience_s)


def test_what_it_printed_is_the_record() -> None:
    assert ran('print(\'{"event": "profile", "opset": 17}\')') == {"kind": "operators", "opset": 17}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import sys; sys.exit('no\\nfile is there.')",
            "inferswarm profile ended with 1: file is there",
        ),
        ("import sys; sys.exit(3)", "inferswarm profile ended with 3: without output"),
        ("print('done')", "inferswarm profile printed no JSON"),
        ("import time; time.sleep(60)", "it did not finish within 0.5 s"),
    ],
)
def test_a_failure_is_a_sentence(code: str, said: str) -> None:
    patience_s = 0.5 if "sleep" in code else 30
    assert ran(code, patience_s) == {"kind": "operators", "error": said}
