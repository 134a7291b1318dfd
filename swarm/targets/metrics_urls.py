"""Where the metrics of the Tritons under test are, and whether they can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swarm.backends.admin_client import PATIENCE_S
from swarm.errors import UsageError
from swarm.options.addresses import check_secrets, place_of
from swarm.options.table import flag
from swarm.sampling.triton_metrics import metrics_reader
from swarm.targets.targets import security_for
from users.errors import RequestError, translated
from users.tls import OPEN, Security

OPTIONS = {"onnx": "onnx_metrics_url", "trt": "trt_metrics_url"}


def metrics_addresses(urls: Mapping[str, str], ready: Mapping[str, Any]) -> dict[str, str]:
    """`http://host:port/metrics` by backend, from the options' URLs and the embedded servers' `ready` event.

    Raises UsageError on an unreadable URL.
    """
    servers = ready.get("endpoints", {})
    found = {backend: server["metrics"] for backend, server in servers.items() if "metrics" in server}
    named = {backend: option for backend, option in OPTIONS.items() if urls.get(option)}
    return found | {backend: metrics_url(flag(option), urls[option]) for backend, option in named.items()}


def metrics_url(option: str, url: str) -> str:
    """The whole URL of one that may lack its scheme and its path. Raises UsageError.

    >>> metrics_url("--onnx-metrics-url", "gpu-host:8012")
    'http://gpu-host:8012/metrics'
    """
    check_secrets(option, url)
    scheme, _, rest = url.rpartition("://")
    place, _, path = rest.partition("/")
    try:
        if scheme not in ("", "http", "https"):
            raise UsageError
        return f"{scheme or 'http'}://{place_of(option, place).address}/{path or 'metrics'}"
    except UsageError:
        raise UsageError(
            f"{option} {url!r}: give host:port or http://host:port/metrics, https for TLS"
        ) from None


def check_metrics(urls: Mapping[str, str], security: Security = OPEN) -> None:
    """Can the metrics that the options name be read? Raises UsageError."""
    for backend, option in OPTIONS.items():
        if urls.get(option):
            url = metrics_url(flag(option), urls[option])
            try:
                secured = security_for(backend, security)
                with translated(), metrics_reader(url, (), PATIENCE_S, secured) as read:
                    read()
            except RequestError as error:
                raise UsageError(f"{flag(option)} {url}: cannot be read ({error})") from error
