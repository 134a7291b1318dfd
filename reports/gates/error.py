"""Why gates cannot be judged at all."""


class GateError(Exception):
    """Thresholds, or a baseline, that make no sense; one sentence naming the place and the mend."""
