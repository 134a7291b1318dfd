"""What benchmarks/generator.py is made of: null servers, the arms it compares, and the table they end in."""
