"""When a number is doubted, and which doubts invalidate it."""
