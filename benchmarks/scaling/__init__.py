"""A real master whose workers are simulated: what it costs, part by part."""
