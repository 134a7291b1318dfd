"""The parts of `benchmarks/soak.py`: looking at processes, reading the ledger, judging."""
