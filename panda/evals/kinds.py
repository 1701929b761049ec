"""The kinds of labelled cases: which recipe's choice each one asks, and what the choice says in its terms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from panda.choosing.decision import Choice


@dataclass(frozen=True)
class Kind:
    """One kind of case."""

    step: str | None
    """Step of the registry whose recipe is asked; None for a rule."""
    choice: str
    """Property of the recipe's schema; of a kind without a recipe, what is judged."""
    over: str | None
    """Name that the case's options go by; None when it has none."""
    answers: Literal["value", "first", "any", "rule"] = "value"
    """value: itself. rule: a list of texts. first: the best option's id. any: whether one was taken."""
    yes: str = ""
    """For any: the label when an option was taken."""
    no: str = ""
    """For any: the label when none was."""
    recipe: str | None = None
    """The recipe itself, of a case that names it; then there is no step."""

    @property
    def has_recipe(self) -> bool:
        """Whether a recipe is asked, not a rule."""
        return self.answers != "rule" and (self.step or self.recipe) is not None


KINDS: Mapping[str, Kind] = {
    "reflection": Kind("phase1_reflection", "decision", None),
    "query_type": Kind("phase0_query_analyzer", "query_type", None),
    "intent": Kind("phase0_query_analyzer", "intent", None),
    "relevance": Kind("phase2_1_retrieval", "relevant", "relevant", "any", "relevant", "irrelevant"),
    "route": Kind("phase3_planner", "next_step", "evidence"),
    "span": Kind("phase5_synthesizer", "answer", "answer", "first"),
    "nothing": Kind("phase5_synthesizer", "answer", "answer", "any", "answered", "nothing"),
    "mood": Kind("phase0_query_analyzer", "mood", None),
    "quotable": Kind(None, "reading", None),
    "agreement": Kind("phase0_query_analyzer", "agreement", None),
    "recap": Kind("phase0_query_analyzer", "looks_back", None),
    "exclusion": Kind(None, "reading", None, "rule"),
    "reference": Kind(None, "reading", None, "rule"),
    "period": Kind(None, "reading", None, "rule"),
    "constraint": Kind(None, "reading", None, "rule"),
    "evidence": Kind(None, "check_evidence", None, "any", "supported", "unsupported"),
}
"""Every kind, by the name that cases use."""


@dataclass(frozen=True)
class Said:
    """What a choice says about one case."""

    label: str
    """In the terms of the case's label."""
    confidence: float | None
    """Probability that it is right; None if the scorer gives none."""
    score: float | None
    """For kinds of two answers: how far it leans to yes. For ranking only."""
    ranked: tuple[str, ...] = ()
    """Options, best first."""


def read_choice(kind: Kind, choice: Choice) -> Said:
    """
    A choice in the terms of a kind's labels.

    >>> read_choice(KINDS["nothing"], Choice("answer", (), {"s1": 0.2}, 0.2, "fit")).label
    'nothing'
    """
    scores, confidence = choice.scores, choice.confidence
    ranked = tuple(sorted(scores, key=lambda option: -scores[option]))
    best = max(scores.values(), default=None)
    if kind.answers == "any":
        taken = bool(choice.value)
        sure = confidence if taken or confidence is None else 1 - confidence
        return Said(kind.yes if taken else kind.no, sure, best, ranked)
    if kind.answers == "first" or isinstance(choice.value, tuple):
        if choice.fitted and best:  # beside the others, as one of them is known to be right
            confidence = best / sum(scores.values())
        return Said(ranked[0] if ranked else "", confidence, None, ranked)
    return Said(str(choice.value), confidence, None, ranked)
