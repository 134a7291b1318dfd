"""The runs themselves: where they ran, second by second, worker by worker."""
