"""The operator profile: exact shares of a trace made by hand, and a real one of a small model."""

import json

import onnx
import pytest
from onnx import TensorProto, helper

from server import __main__ as program
from server.errors import SetUpError
from server.models import profile as command
from server.models.profile import CPU, GPU, PUBLISHED, SETTINGS, TraceError, operators_of, profile
from server.spec import ROOT

CUDA = "CUDAExecutionProvider"


def run(ts, dur):
    return {"cat": "Session", "name": "model_run", "ts": ts, "dur": dur, "args": {}}


def node(name, operator, ts, dur, provider=CPU, index="0"):
    args = {"op_name": operator, "provider": provider, "node_index": index}
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur, "args": args}


def trace():
    """A warm-up that was slow and elsewhere, then two inferences: 90 + 110 µs, of which MatMul 60 + 60."""
    loading = {"cat": "Session", "name": "model_loading_uri", "ts": 1, "dur": 500, "args": {}}
    made = [loading, run(1_000, 5_000), node("a", "MatMul", 1_010, 4_000), node("x", "Conv", 1_020, 900)]
    for at, whole, first, second in ((10_000, 90, 40, 20), (20_000, 110, 30, 30)):
        made += [run(at, whole), node("a", "MatMul", at + 10, first), node("b", "MatMul", at + 50, second)]
        made += [node("c", "Add", at + 70, 20), node("d", "Shape", at + 90, 0)]
    return made


def test_shares_are_of_the_counted_inferences_alone():
    told = operators_of(trace(), warm_up=1)
    assert told == {
        "operators": [
            {"operator": "MatMul", "nodes": 2, "time_ns": 60_000, "share": 0.75},
            {"operator": "Add", "nodes": 1, "time_ns": 20_000, "share": 0.25},
            {"operator": "Shape", "nodes": 1, "time_ns": 0, "share": 0.0},
        ],
        "executed_nodes": 4,
        "providers": {CPU: 4},
        "inferences": 2,
        "inference_ns": 100_000,
    }
    assert operators_of(trace()[::-1], 1) == told, "the order of the events does not matter"


@pytest.mark.parametrize("events", [[], [run(1, 2)], [run(1, 2), run(5, 1)]])
def test_a_trace_without_what_was_run(events):
    with pytest.raises(TraceError, match="ONNX Runtime's profile"):
        operators_of(events, warm_up=1)


