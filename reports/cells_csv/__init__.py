"""cells.csv: its columns; and the sides of a comparison, which are read from it or from a study."""
