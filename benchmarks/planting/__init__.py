"""Set-ups whose cause of slowness is planted: what they are, how one is run, and what the report names."""
