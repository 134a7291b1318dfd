"""What others published, beside what this study measured."""
