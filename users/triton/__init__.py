"""A tritonserver, or another that speaks its protocol: how it is asked, and what it tells of itself."""
