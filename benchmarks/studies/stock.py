"""The same four users as Locust comes, for `benchmarks/tail.py`."""

from locust import HttpUser, constant, task

import json


class StockUser(HttpUser):
    """Posts one small request after the other."""

    wait_time = constant(0)

    @task
    def embed(self) -> None:
        """The stand-in service takes any base64."""
        self.client.post("/embed", data=json.dumps({"images": ["AAAA"]}))
