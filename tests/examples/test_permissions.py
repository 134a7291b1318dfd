"""What the examples may do: no more than they need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "examples/ci/github-actions.yml"
DOCKERFILES = [*(ROOT / "server").glob("Dockerfile*"), ROOT / "examples/k8s/Containerfile"]


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_github_job_reads_the_repository_and_nothing_else() -> None:
    text = WORKFLOW.read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert not [job for job in workflow["jobs"].values() if "permissions" in job]
    # Runs of strangers' changes, with the repository's own rights.
    assert "pull_request_target" not in text
    assert "secrets." not in text
    (checkout,) = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout")]
    assert checkout["with"]["persist-credentials"] is False


def test_no_text_of_a_pull_request_is_put_into_a_shell() -> None:
    """GitHub writes `${{ }}` into the script before a shell reads it."""
    scripts = [step["run"] for step in steps(yaml.safe_load(WORKFLOW.read_text())) if "run" in step]
    assert len(scripts) > 1
    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_images_run_without_rights_and_hold_no_secret(file: Path) -> None:
    lines = file.read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", users[-1])
    told = [line for line in lines if line.startswith(("ARG ", "ENV ", "ADD ", "  "))]
    assert not [line for line in told if re.search(r"TOKEN|SECRET|PASSWORD|_KEY\b", line)]
    # By name: never the whole checkout, with what lies in it.
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    assert not [words for words in copied if "." in words or "*" in words]


def test_what_no_image_may_copy() -> None:
    ignored = set((ROOT / ".dockerignore").read_text().splitlines())
    assert {".git", "results", "**/.env", "**/*.pem", "**/*.key", "hosts.toml"} <= ignored
