"""Client hosts: where they are, whether they are fit, and what runs on them."""
