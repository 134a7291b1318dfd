"""Repeats, ratios, shares and their intervals, tests of pairs, the scalability law."""
