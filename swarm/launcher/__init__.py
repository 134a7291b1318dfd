"""One command becomes the processes of a study, on one host or many."""
