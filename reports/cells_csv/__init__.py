"""cells.csv: its columns, and how it is read back."""
