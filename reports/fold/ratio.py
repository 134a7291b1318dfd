"""One number by another, where both are known."""


def ratio(part: float | None, whole: float | None) -> float | None:
    """One by the other; None where either is unknown or there is no whole."""
    return None if part is None or not whole or whole < 0 else part / whole
