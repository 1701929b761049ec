"""How long a call may take."""

import time

from panda.errors import ModelTimeoutError


class Deadline:
    """
    The end of a call's allowed time.

    Args:
        seconds: Time allowed from now on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.start = time.monotonic()

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self.start

    @property
    def passed(self) -> bool:
        return self.elapsed_seconds >= self.seconds

    def check(self) -> None:
        """
        Raises:
            ModelTimeoutError: The time is over.
        """
        if self.passed:
            raise ModelTimeoutError(
                f"the model took longer than {self.seconds:g} seconds",
                fix="raise timeout_ms in the recipe, or use a faster model",
                expected=f"a reply within {self.seconds:g} seconds",
                received=f"nothing complete after {self.elapsed_seconds:.1f} seconds",
            )
