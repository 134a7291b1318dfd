"""What a Triton is asked, by its paths."""

from typing import Any

import pytest

from users.codecs.v2_http import V2Http
from users.endpoint import Endpoint
from users.errors import TargetError
from users.transport.admin_connection import Told
from users.triton.api import OverHttp


class Connection:
    """Keeps the paths, and answers with a refusal in words of its own."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def ask(self, method: str, path: str, *_: Any, **__: Any) -> Told:
        self.paths.append(path)
        return Told(400, '{"error": "no\\u001b[31m"}')

    def get_json(self, path: str) -> Any:
        return self.ask("GET", path).json()


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("clip", "clip"),
        ("m@v2:a+b=c", "m@v2:a+b=c"),
        ("org/m", "org%2Fm"),
        ("a b?#%", "a%20b%3F%23%25"),
        ("é", "%C3%A9"),
    ],
)
def test_a_model_has_one_path_whatever_letters_it_has(model: str, written: str) -> None:
    connection = Connection()
    api = OverHttp(connection)  # type: ignore[arg-type]
    assert api.unready(model)
    api.metadata(model, "2")
    api.config(model)
    api.statistics(model)
    api.statistics()
    with pytest.raises(TargetError, match=r"no\\x1b\[31m"):
        api.load(model, {})
    base = f"/v2/models/{written}"
    assert connection.paths == [
        *(f"{base}/ready", f"{base}/versions/2", f"{base}/config", f"{base}/stats", "/v2/models/stats"),
        f"/v2/repository/models/{written}/load",
    ]
    endpoint = Endpoint("m", "triton", "http", "fp32", "gpu:1", model, version="2")
    assert V2Http(endpoint).path == f"{base}/versions/2/infer"
