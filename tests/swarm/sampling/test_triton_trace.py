"""Triton's trace files and our requests: parts of each, the join by id, and what is missing."""

import json

import pytest

from reports.histogram import buckets, codec
from swarm.sampling.triton_trace import gap_of, join, parts_ns, stamps_of

HTTP = """
[{"id":1,"timestamps":[{"name":"HTTP_RECV_START","ns":33505713258022}]},
{"id":1,"timestamps":[{"name":"HTTP_RECV_END","ns":33505714156380}]},
{"id":1,"model_name":"emulated","model_version":1,"request_id":"aaaaaaaa00000001"},
{"id":1,"timestamps":[{"name":"REQUEST_START","ns":33505714245052}]},
{"id":1,"timestamps":[{"name":"QUEUE_START","ns":33505714259413}]},
{"id":1,"timestamps":[{"name":"INFER_RESPONSE_COMPLETE","ns":33505781220079}]},
{"id":1,"timestamps":[{"name":"COMPUTE_START","ns":33505724443389}]},
{"id":1,"timestamps":[{"name":"COMPUTE_INPUT_END","ns":33505724921511}]},
{"id":1,"timestamps":[{"name":"COMPUTE_OUTPUT_START","ns":33505781151167}]},
{"id":1,"timestamps":[{"name":"COMPUTE_END","ns":33505784058156}]},
{"id":1,"timestamps":[{"name":"REQUEST_END","ns":33505784097835}]},
{"id":1,"timestamps":[{"name":"HTTP_SEND_START","ns":33505784169732}]},
{"id":1,"timestamps":[{"name":"HTTP_SEND_END","ns":33505784187538}]},
{"id":4,"model_name":"null","model_version":1},
{"id":4,"timestamps":[{"name":"REQUEST_START","ns":33505847710335}]}]
"""
GRPC = """
[{"id":2,"model_name":"emulated","model_version":1,"request_id":"aaaaaaaa00000002"},
{"id":2,"timestamps":[{"name":"REQUEST_START","ns":33505795132026}]},
{"id":2,"timestamps":[{"name":"QUEUE_START","ns":33505795151696}]},
{"id":2,"timestamps":[{"name":"COMPUTE_START","ns":33505805289993}]},
{"id":2,"timestamps":[{"name":"COMPUTE_INPUT_END","ns":33505805379557}]},
{"id":2,"timestamps":[{"name":"COMPUTE_OUTPUT_START","ns":33505811307014}]},
{"id":2,"timestamps":[{"name":"COMPUTE_END","ns":33505814138721}]},
{"id":2,"timestamps":[{"name":"REQUEST_END","ns":33505814148475}]},
{"id":2,"timestamps":[{"name":"GRPC_WAITREAD_START","ns":33505543967239}]},
{"id":2,"timestamps":[{"name":"GRPC_WAITREAD_END","ns":33505795084766}]},
{"id":2,"timestamps":[{"name":"INFER_RESPONSE_COMPLETE","ns":33505811354154}]},
{"id":2,"timestamps":[{"name":"GRPC_SEND_START","ns":33505811356738}]},
{"id":2,"timestamps":[{"name":"GRPC_SEND_END","ns":33505816149485}]},
{"id":3,"model_name":"null","model_version":1,"request_id":"aaaaaaaa00000003"},
{"id":3,"timestamps":[{"name":"QUEUE_START","ns":1}]}]
"""
ONE, TWO = "aaaaaaaa00000001", "aaaaaaaa00000002"
FOUND, BROKEN = "requests were found in Triton's trace", "a.json.1 cannot be read"
ROOM = "--raw-results left room for"


def test_only_what_was_asked_for_is_taken_from_a_file() -> None:
    stamps = stamps_of(HTTP, {ONE, TWO})
    assert set(stamps) == {ONE}
    assert len(stamps[ONE]) == 12
    assert stamps[ONE]["QUEUE_START"] == 33_505_714_259_413
    assert stamps_of(GRPC, set()) == {}


@pytest.mark.parametrize(
    "text", ["", HTTP[:-100], '{"id":1}', "[1]", '[{"timestamps":[{"name":"A","ns":1}]}]']
)
def test_what_is_no_whole_file_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        stamps_of(text, {ONE})


