"""The options that backends have: where their servers are, and what their models are called there."""

from users.backends.base import Backend
from users.backends.registry import backends


def url_options() -> dict[str, tuple[Backend, str]]:
    """By the option's name the backend, and of what it is the address: a protocol, or `metrics`."""
    each = ((backend, of) for backend in backends().values() for of in backend.urls)
    return {backend.url_option(of): (backend, of) for backend, of in each}


def model_options() -> dict[str, Backend]:
    """The backends whose models have options of their own, by the option's name."""
    return {f"{name}_model": backend for name, backend in backends().items() if backend.model_help}
