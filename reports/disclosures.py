"""What stands in for something else, said wherever its numbers appear."""

from collections.abc import Iterable

from reports.study import Study

_STAND_INS = {
    "openvino-": "OpenVINO: a stand-in for the compiled engine, which is TensorRT on a GPU host.",
    "emulated-": "Emulated: no model computes behind this endpoint.",
}
RANDOM_WEIGHTS = "Random weights: timings are real, embeddings mean nothing."


def stand_in(endpoint: str) -> str | None:
    """The sentence that must stand beside an endpoint's numbers, or None."""
    return next((text for prefix, text in _STAND_INS.items() if endpoint.startswith(prefix)), None)


def disclosures(study: Study, endpoints: Iterable[str]) -> tuple[str, ...]:
    """Every such sentence that some endpoints call for, weights last."""
    names = list(endpoints)
    said = [text for name in names if (text := stand_in(name))]
    labels = [str(study.described.get(name, {}).get("weights", "")) for name in names]
    if any(label.startswith("random") for label in labels):
        said.append(RANDOM_WEIGHTS)
    return tuple(dict.fromkeys(said))
