"""A model's configuration with other settings: what stays, what changes, and where instances go."""

import pytest

from tests.swarm.targets.test_model_control import BATCHED
from users.triton.model_control import configured, groups


@pytest.mark.parametrize(
    ("gpus", "instances", "made"),
    [
        ([], 3, [(3, [])]),
        ([[0, 1, 2, 3]], 1, [(1, [0])]),
        ([[0, 1, 2, 3]], 2, [(1, [0, 1])]),
        ([[0, 1, 2, 3]], 4, [(1, [0, 1, 2, 3])]),
        ([[0, 1, 2, 3]], 6, [(2, [0, 1]), (1, [2, 3])]),
        ([[0], [1]], 2, [(1, [0, 1])]),
    ],
)
def test_instances_are_shared_out_over_gpus(gpus: list[list[int]], instances: int, made: object) -> None:
    kind = "KIND_GPU" if gpus else "KIND_CPU"
    own = [{"name": f"g{n}", "kind": kind, "count": 2, "gpus": some} for n, some in enumerate(gpus or [[]])]
    found = list(groups(own, instances))
    assert [(group["count"], group["gpus"]) for group in found] == made
    assert {group["kind"] for group in found} == {kind}
    assert len({group["name"] for group in found}) == len(found)


def test_a_configuration_is_the_original_where_it_has_the_settings_already() -> None:
    assert configured(BATCHED, 10_000, 1) is BATCHED
    made = configured(BATCHED, 0, 2)
    assert made["dynamic_batching"] == {"max_queue_delay_microseconds": 0, "preserve_ordering": False}
    assert made["instance_group"] == [{"name": "clip_0", "kind": "KIND_CPU", "count": 2, "gpus": []}]
    assert BATCHED["instance_group"][0]["count"] == 1
