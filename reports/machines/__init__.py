"""What the machines of a run did, second by second."""
