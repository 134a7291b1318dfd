"""Repeats, ratios and their intervals, the scalability law."""
