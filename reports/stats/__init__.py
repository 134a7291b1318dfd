"""Repeats, ratios, shares and their intervals, tests of pairs, how throughput grows."""
