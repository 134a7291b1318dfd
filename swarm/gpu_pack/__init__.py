"""A pack for a GPU host that is borrowed for half an hour and has no network: made here, run there."""
