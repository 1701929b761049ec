"""What the user can set of how much fits where; imports nothing that help must not."""

import math
from dataclasses import dataclass

_CALL_SLACK_TOKENS = 1_000


@dataclass(frozen=True)
class Limits:
    """What the user can set of how much fits where."""

    enabled: bool = True  # off: what is over its budget is an error
    call_tokens: int = 12_000  # most budget tokens of one call, prompt and output together
    reserve_tokens: int = 0  # kept free beside the output of a recipe that states no response_reserve
    threshold: float = 0.9
    """Share of a recipe's input budget above which inputs are compressed, and to which they are."""
    least_saving_tokens: int = 500
    """Inputs within their budget are left as they are where compressing them would save less."""

    @property
    def call_trigger_tokens(self) -> int:
        """Budget tokens of a prompt above which its documents are compressed, however much they may have."""
        return self.call_tokens - min(_CALL_SLACK_TOKENS, self.call_tokens // 12)

    def target(self, used_tokens: int, room_tokens: int) -> int:
        """
        Return what inputs of so many tokens may have of their budget (S3, Configuration).

        >>> Limits().target(1_900, 2_000), Limits().target(2_001, 2_000), Limits().target(9_600, 10_000)
        (2000, 1800, 9000)
        """
        aim = math.floor(room_tokens * self.threshold)
        saves = used_tokens - aim >= self.least_saving_tokens
        return aim if saves or used_tokens > room_tokens else room_tokens
