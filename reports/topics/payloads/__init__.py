"""Protocols and payloads beside each other."""
