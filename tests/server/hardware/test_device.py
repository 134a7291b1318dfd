"""What the embedded servers compute on, for every kind of host; ONNX Runtimes that fall back are refused."""

import json
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import onnxruntime
import pytest

from server.cache import cache
from server.embedded import plans, up
from server.embedded.fleet import fatal, reason_of
from server.embedded.options import parse, patience_s, wanted
from server.embedded.plans import Hosting, engine_parameters, pytorch_plan
from server.errors import SetUpError
from server.hardware import probe
from server.hardware.device import CPU, CUDA, TENSORRT, Device, DeviceFacts, choose
from server.spec import ROOT, ModelSpec
from tests.server.triton.test_triton_models import load_model

A100 = ("A100",)
BOTH = (TENSORRT, CUDA, CPU)
WHOLE = DeviceFacts(A100, BOTH, {}, True, ("/lib",))
NO_TENSORRT = DeviceFacts(A100, BOTH, {TENSORRT: "no libnvinfer.so.10"}, True)
CPU_RUNTIME = DeviceFacts(A100, (CPU,), {}, True)
FALLS_BACK = DeviceFacts(A100, BOTH, {CUDA: "no libcublas.so.13", TENSORRT: "none"}, True)
TORCH_ON_CPU = DeviceFacts(A100, BOTH)


@pytest.mark.parametrize(
    ("asked", "facts", "name", "torch", "compiled", "why"),
    [
        ("auto", DeviceFacts(), "cpu", "", "openvino", "NVML sees no NVIDIA GPU here"),
        ("auto", CPU_RUNTIME, "cpu", "cpu", "openvino", "the installed ONNX Runtime is the CPU build: "),
        ("auto", DeviceFacts(A100), "cpu", "cpu", "openvino", "ONNX Runtime is not installed: "),
        ("auto", WHOLE, "cuda", "cuda", "trt", "A100"),
        ("cuda", WHOLE, "cuda", "cuda", "trt", "A100"),
        ("auto", NO_TENSORRT, "cuda", "cuda", "", "A100; no compiled engine, since TensorRT is missing (no"),
        ("cpu", FALLS_BACK, "cpu", "cpu", "openvino", "as asked"),
    ],
)
def test_the_device_is_the_gpu_where_all_of_it_is_there(asked, facts, name, torch, compiled, why):
    device = choose(asked, facts)
    assert (device.name, device.torch, device.compiled) == (name, torch, compiled)
    assert device.why.startswith(why)
    assert device.provider == (CUDA if name == "cuda" else CPU)
    assert device.folders == (facts.folders if name == "cuda" else ())


@pytest.mark.parametrize(
    ("asked", "facts", "sentence"),
    [
        ("cuda", DeviceFacts(), "--device cuda: NVML sees no NVIDIA GPU here: check its driver, "),
        ("cuda", CPU_RUNTIME, "--device cuda: the installed ONNX Runtime is the CPU build: install req"),
        ("auto", FALLS_BACK, f"ONNX Runtime lists {CUDA} but would compute on the CPU (no libcublas.so.13)"),
        ("auto", TORCH_ON_CPU, "ONNX Runtime computes on A100, but PyTorch finds no CUDA device: "),
    ],
)
def test_a_gpu_that_would_not_be_used_is_refused(asked, facts, sentence):
    with pytest.raises(SetUpError) as caught:
        choose(asked, facts)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(", or give --device cpu.")


def test_for_pytorch_alone_onnx_runtime_does_not_matter():
    assert choose("auto", DeviceFacts(A100, (CPU,), {}, True), engines=False).torch == "cuda"
    assert choose("auto", FALLS_BACK, engines=False).torch == "cuda"
    assert choose("auto", TORCH_ON_CPU, engines=False).torch == "cpu"


