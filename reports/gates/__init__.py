"""Thresholds, baselines, and the verdict of each."""
