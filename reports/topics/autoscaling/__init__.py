"""What came of a load with a course, and what a change of replicas did meanwhile."""
