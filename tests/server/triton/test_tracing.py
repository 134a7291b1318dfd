"""Where trace files go, and what turns tracing on."""

from server.triton.tritonserver import span_options, trace_file, trace_options


def test_files_of_an_earlier_server_are_removed_and_no_others(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    for name in ("onnx.json.0", "onnx.json.12", "onnx.json.old", "onnx.json", "emulated.json.0"):
        (folder / name).touch()
    assert trace_file(folder, "onnx") == folder / "onnx.json"
    assert {path.name for path in folder.iterdir()} == {"onnx.json.old", "onnx.json", "emulated.json.0"}
    assert trace_file(tmp_path / "a" / "b", "onnx").parent.is_dir()


def test_every_request_is_traced(tmp_path):
    assert trace_options(tmp_path / "onnx.json") == [
        f"--trace-config=triton,file={tmp_path}/onnx.json",
        "--trace-config=triton,log-frequency=100",
        "--trace-config=rate=1",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=count=-1",
    ]


def test_spans_are_of_requests_with_a_traceparent_alone():
    assert span_options("http://collector:4318/v1/traces", "onnx") == [
        "--trace-config=mode=opentelemetry",
        "--trace-config=rate=2147483647",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=count=-1",
        "--trace-config=opentelemetry,url=http://collector:4318/v1/traces",
        "--trace-config=opentelemetry,resource=service.name=triton-onnx",
        "--trace-config=opentelemetry,bsp_schedule_delay=1000",
    ]
