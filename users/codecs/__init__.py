"""One file for each codec: how requests are written, and vectors read out of answers. No sockets, no clocks."""
