"""One file for each way of asking a server for embeddings."""
