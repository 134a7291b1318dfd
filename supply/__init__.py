"""Where packages come from: the lock with their hashes, their licences, their known vulnerabilities."""
