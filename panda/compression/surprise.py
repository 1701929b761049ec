"""Rung 3: what of a document the NERVES model did not expect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from panda.compression.order import UnitText
from panda.models.contract import Model, ScoreParams, Usage

_WINDOW_TOKENS = 1_024
_BEFORE_CHARS = 400
_MAX_CHARS = 24_000
"""A longer document is judged by its words alone: the model would read it for a minute."""
_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class _Window:
    units: tuple[int, ...]  # their indexes
    text: str  # what is read
    spans: tuple[tuple[int, int], ...]  # where each of them stands in it


class NervesReader:
    """Asks a model how much of each unit it did not expect."""

    def __init__(self, model: Model, *, max_chars: int = _MAX_CHARS) -> None:
        self.model = model.info
        """What was asked."""
        self.readings: list[tuple[Usage, float]] = []
        """Tokens and seconds of every window read so far."""
        self._model = model
        self._max_chars = max_chars

    def __call__(self, units: Sequence[UnitText]) -> list[float] | None:
        """Rank of each unit by mean surprise, 0 to 1; None if the model does not score, or not so much."""
        length = sum(len(unit.text) for unit in units)
        if not self._model.info.scores or not 0 < length <= self._max_chars:
            return None
        means = [0.0] * len(units)
        before = ""
        for window in self._windows(units):
            for i, mean in zip(window.units, self._read(before, window), strict=True):
                means[i] = mean
            before = window.text[-_BEFORE_CHARS:] + "\n"
        order = sorted(range(len(units)), key=lambda i: (means[i], i))
        ranks = [0.0] * len(units)
        for place, i in enumerate(order):
            ranks[i] = place / max(1, len(units) - 1)
        return ranks

    def _windows(self, units: Sequence[UnitText]) -> Iterator[_Window]:
        room = max(64, min(_WINDOW_TOKENS, self._model.info.n_ctx - 2 * _BEFORE_CHARS - 8))
        members: list[int] = []
        spans: list[tuple[int, int]] = []
        text = ""
        tokens = 0
        for i, unit in enumerate(units):
            is_line = not members or units[i - 1].line != unit.line
            is_told = bool(members) and units[i - 1].around == unit.around
            lead = ("\n" if text and is_line else " " if text else "") + (
                "" if is_told or not unit.around else unit.around[-80:] + " "
            )
            size = self._model.count_model_tokens(lead + unit.text)
            if members and tokens + size > room:
                yield _Window(tuple(members), text, tuple(spans))
                members, spans, text, tokens = [], [], "", 0
                lead = lead.lstrip("\n ")
            start = len(text) + len(lead)
            text += lead + unit.text[: 4 * room]
            members.append(i)
            spans.append((start, len(text)))
            tokens += size
        if members:
            yield _Window(tuple(members), text, tuple(spans))

    def _read(self, prefix: str, window: _Window) -> list[float]:
        scores = self._model.score_tokens(prefix, window.text, ScoreParams(_TIMEOUT_SECONDS))
        self.readings.append((scores.usage, scores.seconds))
        sums, counts = [0.0] * len(window.units), [0] * len(window.units)
        place = 0
        for value, end in zip(scores.logprobs, scores.ends, strict=True):
            while place < len(window.spans) - 1 and end > window.spans[place + 1][0]:
                place += 1
            if window.spans[place][0] < end <= window.spans[place][1]:
                sums[place] -= value
                counts[place] += 1
        return [total / count if count else 0.0 for total, count in zip(sums, counts, strict=True)]
