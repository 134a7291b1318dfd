"""Triton: its model repositories and the wheel that it comes in."""
