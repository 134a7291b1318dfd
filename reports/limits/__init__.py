"""What stops a cell from going faster: one rule for each limit, with its evidence."""