def test_the_compiled_engine_is_the_devices():
    names = ("pytorch", "onnx", "compiled")
    assert Device().servers(names) == ("pytorch", "onnx", "openvino")
    assert choose("auto", WHOLE).servers(names) == ("pytorch", "onnx", "trt")
    assert choose("auto", NO_TENSORRT).servers(names) == ("pytorch", "onnx")
    assert Device().servers(("compiled", "openvino")) == ("openvino",)
    for names, device, sentence in (
        (("openvino", "trt"), choose("auto", WHOLE), "--only takes one of openvino and trt: "),
        (("trt",), Device(why="as asked"), "--only trt: no TensorRT on cpu (as asked): "),
        (("compiled",), choose("auto", NO_TENSORRT), "--only compiled: there is no engine for cuda (A100; "),
    ):
        with pytest.raises(SetUpError) as caught:
            device.servers(names)
        assert str(caught.value).startswith(sentence)


def test_an_engine_may_take_longer_to_start():
    chosen = wanted(parse(["--only", "trt"]))
    assert patience_s(parse([]), chosen) == 900
    assert patience_s(parse([]), wanted(parse([]))) == 180
    assert patience_s(parse(["--start-timeout-s", "7"]), chosen) == 7


def test_a_refusal_is_one_sentence_and_exit_2(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(up, "read_facts", lambda: FALLS_BACK)
    monkeypatch.setattr(up.signal, "signal", lambda *_: None)
    assert up.main(["--log-dir", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ONNX Runtime lists {CUDA} but would compute on the CPU (no libcublas.so.13): ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [], "nothing was started"


def test_an_engine_is_told_its_providers():
    device = choose("auto", WHOLE)
    assert engine_parameters("onnx", {"a": "b"}, Device()) == {"a": "b"}
    assert engine_parameters("openvino", {"a": "b"}, device) == {"a": "b"}
    onnx = {"a": "b", "providers": f"{CUDA},{CPU}", "warm_up": "1,4,8,16,32"}
    assert engine_parameters("onnx", {"a": "b"}, device) == onnx
    paths = dict.fromkeys(("trt_engine_cache_path", "trt_timing_cache_path"), str(cache("tensorrt")))
    assert engine_parameters("trt", {}, device) == {"providers": ",".join(BOTH), **paths}


@pytest.mark.parametrize(
    ("device", "alone", "environ", "told"),
    [
        (Device(), "auto", "mps", "mps"),
        (choose("cpu", WHOLE), "cpu", "cuda:1", "cpu"),
        (choose("auto", WHOLE), "cuda", "cuda:1", "cuda:1"),
    ],
)
def test_pytorch_computes_where_the_others_do(device, alone, environ, told, monkeypatch):
    monkeypatch.delenv("INFERSWARM_DEVICE", raising=False)
    monkeypatch.setattr(plans, "choose_ports", lambda host, ports: ports)
    hosting = Hosting("127.0.0.1", 0, device=device)
    assert pytorch_plan(ModelSpec(), hosting).environ["INFERSWARM_DEVICE"] == alone
    monkeypatch.setenv("INFERSWARM_DEVICE", environ)
    assert pytorch_plan(ModelSpec(), hosting).environ["INFERSWARM_DEVICE"] == told


class Runtime:
    """An ONNX Runtime that has `listed`, and whose sessions get `gets`, with so many products on each."""

    __file__ = "/nowhere/__init__.py"

    def __init__(self, gets=CUDA, error=None, placed=((CUDA, "MatMul"),)):
        self.gets, self.error, self.placed = gets, error, placed
        self.entries, self.asked, self.ran = {}, [], []

    def SessionOptions(self):
        return SimpleNamespace(add_session_config_entry=self.entries.__setitem__)

    def InferenceSession(self, model, options, providers):
        self.asked = providers
        if self.error:
            raise RuntimeError(self.error)
        nodes = [
            SimpleNamespace(ep_name=name, get_nodes=lambda kind=kind: [SimpleNamespace(op_type=kind)])
            for name, kind in self.placed
        ]

        def run(outputs, inputs):
            self.ran.append(next(iter(inputs.values())))
            return [np.zeros((len(self.ran[-1]), 512), np.float32)]

        return SimpleNamespace(
            get_providers=lambda: [self.gets, CPU], get_provider_graph_assignment_info=lambda: nodes, run=run
        )


def test_a_provider_is_tried_with_a_product(monkeypatch):
    monkeypatch.setattr(probe, "unloadable", lambda *_: "")
    works = Runtime()
    assert probe.fault(works, CUDA) == ""
    assert works.asked == [CUDA]
    assert works.entries == {"session.disable_cpu_ep_fallback": "1"}
    assert np.array_equal(works.ran[0], np.eye(2))
    assert probe.fault(Runtime(gets=CPU), CUDA) == f"a session requested with it got {CPU}"
    assert probe.fault(Runtime(error="nodes are\nassigned to it"), CUDA) == "nodes are assigned to it"


def test_what_a_provider_could_not_load_is_named():
    said = probe.fault(Runtime(gets=CPU), CUDA)
    assert said.startswith("/nowhere/capi/libonnxruntime_providers_shared.so: cannot open shared object file")


def test_without_a_gpu_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(probe, "read_gpus", lambda: [])
    monkeypatch.setattr(probe, "_run", lambda environ: pytest.fail("tried"))
    assert probe.read_facts() == DeviceFacts()


def test_what_was_tried_is_read(monkeypatch):
    monkeypatch.setattr(probe, "read_gpus", lambda: [SimpleNamespace(name="A100")])
    monkeypatch.setattr(probe, "library_folders", lambda: ("/one", "/two"))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/own")
    seen = {}

    def run(environ):
        seen.update(environ)
        return json.dumps({"listed": [CUDA, CPU], "failed": {CUDA: "why"}, "torch_cuda": False})

    monkeypatch.setattr(probe, "_run", run)
    assert probe.read_facts() == DeviceFacts(A100, (CUDA, CPU), {CUDA: "why"}, False, ("/one", "/two"))
    assert seen["LD_LIBRARY_PATH"] == "/one:/two:/own"


def test_libraries_are_found_where_wheels_keep_them(tmp_path):
    for name in ("nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/other/include", "tensorrt_libs"):
        (tmp_path / name).mkdir(parents=True)
    found = [folder.removeprefix(f"{tmp_path}/") for folder in probe.library_folders([tmp_path])]
    assert found == ["nvidia/cu13/lib", "nvidia/cudnn/lib", "tensorrt_libs"]
    assert probe.with_libraries({"A": "b"}, ()) == {"A": "b"}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (subprocess.TimeoutExpired("x", 1), "did not finish a computation within 120 s"),
        (
            subprocess.CalledProcessError(1, "x", stderr="a\nValueError: b\n"),
            "cannot be tested (ValueError: b)",
        ),
        (subprocess.CalledProcessError(-11, "x", stderr=""), "cannot be tested (exit code -11)"),
    ],
)
def test_a_gpu_that_never_answers_is_said(error, sentence, monkeypatch):
    def run(*_, **__):
        raise error

    monkeypatch.setattr(probe, "read_gpus", lambda: [SimpleNamespace(name="A100")])
    monkeypatch.setattr(probe.subprocess, "run", run)
    with pytest.raises(SetUpError) as caught:
        probe.read_facts()
    assert str(caught.value) == f"the GPU {sentence}: give --device cpu."


@pytest.fixture
def model(monkeypatch):
    """The model.py that `onnx` and `trt` share, and what gives it another ONNX Runtime."""
    loaded = load_model("onnx", monkeypatch)

    def given(runtime):
        fake = ModuleType("onnxruntime")
        fake.SessionOptions, fake.InferenceSession = runtime.SessionOptions, runtime.InferenceSession
        loaded.onnxruntime = fake
        return loaded

    return given


def arguments(parameters):
    wrapped = {name: {"string_value": value} for name, value in parameters.items()}
    return {"model_config": json.dumps({"parameters": wrapped})}


def test_a_model_computes_on_the_cpu_unless_told_otherwise(model):
    runtime = Runtime(gets=CPU)
    model(runtime).TritonPythonModel().initialize(arguments({"onnx_path": "x"}))
    assert runtime.asked == [(CPU, {})]
    assert [len(pixels) for pixels in runtime.ran] == [1]


def test_a_model_on_tensorrt_has_its_options_and_runs_every_batch_first(model):
    runtime = Runtime(gets=TENSORRT, placed=((TENSORRT, "MatMul"), (CPU, "Shape")))
    given = {"onnx_path": "x", "providers": ",".join(BOTH), "warm_up": "1,4", "trt_fp16_enable": "1"}
    model(runtime).TritonPythonModel().initialize(arguments(given))
    (first, options), (second, cuda), (last, _) = runtime.asked
    assert (first, second, last) == BOTH
    assert options == {"trt_fp16_enable": "1"}
    assert cuda["use_tf32"] == "0"
    assert [len(pixels) for pixels in runtime.ran] == [1, 4]


LEFT = f"left {{}} of {{}} products and convolutions to the CPU, and gave {{}} to {CUDA}."


@pytest.mark.parametrize(
    ("runtime", "sentence"),
    [
        (Runtime(gets=CPU), f"fell back to {CPU}: {CUDA} cannot be used here."),
        (Runtime(placed=((CUDA, "MatMul"), (CPU, "Gemm"), (CPU, "Shape"))), LEFT.format(1, 2, 1)),
        (Runtime(placed=((CUDA, "Shape"),)), LEFT.format(0, 0, 0)),
    ],
)
def test_a_model_that_would_compute_elsewhere_does_not_load(runtime, sentence, model):
    given = arguments({"onnx_path": "x", "providers": f"{CUDA},{CPU}"})
    with pytest.raises(RuntimeError) as caught:
        model(runtime).TritonPythonModel().initialize(given)
    assert str(caught.value) == f"ONNX Runtime {sentence}"
    assert runtime.ran == []


@pytest.mark.skipif(CUDA in onnxruntime.get_available_providers(), reason="this one has CUDA")
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_real_session_that_falls_back_does_not_load(model, tmp_path):
    (tmp_path / "product.onnx").write_bytes(probe._product())
    given = {"onnx_path": str(tmp_path / "product.onnx"), "providers": f"{CUDA},{CPU}"}
    with pytest.raises(RuntimeError) as caught:
        model(onnxruntime).open_session(given)
    assert str(caught.value) == FALLEN


def test_a_real_session_tells_where_its_products_are(model, tmp_path):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = onnxruntime.InferenceSession(probe._product(), options, providers=[CPU])
    with pytest.raises(RuntimeError, match=rf"left 1 of 1 products and convolutions .* gave 1 to {CPU}\."):
        model(onnxruntime).refuse_fallback(session, CPU)


FALLEN = f"ONNX Runtime fell back to {CPU}: {CUDA} cannot be used here."


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (f"Internal: RuntimeError: {FALLEN}\\n\\nAt:\\n  /x/1/model.py(63): refuse_fallback\\n", FALLEN),
        ("Internal: no space left", "no space left"),
        ("Not found: unable to load shared library", "Not found"),
    ],
)
def test_what_a_tritonserver_says_of_its_model_reaches_the_user(said, reason):
    begins = "E1122 14:48:04.837861 12987 model_lifecycle.cc:642] "
    log = f"I1122 ready\n{begins}\"failed to load 'some_model' version 1: {said}\"\nerror: creating server\n"
    found = reason_of(log, "error: creating server")
    assert found.startswith(f"says: some_model could not be loaded: {reason}")
    # Without a model to blame, the end of the log.
    assert reason_of("one\ntwo\n", "one\ntwo") == "ends with: two"
    assert reason_of("", "") == "ends with: nothing"


def test_what_is_tried_is_told_as_json():
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['torch'] = type(sys)('torch');"
         "sys.modules['torch'].cuda = type('Cuda', (), {'is_available': lambda: True});"
         "from server.hardware import probe; probe.main()"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["torch_cuda"] is True
    assert CPU in said["listed"]
    assert set(said["failed"]) <= {CUDA, TENSORRT}


def test_what_a_server_never_gets_over_is_found_in_its_log():
    warning = "bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)\nI1122 loading\n"
    assert fatal(warning) == ""
    for line in (
        "bash: line 1: /my: No such file or directory",
        "/x/triton_python_backend_stub: error while loading shared libraries: libpython3.11.so.1.0",
        "Fatal Python error: init_fs_encoding: failed to get the Python codec",
    ):
        assert fatal(f"{warning}{line}\nmore\n") == line
