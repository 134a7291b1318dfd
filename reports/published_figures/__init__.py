"""The figures of the published study, and this one beside them."""
