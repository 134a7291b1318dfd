"""Reports: reads a ledger and says what it means. Imports nothing that generates load."""
