"""The options that backends have: where their servers are, and what their models are called there."""

from dataclasses import dataclass

from users.backends.base import Backend
from users.backends.registry import backends


@dataclass(frozen=True)
class UrlOption:
    """Of a backend's server: its address `of` a protocol, or that of its metrics; `about` says which."""

    backend: Backend
    of: str
    about: str

    @property
    def is_page(self) -> bool:
        """Whether it is the URL of a page of metrics."""
        return self.of == "metrics"


def url_options() -> dict[str, UrlOption]:
    """All of them, by the option's name."""
    return {
        backend.url_option(of): UrlOption(backend, of, about)
        for backend in backends().values()
        for of, about in backend.urls.items()
    }


def model_options() -> dict[str, Backend]:
    """The backends whose models have options of their own, by the option's name."""
    return {f"{name}_model": backend for name, backend in backends().items() if backend.model_help}
