"""A way to the model: an endpoint, and the variant of a cell by which a study told it from others."""

from typing import NamedTuple


class Way(NamedTuple):
    """An endpoint with a variant such as `shared/4w`, which is empty where the study varies nothing."""

    endpoint: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint} {self.variant}".rstrip()
