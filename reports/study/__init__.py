"""One ledger becomes one study: its runs, summed up and judged."""
