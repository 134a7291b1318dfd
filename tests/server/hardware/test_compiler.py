"""What torch.compile needs of a host, each of it missing in turn."""

import sys

import pytest

from server.embedded import plans
from server.embedded.plans import Hosting, torch_parameters
from server.errors import SetUpError
from server.hardware import compiler
from server.hardware.compiler import compiler_lack
from server.spec import ROOT, ModelSpec


@pytest.fixture
def host(tmp_path):
    """A folder with a compiler and with headers."""
    (tmp_path / "g++").touch(mode=0o755)
    (tmp_path / "Python.h").touch()
    return tmp_path


def test_a_missing_compiler_is_named(host):
    assert compiler_lack({"PATH": "/nowhere"}, host) == (
        "torch.compile needs a C++ compiler, and g++ is not there: install g++"
    )
    assert "clang++-19 is not there" in compiler_lack({"PATH": str(host), "CXX": "clang++-19 -v"}, host)


def test_missing_headers_are_named(host):
    assert compiler_lack({"PATH": str(host)}, host / "none") == (
        f"torch.compile needs Python's headers, and {host}/none has none: "
        f"install python{sys.version_info[0]}.{sys.version_info[1]}-dev"
    )


@pytest.mark.parametrize("old", ["2.5.1+cu124", "", "1.13"])
def test_a_pytorch_that_cannot_refuse_to_compile_is_named(host, monkeypatch, old):
    monkeypatch.setattr(compiler, "version_of", lambda name: old)
    said = f"torch.compile needs PyTorch 2.6 or later, not {old or 'none'}"
    assert compiler_lack({"PATH": str(host)}, host) == said
    for installed in ("2.6.0", "2.11.0+cu130", "3.0"):
        monkeypatch.setattr(compiler, "version_of", lambda name, installed=installed: installed)
        assert compiler_lack({"PATH": str(host)}, host) == ""


def test_a_server_that_would_compile_is_refused_and_the_other_is_not(monkeypatch):
    monkeypatch.delenv("INFERSWARM_DEVICE", raising=False)
    monkeypatch.setenv("INFERSWARM_THREADS", "7")
    monkeypatch.setattr(plans, "compiler_lack", lambda: "no compiler: install g++")
    hosting = Hosting("127.0.0.1", 0, precision="fp16")
    with pytest.raises(SetUpError, match=r"^no compiler: install g\+\+, or leave inductor out\.$"):
        torch_parameters("inductor", ModelSpec(), hosting)
    told = {"sources": str(ROOT), "model": "ViT-B-32", "pretrained": "", "seed": "3", "threads": "7"}
    told |= {"weights": "random (seed 3)", "device": "auto", "precision": "fp16"}
    assert torch_parameters("torch", ModelSpec(seed=3), hosting) == told
