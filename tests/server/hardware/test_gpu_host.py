"""What `doctor --gpu` says of hosts that have a GPU, or lack one, and part of what servers need."""

import json

import pytest

from server.errors import SetUpError
from server.hardware import doctor, gpu_host
from server.hardware.device import CPU, CUDA, TENSORRT, DeviceFacts
from server.hardware.gpu_host import links_lack, runtime_lack

H100 = DeviceFacts(("NVIDIA H100",), torch_cuda=True)


@pytest.fixture
def host(monkeypatch):
    """A host with a GPU and all that the servers in PyTorch need, whose parts can be replaced."""
    found = {"version_of": lambda name: "1.0", "read_facts": lambda: H100, "driver": lambda: "580.1"}
    found |= dict.fromkeys(("triton_lack", "compiler_lack", "links_lack"), str)

    def having(**replaced):
        for name, answer in {**found, **replaced}.items():
            monkeypatch.setattr(gpu_host, name, answer)

    having()
    return having


def said(capsys, *options):
    code = doctor.main(["--gpu", *options])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_a_gpu_host_with_pytorch_alone_runs_five(host, capsys):
    code, (_, *lines), err = said(capsys)
    assert (code, err) == (0, "")
    assert lines == [
        *(f"{name:15} 1.0" for name in gpu_host.NEEDED),
        "GPU             NVIDIA H100",
        "driver          580.1",
        "",
        "This host can run",
        "  pytorch    yes",
        "  torch      yes",
        "  inductor   yes",
        f"  onnx       no   no ONNX Runtime here has {CUDA}",
        f"  trt        no   no ONNX Runtime here has {TENSORRT}",
        "  links      yes",
    ]


def test_without_a_gpu_it_computes_on_the_cpu_and_says_so(host, capsys):
    host(read_facts=DeviceFacts, driver=lambda: "")
    code, lines, _ = said(capsys)
    assert code == 0
    assert f"GPU             {gpu_host.WITHOUT}" in lines
    assert lines[-6:-3] == ["  pytorch    yes", "  torch      yes", "  inductor   yes"]


def test_what_lacks_is_said_and_what_rests_on_it_lacks_it_too(host, capsys):
    host(triton_lack=lambda: "no libpython", compiler_lack=lambda: "no g++")
    code, out, _ = said(capsys, "--json")
    told = json.loads(out[0])
    assert code == 0
    assert told["gpus"] == ["NVIDIA H100"]
    lacks = dict.fromkeys(("torch", "inductor", "onnx", "trt"), "no libpython")
    assert told["lacks"] == {"pytorch": "", **lacks, "links": ""}


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"version_of": lambda name: "" if name == "locust" else "1.0"}, "locust not installed"),
        ({"read_facts": lambda: DeviceFacts(("NVIDIA H100",))}, "PyTorch finds no CUDA device, though"),
    ],
)
def test_where_nothing_can_run_it_ends_with_2(host, capsys, replaced, sentence):
    host(**replaced)
    code, _, err = said(capsys, "--json")
    assert code == 2
    assert f"  pytorch    no   {sentence}" in err


def test_a_gpu_that_cannot_be_tried_is_said(host, capsys, monkeypatch):
    def fails():
        raise SetUpError("the GPU cannot be tested (no driver)")

    host(read_facts=fails)
    monkeypatch.setattr(gpu_host, "read_gpus", lambda: [])
    code, _, err = said(capsys)
    assert code == 2
    assert "  torch      no   the GPU cannot be tested (no driver)\n" in err


def test_a_runtime_runs_where_it_computed_on_the_gpu():
    whole = DeviceFacts(("H100",), (TENSORRT, CUDA, CPU), {TENSORRT: "no libnvinfer.so.10"}, True)
    assert runtime_lack(whole, CUDA) == ""
    assert runtime_lack(whole, TENSORRT) == "no libnvinfer.so.10"
    assert runtime_lack(DeviceFacts(), CUDA) == "tried only on a GPU"


def test_links_need_namespaces(monkeypatch):
    monkeypatch.setattr(gpu_host.shutil, "which", lambda name: name)
    assert links_lack(("true",)) == ""
    assert links_lack(("sh", "-c", "echo not permitted >&2; exit 1")) == (
        "no network namespace can be made (not permitted)"
    )
    assert links_lack(("/no/such/program",)) == "no network namespace can be made (FileNotFoundError)"
    monkeypatch.setattr(gpu_host.shutil, "which", lambda name: None if name == "tc" else name)
    assert links_lack(("true",)) == "tc not there: install iproute2 and util-linux"


def test_json_is_of_gpu_alone(capsys):
    with pytest.raises(SystemExit) as caught:
        doctor.main(["--json"])
    assert caught.value.code == 2
    assert "--json needs --gpu: give that, too" in capsys.readouterr().err
