"""The locks hold what the requirements ask for, each with hashes, and `make setup` can install by them."""

import tomllib
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.supply.pins import LOOSE, ROOT, asked, locked

LOCKS = {
    "requirements.lock": "requirements-dev.txt",
    "requirements-client.lock": "requirements-client.txt",
    "requirements-supply.lock": "requirements-supply.txt",
}


def versions(lock: str) -> dict[str, str]:
    """Of each package of a lock."""
    pins = [entry.requirement for entry in locked(ROOT / lock)]
    assert len({pin.name for pin in pins}) == len(pins)
    assert {spec.operator for pin in pins for spec in pin.specifier} == {"=="}
    return {pin.name: next(iter(pin.specifier)).version for pin in pins}


@pytest.mark.parametrize(("lock", "source"), LOCKS.items())
def test_every_requirement_is_locked_as_it_is_pinned(lock: str, source: str) -> None:
    held = versions(lock)
    wanted = [one for one in asked(ROOT / source) if one.name not in LOOSE]
    assert wanted
    assert {one.name: str(one.specifier) for one in wanted} == {
        one.name: f"=={held.get(canonicalize_name(one.name))}" for one in wanted
    }


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_hashes_and_no_lock_names_an_index_or_a_place(lock: str) -> None:
    for entry in locked(ROOT / lock):
        assert entry.hashes, entry.requirement
        assert all(one.startswith("sha256:") and len(one) == 71 for one in entry.hashes)
    lines = (ROOT / lock).read_text().splitlines()
    assert not [line for line in lines if line.startswith("-") or "://" in line]


def test_clients_get_what_everybody_gets() -> None:
    clients, everybody = versions("requirements-client.lock"), versions("requirements.lock")
    assert clients.items() < everybody.items()


def test_what_needs_torch_is_locked_and_torch_is_not() -> None:
    held = versions("requirements.lock")
    assert "open-clip-torch" in held
    assert not held.keys() & set(LOOSE)
    pinned = {one.name: str(one.specifier) for one in asked(ROOT / "requirements-server.txt")}
    page = (ROOT / "docs/supply.md").read_text()
    assert all(f"{name}{pinned[name]}" in page for name in LOOSE)


def test_what_the_lock_believes_of_torch_is_what_torch_says_without_cuda() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    believed, _ = settings["dependency-metadata"]
    (pin,) = (one for one in asked(ROOT / "requirements-server.txt") if one.name == "torch")
    assert f"{believed['name']}=={believed['version']}" == str(pin)
    said = [Requirement(text) for text in requires("torch") or ()]
    own = {str(one) for one in said if not cuda(one) and "extra" not in str(one.marker)}
    assert {str(Requirement(text)) for text in believed["requires-dist"]} == own


def cuda(one: Requirement) -> bool:
    """Whether only builds for NVIDIA's GPUs ask for it."""
    return one.name.startswith(("nvidia-", "cuda-")) or one.name == "triton"


def test_make_compiles_every_lock_from_its_requirements_and_leaves_out_what_is_loose() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert [f"$(call LOCK,{lock},{source}" in makefile for lock, source in LOCKS.items()] == [True] * 3
    assert [f"--no-emit-package {name}" in makefile for name in LOOSE] == [True] * 2
