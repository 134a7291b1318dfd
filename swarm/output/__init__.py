"""What leaves a study while it runs: its folder, events, gates, the report."""
