"""What tests of the manifests share: a study's command line, and a look into what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

ROOT = Path(__file__).parents[3]
STEP7 = ROOT / "locustfiles" / "step7.py"
VERSIONS = ("1.29", "1.33", "1.37")
"""The oldest that the manifests need (`backoffLimitPerIndex` by default), and later ones."""
GIVEN = ["-f", str(STEP7), "--image", "client:1", "--workers", "4"]
URL = ["--onnx-http-url", "gpu-host:8010"]

Made = dict[tuple[str, str], Any]
Make = Callable[..., Made]
Sentence = Callable[..., str]


def by_name(text: str) -> Made:
    """Every object of a page, by kind and name."""
    return {(made["kind"], made["metadata"]["name"]): made for made in yaml.safe_load_all(text)}


def pods(made: Made) -> dict[str, Any]:
    """The specs of master and worker pods, by component."""
    jobs = [one for (kind, _), one in made.items() if kind == "Job"]
    return {
        job["metadata"]["labels"]["app.kubernetes.io/component"]: job["spec"]["template"]["spec"]
        for job in jobs
    }


def command(spec: Any, name: str) -> list[str]:
    """What the container of this name runs."""
    (found,) = [one["command"] for one in spec["containers"] if one["name"] == name]
    return list(found)


def check(made: Made, version: str) -> None:
    """Does Kubernetes know every field? Raises ValidationError."""
    for one in made.values():
        kubernetes_validate.validate(one, version, strict=True)
