"""What the doctor says of several hosts, and how it finds out."""

import sys

import pytest

from server.errors import SetUpError
from server.hardware import doctor
from server.hardware.device import CPU, CUDA, TENSORRT, DeviceFacts
from server.hardware.doctor import PACKAGES, Docker, HostFinding, ask_docker, findings, profiles, verdicts

INSTALLED = dict.fromkeys((*PACKAGES, "nvidia-ml-py"), "1.0")
ENGINE = Docker("28.2.2", "2.39.1", "28.2.2", nvidia=True)
GPU = DeviceFacts(("A100",), (TENSORRT, CUDA, CPU), {}, True)
ON_CPU = HostFinding(INSTALLED, "/triton", "/libpython")
ON_GPU = HostFinding(INSTALLED, "/triton", "/libpython", gpu=GPU, docker=ENGINE)
GPU_INSTALL = "install requirements-gpu.txt in a separate virtual environment"
CPU_BUILD = f"the installed ONNX Runtime is the CPU build: {GPU_INSTALL}"


def test_a_host_with_everything(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "look", lambda: ON_GPU)
    assert doctor.main([]) == 0
    python, *found = capsys.readouterr().out.splitlines()
    assert python.startswith("python          3.")
    assert found == [
        *(f"{name:15} 1.0" for name in PACKAGES),
        "tritonserver    /triton",
        "libpython       /libpython",
        "nvidia-ml-py    1.0",
        "GPU             A100",
        "TensorRT        can be used",
        "docker          28.2.2, engine 28.2.2",
        "",
        "This host can run",
        "  container      yes  see docs/production.md",
        "  embedded CPU   yes  `inferswarm up --device cpu`",
        "  embedded CUDA  yes  `inferswarm up --device cuda`",
    ]


def test_a_host_without_gpu_and_docker():
    assert list(verdicts(ON_CPU)) == [
        "This host can run",
        "  container      no   no docker command: install Docker Engine with its compose plugin",
        "  embedded CPU   yes  `inferswarm up --device cpu`",
        "  embedded CUDA  no   NVML sees no NVIDIA GPU here: check its driver, and nvidia-ml-py",
    ]
    assert list(findings(ON_CPU))[-2:] == ["GPU             none", "docker          none"]


def test_every_lack_has_a_line_and_its_fix():
    host = HostFinding(
        {**INSTALLED} | {"onnxruntime": "1.31.1 (onnxruntime-gpu)"},
        wheel_fault="tritonserver has no stub for Python 3.14.",
        gpu=DeviceFacts(("A100",), (CUDA, CPU), {CUDA: "no libcublas.so.13"}, True),
        docker=Docker("20.10", "", "20.10"),
    )
    assert list(verdicts(host))[1:] == [
        "  container      no   docker compose is missing: install docker-compose-plugin 2.20 or later",
        "                      Docker cannot pass on the GPU: install nvidia-container-toolkit, run "
        "`nvidia-ctk runtime configure --runtime=docker` and restart Docker",
        "  embedded CPU   no   tritonserver has no stub for Python 3.14.",
        "  embedded CUDA  no   tritonserver has no stub for Python 3.14.",
        "                      ONNX Runtime lists CUDAExecutionProvider but would compute on the CPU "
        "(no libcublas.so.13): check for NVIDIA's driver 580 or later, and for the packages of "
        "requirements-gpu.txt",
    ]
    assert "TensorRT        not found" in findings(host)


@pytest.mark.parametrize(
    ("gpu", "gpu_fault", "lacks"),
    [
        (DeviceFacts(("A100",), (CPU,), {}, True), "", (CPU_BUILD,)),
        (DeviceFacts(("A100",)), "the GPU cannot be tried", ("the GPU cannot be tried",)),
        (GPU, "", ()),
    ],
)
def test_what_a_gpu_lacks(gpu, gpu_fault, lacks):
    _, _, cuda = profiles(HostFinding(INSTALLED, gpu=gpu, gpu_fault=gpu_fault))
    assert cuda.lacks == lacks


