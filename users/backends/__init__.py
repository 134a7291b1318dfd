"""One file for each kind of server: how it is asked, checked, described, counted and set, and its facts."""
