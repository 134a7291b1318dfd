"""The numbers of one run, and what is compared with what."""
