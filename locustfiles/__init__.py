"""One short file per study: which cells, at which sizes."""
