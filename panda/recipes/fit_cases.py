"""
What a fit reads: worked examples and the case at hand in the same form, from the sections of a prompt file.

    # shots     worked examples, each ending as the case would go on
    # case      the case; {{query}}, {{option}} (one text an option), {{options}} (all in one list), or a
                document of the turn by its name
    # talk      optional: examples of what precedes a query
    # before    what precedes this query, with the same places
    # instead   list items that stand in all its places: how much likelier the query is after `before`
                than after each of them becomes a further value
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from panda.recipes.choices import ChoiceInputs
from panda.recipes.prompt_sections import prompt_sections, section_items
from panda.recipes.schemas import ChoiceSpec, Step

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_NOTHING = "nothing"
YES, NO = "yes", "no"
"""Classes of a fit that judges options one by one."""


@dataclass(frozen=True)
class FitText:
    """One case for a fit."""

    case: str
    """What follows the worked examples."""
    before: str | None
    """What precedes the query, after the examples of `talk`; None when that is not asked."""


@dataclass(frozen=True)
class FitTexts:
    """Everything that one choice shows the model."""

    shots: str
    """Prefix of the cases."""
    talk: str
    """Prefix of what precedes the query."""
    texts: tuple[FitText, ...]
    """One an option, or one for all."""
    instead: tuple[str, ...]
    """What else might precede the query."""


def judges_options(spec: ChoiceSpec, step: Step) -> bool:
    """Whether a fit step says yes or no to each option, instead of choosing among the property's values."""
    return not spec.values or (step.choose is not None and step.over is not None)


def build_texts(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> FitTexts:
    """
    The texts of one choice.

    Args:
        spec: The property.
        step: Its step with the scorer fit.
        inputs: Query, options, documents and prompts.
    """
    sections = prompt_sections(inputs.prompt(step.prompt or ""), step.prompt or "")
    options = inputs.options.get(step.over or spec.name, ())
    given = {"query": inputs.query, "options": "\n".join(f"- {option.text}" for option in options)}
    given |= {name.partition(".")[0]: text for name, text in inputs.documents.items()}
    each = [{"option": option.text} for option in options] if judges_options(spec, step) else [{}]
    before = sections.get("before", "").strip()
    texts = [
        FitText(_fill(sections["case"], {**given, **own}.get), _fill(before, {**given, **own}.get) or None)
        for own in each
    ]
    items = section_items(sections.get("instead", "")) if before else []
    instead = tuple(item.join(_PLACE.split(before)[::2]) for item in items)
    return FitTexts(_shots(sections, "shots"), _shots(sections, "talk"), tuple(texts), instead)


def _shots(sections: Mapping[str, str], name: str) -> str:
    return sections[name].strip() + "\n\n" if name in sections else ""


def _fill(text: str, value: Callable[[str], str | None]) -> str:
    return _PLACE.sub(lambda match: value(match[1]) or _NOTHING, text.strip())