@pytest.mark.parametrize(
    ("compose", "lacks"),
    [
        ("v2.20.0-desktop.1", False),
        ("5.0.1", False),
        ("2.19.1", True),
        ("dev", True),
    ],
)
def test_an_old_compose_is_named(compose, lacks):
    host = HostFinding(INSTALLED, gpu=GPU, docker=Docker("28", compose, "28", nvidia=True))
    said = (f"docker compose is {compose}: install docker-compose-plugin 2.20 or later",)
    assert profiles(host)[0].lacks == (said if lacks else ())


@pytest.mark.parametrize("missing", [*PACKAGES, "nvidia-ml-py"])
def test_a_missing_package_is_named(missing, monkeypatch, capsys):
    """Without nvidia-ml-py the servers run, but no GPU is seen."""
    packages = {name: text for name, text in INSTALLED.items() if name != missing}
    monkeypatch.setattr(doctor, "look", lambda: HostFinding(packages, "/triton"))
    code = doctor.main([])
    out = capsys.readouterr().out.splitlines()
    line = f"{missing:15} missing: run `pip install -r requirements.txt`"
    if missing == "nvidia-ml-py":
        assert (code, f"{line}; until then no GPU is seen" in out) == (0, True)
    else:
        assert (code, line in out) == (2, True)
        said = f"  embedded CPU   no   {missing} not installed: run `pip install -r requirements.txt`"
        assert said in out


def test_either_onnx_runtime_will_do(monkeypatch):
    versions = {"onnxruntime-gpu": "1.31.1", "torch": "2.13.0"}
    monkeypatch.setattr(doctor, "version_of", lambda name: versions.get(name, ""))
    assert doctor.installed() == {"torch": "2.13.0", "onnxruntime": "1.31.1 (onnxruntime-gpu)"}


INFO = {"ClientInfo": {"Version": "28.2.2", "Plugins": [{"Name": "compose", "Version": "2.39.1"}]}}


@pytest.mark.parametrize(
    ("more", "error", "found"),
    [
        ({"ServerVersion": "28.2.2", "Runtimes": {"runc": {}, "nvidia": {}}}, "", ENGINE),
        ({"ServerVersion": "28.2.2", "DiscoveredDevices": [{"ID": "nvidia.com/gpu=0"}]}, "", ENGINE),
        ({"ServerVersion": "28", "Runtimes": {"runc": {}}}, "warned", Docker("28.2.2", "2.39.1", "28")),
        ({"ServerVersion": ""}, "no daemon", Docker("28.2.2", "2.39.1", "", "no daemon")),
        ({"ServerErrors": ["denied"]}, "", Docker("28.2.2", "2.39.1", "", "denied")),
        ({"ClientInfo": None}, "", Docker("?", error="no output")),
    ],
)
def test_what_docker_says_of_itself(more, error, found):
    assert doctor.docker_of({**INFO, **more}, error) == found


def test_docker_is_asked():
    said = [sys.executable, "-c", """print('{"ServerVersion": "28", "ClientInfo": {"Version": "27"}}')"""]
    assert ask_docker(said) == Docker("27", engine="28")
    assert ask_docker([sys.executable, "-c", "raise SystemExit('broken')"]) == Docker("?", error="broken")
    assert ask_docker(["/nowhere/docker"]) == Docker()
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert ask_docker(slow, 0.2) == Docker("?", error="no answer within 0 s")


def test_looking_keeps_what_is_missing(monkeypatch):
    def fails():
        raise SetUpError("no answer.")

    monkeypatch.setattr(doctor, "find_wheel", fails)
    monkeypatch.setattr(doctor, "read_facts", fails)
    monkeypatch.setattr(doctor, "read_gpus", lambda: [])
    monkeypatch.setattr(doctor, "ask_docker", lambda: ENGINE)
    host = doctor.look()
    assert (host.wheel_fault, host.gpu_fault, host.docker) == ("no answer.", "no answer.", ENGINE)
    assert host.packages["torch"]
