"""The commands of `python -m reports`, one file for each."""
