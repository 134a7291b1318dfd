"""The same study many times: each cell's figures over time, when they changed, and what else changed then."""
