"""Whether figures may stand beside those of the published studies, which were of one model."""

from collections.abc import Iterable

from reports.version_1 import OF_THEIR_MODEL

STUDIES = frozenset(("step5a", "step6a", "step6b", "step7", "step7_contention", "step8"))
"""Those that measure again what was published."""
SPACE = "openclip_vit_b32"
"""Of the embeddings of their model."""


def of_published_study(study: str, ways: Iterable[tuple[str, str]]) -> bool:
    """Whether it is one of their studies, and its spaces, each told with a backend, are that of their model.

    Older ledgers and files tell no space: there it is by the backend.
    """
    return study in STUDIES and all(
        space == SPACE or (not space and backend in OF_THEIR_MODEL) for space, backend in ways
    )
