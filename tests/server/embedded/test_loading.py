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
    assert (
        fleet.triton_loading_ns(LOG.replace("I1121 16:58:01.344", "I1231 23:59:59.344"), "null")
        == 355_000_000
    )
    assert fleet.triton_loading_ns(LOG.replace("I1121 16:58:01.3", "I1231 23:59:59.3"), "null") is None


def test_the_service_tells_its_own_load(monkeypatch):
    replies = {"ready": (200, json.dumps({"load_s": 1.25}).encode()), "older": (200, b"{}"), "gone": None}
    monkeypatch.setattr(fleet, "get", lambda address, path: replies[address])
    assert [fleet.service_loading_ns(address) for address in replies] == [1_250_000_000, None, None]
