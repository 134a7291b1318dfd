"""HDR histograms: how they are written, and percentiles of them."""
