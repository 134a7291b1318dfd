"""What is read every second beside the load."""
