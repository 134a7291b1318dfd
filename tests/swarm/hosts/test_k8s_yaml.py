"""YAML as every reader reads it."""

from __future__ import annotations

import copy

import pytest
import yaml

from swarm.hosts.k8s import document


@pytest.mark.parametrize(
    "text", ["1e3", "on", "0x10", "12:30", "~", "a: b", "# no", "two\nlines", "t\t\n x \n", "…"]
)
def test_a_text_stays_what_it_is(text: str) -> None:
    assert yaml.safe_load(document({"key": [text], text: 1})) == {"key": [text], text: 1}


def test_a_number_to_some_reader_is_quoted() -> None:
    assert document({"key": "1e3"}) == 'key: "1e3"\n'
    shared = {"a": "b"}
    assert document({"x": shared, "y": copy.copy(shared), "z": shared}).count("a: b") == 3
