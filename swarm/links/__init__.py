"""Emulated links: profiles of paths, the namespaces and devices they are made of, what they measure."""
