"""What others published, read and put beside runs."""
