"""What a cold start took, as a tritonserver's log and the service's own words tell it."""

import json

from server.embedded import fleet

LOG = """\
W1121 16:58:01.339039 16135 pinned_memory_manager.cc:273] "Unable to allocate pinned system memory"
I1121 16:58:01.344705 16135 model_lifecycle.cc:472] "loading: openclip_vit_b32:1"
I1121 16:58:01.345000 16135 model_lifecycle.cc:472] "loading: null:1"
I1121 16:58:01.700000 16135 model_lifecycle.cc:839] "successfully loaded 'null'"
I1121 16:58:03.796312 16135 model_lifecycle.cc:839] "successfully loaded 'openclip_vit_b32'"
+------------------+---------+--------+
| openclip_vit_b32 | 1       | READY  |
"""


def test_a_load_is_the_time_between_two_lines_of_its_model():
    assert fleet.triton_loading_ns(LOG, "openclip_vit_b32") == 2_451_607_000
    assert fleet.triton_loading_ns(LOG, "null") == 355_000_000


def test_a_load_that_the_log_does_not_tell_is_none():
    assert fleet.triton_loading_ns("", "null") is None
    assert fleet.triton_loading_ns(LOG, "openclip_vit_b") is None
    assert fleet.triton_loading_ns(LOG.replace("successfully", "not"), "null") is None
    late = LOG.replace("I1121 16:58:01.344", "I1231 23:59:59.344")
    assert fleet.triton_loading_ns(late, "null") == 355_000_000
    assert fleet.triton_loading_ns(LOG.replace("I1121 16:58:01.3", "I1231 23:59:59.3"), "null") is None


def test_the_service_tells_its_own_load_and_what_it_computes_on(monkeypatch):
    said = {"load_s": 1.25, "device": "cuda", "precision": "fp16", "weights_sha256": "ab"}
    replies = {"ready": (200, json.dumps(said).encode()), "older": (200, b"{}"), "gone": None}
    monkeypatch.setattr(fleet, "get", lambda address, path: replies[address])
    whole = {"loaded_ns": 1_250_000_000, "provider": "PyTorch on cuda", "precision": "fp16"}
    whole["weights_sha256"] = "ab"
    none = {"loaded_ns": None}
    assert [fleet.service_told(address) for address in replies] == [whole, none, none]


def test_a_log_tells_what_a_model_is_and_what_was_compiled_for_which_batches():
    log = LOG + (
        'I1121 16:58:02.244705 16135 model.py:24] "computes on cuda:1 in fp16, weights 88ab"\n'
        'I1121 16:58:02.344705 16135 model.py:26] "compiled for 1 images: 34653.992 ms, then 221.532 ms"\n'
        'I1121 16:58:02.344706 16135 model.py:26] "compiled for 2 images: 25704.684 ms, then 446.411 ms"\n'
    )
    assert fleet.triton_told(log, "openclip_vit_b32") == {
        "loaded_ns": 2_451_607_000,
        "provider": "PyTorch on cuda:1",
        "precision": "fp16",
        "weights_sha256": "88ab",
        "compiled": [
            {"batch": 1, "first_ns": 34_653_992_000, "second_ns": 221_532_000},
            {"batch": 2, "first_ns": 25_704_684_000, "second_ns": 446_411_000},
        ],
    }
    assert fleet.triton_told(LOG, "null") == {"loaded_ns": 355_000_000}
