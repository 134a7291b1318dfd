"""A study as frames of pandas: its runs, their seconds, workers and single requests."""
