"""What a fit reads: worked examples, and the case at hand in the same form."""

import re
from collections.abc import Mapping

from panda.recipes.choices import ChoiceInputs, prompt_sections
from panda.recipes.schemas import ChoiceSpec, Step

_PLACE = re.compile(r"\{\{(\w+)\}\}")
YES, NO = "yes", "no"
"""Classes of a fit that judges options one by one."""


def judges_options(spec: ChoiceSpec, step: Step) -> bool:
    """Whether a fit step says yes or no to each option, instead of choosing among the property's values."""
    return not spec.values or (step.choose is not None and step.over is not None)


def fit_texts(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> tuple[str, list[str]]:
    """
    What a fit step shows the model: the worked examples, and one text for each option or one for all.

    Args:
        spec: The property.
        step: Its step with the scorer fit.
        inputs: Query, options, documents and prompts.
    """
    sections = prompt_sections(inputs.prompt(step.prompt or ""), step.prompt or "")
    case = sections["case"].strip()
    options = inputs.options.get(step.over or spec.name, ())
    given = {"query": inputs.query, "options": "\n".join(f"- {option.text}" for option in options)}
    given |= {name.partition(".")[0]: text for name, text in inputs.documents.items()}
    each = [{"option": option.text} for option in options] if judges_options(spec, step) else [{}]

    def filled(own: Mapping[str, str]) -> str:
        values = {**given, **own}
        return _PLACE.sub(lambda match: values.get(match[1]) or "nothing", case)

    return sections["shots"].strip() + "\n\n", [filled(own) for own in each]
