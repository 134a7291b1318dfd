"""Traces of requests: read, converted from access logs, generated, shown."""
