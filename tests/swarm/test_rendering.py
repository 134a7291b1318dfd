"""How long the report at the end of a study may take."""

from pathlib import Path

from swarm.rendering import patience_s


def test_a_larger_ledger_may_take_longer(tmp_path: Path) -> None:
    assert patience_s(tmp_path) == 60
    with open(tmp_path / "ledger.jsonl", "wb") as ledger:
        ledger.truncate(725_000_000)
    assert patience_s(tmp_path) == 60 + 362.5
