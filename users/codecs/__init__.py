"""One file for each codec: how requests are written, vectors read out of answers. No sockets, no clocks."""
