"""What scorers ask, answered from made-up numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panda.choosing.ask import Ask, Memo, Pass
from panda.choosing.fits import Fit
from panda.models.contract import Encoder, ModelInfo, ScoreCase, ScoreParams, Scores, Usage

ScoreFunction = Callable[[str, Sequence[ScoreCase]], list[tuple[float, int]]]
"""Maps a prefix and cases to (log-probability, number of tokens) of each continuation."""


class _Scoring:
    """A model that scores and does nothing else."""

    def __init__(self, score: ScoreFunction) -> None:
        self._score = score
        self.info = ModelInfo("scoring", "0" * 64, 8192, writes=False, scores=True)

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        values, counts = zip(*self._score(prefix, cases), strict=True)
        return Scores(values, counts, Usage(0, 0, 0), 0.0)


def asking(
    score: ScoreFunction,
    prompts: Mapping[str, str],
    *,
    encoder: Encoder | None = None,
    fits: Mapping[str, Fit] | None = None,
    recorded: Mapping[tuple[str, str, ScoreCase], tuple[float, int]] | None = None,
    written: list[Pass] | None = None,
) -> Ask:
    """An Ask whose model scores as told; what is written down goes into a list."""
    kept = written if written is not None else []
    model: Any = _Scoring(score)
    return Ask(
        model,
        encoder,
        Memo(),
        prompts.__getitem__,
        (fits or {}).get,
        lambda *key: (recorded or {}).get(key),
        kept.append,
        1.0,
    )


def recorded_of(one: Pass) -> dict[tuple[str, str, ScoreCase], tuple[float, int]]:
    """What a turn that wrote this down knows."""
    found = zip(one.cases, one.found, strict=True)
    return {(one.by.digest, one.prefix, case): value for case, value in found}


def forbidden(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
    """The score function of a test in which nothing may be scored."""
    raise AssertionError("a score was asked for")
