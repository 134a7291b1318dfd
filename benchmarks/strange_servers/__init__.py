"""What benchmarks/strangers.py is made of: other people's servers, each from its own package."""
