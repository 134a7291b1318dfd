"""Where time and memory go in the servers."""
