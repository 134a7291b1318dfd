"""What a change of replicas did."""