def test_the_parts_over_http() -> None:
    assert parts_ns(stamps_of(HTTP, {ONE})[ONE], 70_100_000) == {
        "receive": 898_358, "queue": 10_183_976, "input": 478_122, "compute": 56_229_656,
        "output": 2_906_989, "send": 17_806, "server": 70_013_352, "outside": 86_648,
    }  # fmt: skip


def test_over_grpc_the_server_ends_when_the_answer_leaves_and_not_when_the_request_is_put_away() -> None:
    assert parts_ns(stamps_of(GRPC, {TWO})[TWO], 17_000_000) == {
        "queue": 10_138_297, "input": 89_564, "compute": 5_927_457, "output": 2_831_707,
        "send": 4_792_747, "server": 16_271_972, "outside": 728_028,
    }  # fmt: skip


def test_outside_is_never_below_nothing_and_unknown_without_the_server() -> None:
    assert parts_ns({"HTTP_RECV_END": 10, "HTTP_SEND_START": 30}, 15) == {"server": 20, "outside": 0}
    assert parts_ns({"QUEUE_START": 10, "COMPUTE_START": 30}, 15) == {"queue": 20}
    assert parts_ns({}, 15) == {}


def test_requests_are_joined_by_id_alone() -> None:
    traced = stamps_of(HTTP, {ONE}) | stamps_of(GRPC, {TWO, "aaaaaaaa00000003"})
    found = join({ONE: 70_100_000, "ffffffff00000000": 5, TWO: 17_000_000}, traced, 3)
    assert (found.requests, found.joined) == (3, 2)
    assert found.parts["queue"] == [10_183_976, 10_138_297]
    assert found.parts["receive"] == [898_358]
    record = json.loads(json.dumps(found.to_record()))
    assert (record["requests"], record["joined"]) == (3, 2)
    p50, highest = buckets.percentiles_ns(codec.merged([record["histograms"]["compute"]]), (50, 100))
    assert p50 == pytest.approx(5_927_457, rel=0.001)
    assert highest == pytest.approx(56_229_656, rel=0.001)
    assert {"receive", "queue", "compute", "output", "server", "outside"} <= {*record["histograms"]}


def test_nothing_joined_leaves_no_histogram() -> None:
    record = join({ONE: 5}, {}, 1).to_record()
    assert record == {"requests": 1, "joined": 0, "histograms": {}}


@pytest.mark.parametrize(
    ("counts", "fault", "gap"),
    [
        *(((100, 100, 100), "", ""), ((100, 100, 100), BROKEN, ""), ((100, 90, 100), "", "")),
        ((100, 90, 100), BROKEN, f"90 of 100 {FOUND} ({BROKEN})"),
        ((100, 89, 100), "", f"89 of 100 {FOUND}"),
        ((0, 0, 1_200), "", f"{ROOM} 0 of 1,200 requests, so no more are joined"),
        ((10, 0, 12), "", f"{ROOM} 10 of 12 requests, so no more are joined; 0 of 10 {FOUND}"),
        ((10, 9, 11), "", ""),
    ],
)
def test_what_is_said_of_missing_requests(counts: tuple[int, int, int], fault: str, gap: str) -> None:
    assert gap_of(*counts, fault) == gap


def test_an_ensembles_request_has_the_times_of_its_last_step_and_its_own_edges() -> None:
    """As tritonserver 2.51 writes it: steps first, in no order, and all under the client's id."""
    edges = {"QUEUE_START": 11, "HTTP_RECV_START": 5, "HTTP_RECV_END": 10}
    edges |= {"HTTP_SEND_START": 95, "HTTP_SEND_END": 99}
    names = ("QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END")
    told_ns = {3: (42, 50, 52, 88, 90), 2: (12, 15, 16, 38, 40)}
    steps = {number: dict(zip(names, times, strict=True)) for number, times in told_ns.items()}
    records = [
        record
        for number, times in {**steps, 1: edges}.items()
        for record in (
            {"id": number, "request_id": "x", **({"parent_id": 1} if number in steps else {})},
            *({"id": number, "timestamps": [{"name": name, "ns": ns}]} for name, ns in times.items()),
        )
    ]
    for told in (records, records[::-1]):
        found = stamps_of(json.dumps(told), {"x"})
        assert parts_ns(found["x"], 100) == {
            "receive": 5, "queue": 8, "input": 2, "compute": 36, "output": 2,
            "send": 4, "server": 85, "outside": 15,
        }  # fmt: skip
