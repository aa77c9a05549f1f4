"""A clock for what asks the time."""


class Clock:
    """Seconds that a test sets."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
