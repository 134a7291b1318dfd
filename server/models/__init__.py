"""The model itself: weights, preparation, export, operator times."""
