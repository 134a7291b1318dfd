"""How the files are called that gates keep beside a study's ledger."""

THRESHOLDS, VERDICTS = "thresholds.toml", "gates.json"
