"""Several endpoints at the same time: how they slow each other, and one schedule split among them."""
