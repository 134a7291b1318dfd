"""Which cells are run, how often, in which order. No input or output."""
