"""What leaves a study while it runs: its folder, Prometheus, gates, the report."""
