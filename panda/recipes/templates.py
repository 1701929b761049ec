"""What a text property is made of when the model does not write (design: choices and text)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from panda.choosing.decision import Choice, Option
from panda.errors import RecipeKeyError
from panda.recipes.pack import Request, fill
from panda.recipes.recipe import Recipe
from panda.recipes.schemas import option_places

FORMS = ("spans", "objects", "instead")
"""Templates that name a choice."""


def template_sources(recipe: Recipe) -> set[str]:
    """Choice properties that exist only to feed templates; a model that writes is not asked for them."""
    return {
        name
        for value in recipe.templates.values()
        if isinstance(value, Mapping)
        for form in FORMS
        if form in value
        for name in named_choices(value[form])
    }


def named_choices(value: object) -> tuple[str, ...]:
    """
    The choices that a template names: one, or of `instead` several.

    >>> named_choices("lines"), named_choices(["mood", "agreement"])
    (('lines',), ('mood', 'agreement'))
    """
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def replaced_texts(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """
    Text properties that only models that write are asked for, each with the choices of all others.

    A template `{instead: property}` says so, or `{instead: [several]}`: who does not write makes those
    choices and leaves the text out; who writes sees neither the choices nor their options.
    """
    return {
        name: named_choices(value["instead"])
        for name, value in recipe.templates.items()
        if isinstance(value, Mapping) and "instead" in value
    }


def shown_to_writer(recipe: Recipe, request: Request, prompt: str) -> Request:
    """
    The request as a model that writes sees it, so that nothing is sent twice.

    Args:
        recipe: The recipe.
        request: What the phase gives.
        prompt: The recipe's prompt.

    Returns:
        The request with the options that the model chooses from, those that its prompt names, as in `the
        options "pages"`, and plain ids. Options that stand in for texts that it writes are left out. Of
        lines, which only scorers look at, those stay that no document holds. Without a schema all stay.
    """
    replaced = {name for choices in replaced_texts(recipe).values() for name in choices}
    chosen = set(option_places(recipe.output_schema)) - template_sources(recipe)
    documents = " ".join(" ".join(document.text.split()) for document in request.documents)

    def is_shown(name: str, option: Option) -> bool:
        text = " ".join((option.shown or option.text).split())
        named = name in chosen or f'"{name}"' in prompt or recipe.output_format != "json"
        return named or option.id == option.text or text not in documents

    options = {
        name: [option for option in given if is_shown(name, option)]
        for name, given in request.options.items()
        if name not in replaced
    }
    return replace(request, options=options)


def fill_templates(
    recipe: Recipe, request: Request, choices: Mapping[str, Choice], values: Mapping[str, Any]
) -> dict[str, Any]:
    """
    The text properties of a reply, from the recipe's templates.

    A template is a text with {{name}} (query, the call's variables, or a value already chosen), a list of
    such texts, null, `{spans: property}`: items {text, node_ids} of what that choice chose, verbatim,
    `{objects: property}`: an object {property: value} for each value that it chose, or
    `{instead: property}` (or several): nothing, the property is left out.

    Args:
        recipe: The recipe with its templates.
        request: Query, variables and options of the call.
        choices: Choices made so far.
        values: Values of the reply so far.

    Raises:
        RecipeKeyError: A template names something that does not exist.
    """
    variables = {"query": request.query, **request.variables}
    variables |= {name: value for name, value in values.items() if isinstance(value, str)}
    where = str(recipe.path)

    def made(template: object) -> object:
        if isinstance(template, str):
            return fill(template, variables, where=f"{where} (templates)")
        if isinstance(template, list):
            return [made(item) for item in template]
        if isinstance(template, Mapping) and set(template) == {"spans"}:
            return _items(template["spans"])
        if isinstance(template, Mapping) and set(template) == {"objects"}:
            return [{template["objects"]: value} for value in _chosen(template["objects"])]
        if template is None:
            return None
        raise RecipeKeyError(
            "a template is a text, a list of texts, null, {spans: …}, {objects: …} or {instead: …}",
            where=f"{where} (templates)",
        )

    def _items(name: str) -> list[dict[str, object]]:
        options: dict[str, Option] = {option.id: option for option in request.options.get(name, ())}
        ids = [str(id_) for id_ in _chosen(name)]
        return [{"text": options[id_].text, "node_ids": list(options[id_].node_ids)} for id_ in ids]

    def _chosen(name: str) -> Sequence[str | bool]:
        value = choices[name].value if name in choices else None
        return value if isinstance(value, tuple) else () if value is None else (value,)

    left_out = replaced_texts(recipe)
    return {name: made(template) for name, template in recipe.templates.items() if name not in left_out}
