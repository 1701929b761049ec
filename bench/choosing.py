"""
What a choice among pieces of evidence costs: ten of about 30 tokens, under worked examples of about 500.

Prints the seconds of the embedded model for the choice by likelihood, calibration by foreign notes included,
and by the fitted reading that also looks in reverse and at how a reply begins, each beside the bare prefill
of 800 tokens, the best of runs that take turns. "first" computes the examples too, "next" is another question
after the same examples, whose state is kept. Nothing else that an earlier run computed is read.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from panda.models.contract import Model, ScoreCase, ScoreParams
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.recipes.choices import Option, forward_cases, prompt_sections
from panda.recipes.rivals import rival_values

ROOT = Path(__file__).parent.parent
_LIMIT = ScoreParams(600)
_PARTS = ("first", "next")
_QUERIES = (
    "How much is the herring that came in on the 5th?",
    "Which crate has the cod of last Monday in it?",
)
_PREFIX_TOKENS, _SPAN_TOKENS, _BARE_TOKENS = 500, 30, 800


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="how often each is measured")
    runs = parser.parse_args().runs
    models = load_models_file(ROOT / "models.yaml")
    with tempfile.TemporaryDirectory() as cache, Layers(models, cache_dir=Path(cache), environ={}) as layers:
        model = layers.model("REFLEX")
        model.score("", [ScoreCase("start-up", " apart")], _LIMIT)
        seconds: dict[str, list[float]] = {}
        for run in range(runs):
            seconds.setdefault("bare", []).append(_bare(model, run))
            for name, measure in (("likelihood", _likelihood), ("fit", _fit)):
                for part, query in enumerate(_QUERIES):
                    taken = measure(model, f"{name} {run}", query)
                    seconds.setdefault(f"{name}, {_PARTS[part]}", []).append(taken)
    for name, values in seconds.items():
        ratio = min(values) / min(seconds["bare"])
        print(f"{name:20}{min(values):8.2f} s{ratio:8.2f} times the bare prefill")  # noqa: T201 - the result


def _bare(model: Model, run: int) -> float:
    text = _of_length(model, lambda n: f"run {run} " + "the boat came in late " * n, _BARE_TOKENS)
    return _timed(lambda: model.score(text, [ScoreCase("", " x")], _LIMIT))


def _likelihood(model: Model, run: str, query: str) -> float:
    options, sections = _case(model, run, query)
    return _timed(lambda: model.score(*forward_cases(options, sections, query), _LIMIT))


def _fit(model: Model, run: str, query: str) -> float:
    options, sections = _case(model, run, query)

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, ...]]:
        return list(model.score(prefix, cases, _LIMIT).each)

    return _timed(lambda: rival_values(options, sections, query, score))


def _case(model: Model, run: str, query: str) -> tuple[list[Option], dict[str, str]]:
    shared = (ROOT / "prompts" / "shared" / "answer_fit.md").read_text(encoding="utf-8")
    sections = prompt_sections(shared, "answer_fit.md")
    example = (
        "Evidence: Boat {n} of {run} came in with {n} crates.\nQuestion: How many crates had boat {n}?\n\n"
    )
    sections["shots"] = _of_length(
        model, lambda n: "".join(example.format(n=i, run=run) for i in range(n)), _PREFIX_TOKENS
    )
    texts = [
        _of_length(
            model, lambda n, i=i: f"Crate {i} {query[:9]}:" + " fresh herring and cod" * n, _SPAN_TOKENS
        )
        for i in range(10)
    ]
    return [Option(str(i), text) for i, text in enumerate(texts)], sections


def _of_length(model: Model, make: Callable[[int], str], tokens: int) -> str:
    """The longest text of at most that many tokens."""
    count = 1
    while model.count_model_tokens(make(count + 1)) <= tokens:
        count += 1
    return make(count)


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
