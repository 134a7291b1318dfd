"""The ledger: reading, writing, and what a damaged one still says."""
