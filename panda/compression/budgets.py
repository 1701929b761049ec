"""What the user can set of how much fits where; imports nothing that help must not."""

from dataclasses import dataclass

_CALL_SLACK_TOKENS = 1_000
_LEAST_SAVING_PART = 4


@dataclass(frozen=True)
class Limits:
    """What the user can set of how much fits where."""

    enabled: bool = True  # off: what is over its budget is an error
    call_tokens: int = 12_000  # most budget tokens of one call, prompt and output together
    reserve_tokens: int = 0  # kept free beside the output of a recipe that states no response_reserve
    threshold: float = 1.0
    """Share of a recipe's input budget above which inputs are compressed, and to which they are."""
    least_saving_tokens: int = 500
    """What a compression saves at least, once it has started; of a budget below 2,000 at most a quarter."""

    @property
    def call_trigger_tokens(self) -> int:
        """Budget tokens of a prompt above which its documents are compressed, however much they may have."""
        return self.call_tokens - min(_CALL_SLACK_TOKENS, self.call_tokens // 12)

    def target(self, used_tokens: int, room_tokens: int) -> int:
        """
        What is aimed at when a compression has started.

        >>> Limits().target(2_600, 2_500), Limits().target(9_000, 2_500), Limits().target(310, 300)
        (2100, 2500, 235)
        """
        saving = min(self.least_saving_tokens, room_tokens // _LEAST_SAVING_PART)
        return min(room_tokens, used_tokens - saving)
