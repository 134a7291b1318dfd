"""When a number is doubted, and which doubts disqualify it."""
