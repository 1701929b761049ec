"""Rung 3: what of a document the NERVES model did not expect."""

from collections.abc import Sequence

from panda.compression.order import UnitText
from panda.models.contract import Model, ScoreParams, Usage

_WINDOW_TOKENS = 1_024
_BEFORE_CHARS, _AROUND_CHARS = 400, 80
_MAX_CHARS = 24_000
"""A longer document is judged by its words alone: the model would read it for a minute."""
_TIMEOUT_SECONDS = 300.0


class NervesReader:
    """Asks a model how much of each unit it did not expect."""

    def __init__(self, model: Model, *, max_chars: int = _MAX_CHARS) -> None:
        self.model = model.info
        """What was asked."""
        self.readings: list[tuple[Usage, float]] = []
        """Tokens and seconds of every window read so far."""
        self._model, self._max_chars = model, max_chars
        self._room = max(64, min(_WINDOW_TOKENS, self.model.n_ctx - 2 * _BEFORE_CHARS - 8))

    def __call__(self, units: Sequence[UnitText]) -> list[float] | None:
        """Rank of each unit by mean surprise, 0 to 1; None if the model does not score, or not so much."""
        if not self.model.scores or not 0 < sum(len(unit.text) for unit in units) <= self._max_chars:
            return None
        windows: list[list[UnitText]] = [[]]
        tokens = 0
        for unit in units:
            size = self._model.count_model_tokens(f"{unit.around[-_AROUND_CHARS:]} {unit.text}\n")
            if windows[-1] and tokens + size > self._room:
                windows.append([])
                tokens = 0
            windows[-1].append(unit)
            tokens += size
        means: list[float] = []
        before = ""
        for window in windows:
            text, spans = self._text(window)
            means += self._read(before, text, spans)
            before = text[-_BEFORE_CHARS:] + "\n"
        ranks = [0.0] * len(units)
        for place, i in enumerate(sorted(range(len(units)), key=lambda i: (means[i], i))):
            ranks[i] = place / max(1, len(units) - 1)
        return ranks

    def _text(self, window: Sequence[UnitText]) -> tuple[str, list[tuple[int, int]]]:
        """What is read at once, and where each unit stands in it."""
        text, spans = "", []
        for unit, last in zip(window, [None, *window], strict=False):
            text += "" if last is None else " " if last.line == unit.line else "\n"
            if unit.around and (last is None or last.around != unit.around):
                text += unit.around[-_AROUND_CHARS:] + " "
            spans.append((len(text), len(text) + min(len(unit.text), 4 * self._room)))
            text += unit.text[: 4 * self._room]
        return text, spans

    def _read(self, before: str, text: str, spans: Sequence[tuple[int, int]]) -> list[float]:
        """Mean surprise of each span."""
        scores = self._model.score_tokens(before, text, ScoreParams(_TIMEOUT_SECONDS))
        self.readings.append((scores.usage, scores.seconds))
        values: list[list[float]] = [[] for _ in spans]
        place = 0
        for value, end in zip(scores.logprobs, scores.ends, strict=True):
            while place < len(spans) - 1 and end > spans[place + 1][0]:
                place += 1
            if spans[place][0] < end <= spans[place][1]:
                values[place].append(-value)
        return [sum(own) / len(own) if own else 0.0 for own in values]
