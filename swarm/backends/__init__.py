"""What each kind of server can be asked: whether it is up, what it is, what it counted."""