def test_what_fell_back_on_the_processor():
    events = [node("a", "MatMul", 1, 9, CUDA), node("b", "Shape", 2, 1), node("b", "Shape", 9, 1)]
    events += [node("c", "Shape", 3, 1), node("d", "Gather", 4, 1)]
    fallen = [{"operator": "Shape", "nodes": 2}, {"operator": "Gather", "nodes": 1}]
    assert command.fallbacks_of(events, [CUDA, CPU]) == fallen
    assert command.fallbacks_of(events, [CPU]) == []
    found = {"providers": {CUDA: 5, CPU: 2}, "asked": [CUDA, CPU], "fallbacks": []}
    said = f"{CUDA} 5 nodes, {CPU} 2 nodes; fallen back on the processor: nothing"
    assert command.providers_said(found) == said
    found["fallbacks"] = [{"operator": "Shape", "nodes": 2}]
    assert command.providers_said(found).endswith("fallen back on the processor: Shape 2")
    alone = {"providers": {CPU: 4}, "asked": [CPU], "fallbacks": []}
    assert command.providers_said(alone) == f"{CPU} 4 nodes; {CPU} only, so nothing could fall back"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Pixels to their means through an Identity that ONNX Runtime drops: [n, 3, 224, 224] to [n, 3]."""
    path = tmp_path_factory.mktemp("small") / "small.onnx"
    pixels = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 3, 224, 224])
    means = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", 3])
    steps = (("Identity", "input", "same"), ("GlobalAveragePool", "same", "pooled"))
    steps = (*steps, ("Flatten", "pooled", "embedding"))
    nodes = [helper.make_node(kind, [given], [made]) for kind, given, made in steps]
    graph = helper.make_graph(nodes, "small", [pixels], [means])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_a_real_profile(small):
    found = profile(small, [CPU], 2, [1, 3], 4)
    assert (found["file_nodes"], found["opset"], found["file_bytes"]) == (3, 17, small.stat().st_size)
    assert found["executed_nodes"] == 2, "the Identity is optimised away"
    nodes = {one["operator"]: one["nodes"] for one in found["operators"]}
    assert nodes == {"GlobalAveragePool": 1, "Flatten": 1}
    assert sum(one["share"] for one in found["operators"]) == pytest.approx(1)
    assert (found["inferences"], found["batch"], found["providers"]) == (4, 2, {CPU: 2})
    assert len(found["session_ns"]) == 3
    assert min(found["session_ns"]) > 0
    assert [(one["batch"], one["iterations"]) for one in found["latencies"]] == [(1, 4), (3, 4)]
    assert all(0 < one["min_ns"] <= one["mean_ns"] <= one["max_ns"] for one in found["latencies"])
    assert found["fallbacks"] == []


@pytest.fixture
def exported(small, monkeypatch):
    """The command finds the small model in place of the image tower."""
    monkeypatch.setattr(command, "export", lambda spec, folder: print("exported"))
    monkeypatch.setattr(command, "onnx_path", lambda spec: small)


def test_json_is_one_object_alone(exported, capsys):
    assert program.main(["profile", "--json", "--batches", "1", "--iterations", "1"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["event"], found["model"], found["weights"]) == ("profile", "ViT-B-32", "random (seed 0)")
    assert err == "exported\n"


def test_the_table_stands_beside_the_published(exported, capsys):
    assert program.main(["profile", "--batches", "1,2", "--iterations", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["MatMul", "–", "–", "–", "75.7"] for line in lines)
    assert any("nothing could fall back" in line for line in lines)
    (first,) = [line for line in lines if line.split()[:1] == ["1"]]
    assert first.split()[-1] == "29.9"
    assert not any(line == GPU for line in lines)


def test_lines_of_a_gpu_say_what_its_times_are():
    published = json.loads(PUBLISHED.read_text())
    found = {"model": "m", "weights": "w", "onnxruntime": "1", "session_ns": [2_000_000, 1_000_000]}
    found |= {"file_bytes": 351_491_576, "file_nodes": 3, "opset": 17, "asked": [CUDA, CPU]}
    found |= {"fallbacks": [], "batch": 1, "latencies": [], **operators_of(trace(), 1)}
    lines = list(command.lines_of(found, published))
    assert GPU in lines
    assert "session creation: 2, 1 ms, one after the other (published 278.9 ms)" in lines
    assert "file: 351 MB (335 MiB), 3 nodes, opset 17 (published 335 MB, 2,272, opset 14)" in lines
    (share,) = [line.split() for line in lines if line.startswith("MatMul")]
    assert share == ["MatMul", "2", "0.060", "75.0", "75.7"]


@pytest.mark.parametrize(
    ("text", "said"), [("tpu", "has no tpu"), ("cpu,tpu", "has no tpu"), (",", "it has no name")]
)
def test_providers_that_are_not_there(text, said):
    with pytest.raises(SetUpError, match=f"--providers {text}: .*{said}; choose from cpu"):
        command.providers_of(text)
    assert command.providers_of("cpu") == [CPU]


def test_it_computes_as_the_embedded_server_does():
    """The server's model.py runs in Triton's stub, where nothing of ours can be imported."""
    text = (ROOT / "triton_repo" / "onnx" / "openclip_vit_b32" / "1" / "model.py").read_text()
    assert f"CUDA_OPTIONS = {json.dumps(SETTINGS[CUDA])}\n" in text
    assert command.settled([CUDA, CPU]) == [(CUDA, SETTINGS[CUDA]), (CPU, {})]


@pytest.mark.parametrize("option", ["--batch=0", "--batches=1,x", "--iterations=-1"])
def test_numbers_that_are_none(option, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main(["profile", option])
    assert caught.value.code == 2
    assert f"argument {option.partition('=')[0]}: takes a whole number, 1 or more" in capsys.readouterr().err
