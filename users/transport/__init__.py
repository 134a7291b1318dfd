"""Connections and the bytes on them."""
