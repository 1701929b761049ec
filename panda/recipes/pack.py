"""The prompt pack (S3 §6): the only place where messages are built."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from panda.choosing.decision import Option
from panda.compression.fitting import InputDocument
from panda.documents.pictures import Picture
from panda.documents.text import escape_prompt_lines, one_line
from panda.errors import RecipeKeyError
from panda.language.hosts import with_pages_named
from panda.models.contract import Message
from panda.recipes.recipe import Recipe
from panda.recipes.schemas import plain_schema


@dataclass(frozen=True)
class Request:
    """What a phase gives to one call."""

    query: str
    """The user's original query; every call gets it."""
    documents: Sequence[InputDocument] = ()
    """Documents of the turn, most important first."""
    options: Mapping[str, Sequence[Option]] = field(default_factory=dict)
    """Options of the choices, by property name or by the name in `over`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for {{name}}."""
    guidance: str | None = None
    """What an earlier judgement asks to do differently."""
    meant: str | None = None
    """The query with names for what it refers to, if it refers to anything; scorers read it."""
    pictures: tuple[Picture, ...] = ()
    """What the model is shown; only the layer EYES sees."""
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schemas of what goes with an option, as the arguments of a tool, by the option's id."""

    @property
    def scored(self) -> str:
        """The query as scorers read it."""
        return with_pages_named(self.meant or self.query)


def build_messages(
    recipe: Recipe,
    prompt: str,
    request: Request,
    documents: Sequence[InputDocument],
    *,
    error: str | None = None,
    asked: Sequence[str] | None = None,
) -> list[Message]:
    """
    The messages of one call, what never changes first.

    Args:
        recipe: The recipe.
        prompt: Its prompt text; what follows a line `# Task` goes last.
        request: What the phase gives.
        documents: The fitted documents.
        error: Why the previous attempt was refused.
        asked: Properties of the schema that the model is asked for; None means all.

    Returns:
        A system message that is the same for every call of the recipe, and a user message: documents,
        options, guidance, query, task.

    Raises:
        RecipeKeyError: A {{name}} has no value.
    """
    given = {"query": request.query, **request.variables}
    place = str(recipe.path)
    variables = {
        **given,
        **{name: fill(value, given, where=place) for name, value in recipe.variables.items()},
    }
    role, _, task = prompt.partition("\n# Task\n")
    system = [role.strip()]
    if recipe.output_format == "json" and asked != ():
        system.append("Reply with one JSON object of this schema:\n" + render_schema(recipe, asked))
    system += [f"Example:\n{example.strip()}" for example in recipe.examples]
    user = [
        f"===== {one_line(document.name)} =====\n{escape_prompt_lines(document.text)}"
        for document in documents
        if document.text
    ]
    user += [render_options(name, options) for name, options in request.options.items() if options]
    if request.guidance:
        user.append(f"===== Guidance =====\n{escape_prompt_lines(request.guidance)}")
    if error:
        user.append(f"===== Your last reply was refused =====\n{escape_prompt_lines(error)}")
    user.append(f"User query: {escape_prompt_lines(request.query)}")
    if request.meant:
        user.append(f"The query with names for what it refers to: {escape_prompt_lines(request.meant)}")
    if task.strip():
        user.append(fill(task.strip(), variables, where=place))
    return [
        Message("system", fill("\n\n".join(system), variables, where=place)),
        Message("user", "\n\n".join(user), request.pictures),
    ]


def render_schema(recipe: Recipe, asked: Sequence[str] | None) -> str:
    """The output schema, or some of its properties, as the model sees it: without x- keys, in one line."""
    return json.dumps(plain_schema(recipe.output_schema, only=asked, options={}), ensure_ascii=False)


def render_options(name: str, options: Sequence[Option]) -> str:
    """
    Options as a list in a prompt.

    >>> render_options("relevant", [Option("turn:1", "Turn 1: laptops")])
    '===== Options: relevant =====\\n- turn:1 | Turn 1: laptops'
    """
    lines = [
        f"- {' '.join(option.id.splitlines())} | {one_line(option.shown or option.text)}"
        for option in options
    ]
    return "\n".join([f"===== Options: {name} =====", *lines])


def fill(text: str, variables: Mapping[str, str], *, where: str) -> str:
    """
    The text with every {{name}} replaced by its value.

    Values are put in as they are: a {{name}} inside a value is not replaced.

    Raises:
        RecipeKeyError: A name has no value.

    >>> fill("In {{mode}} mode.", {"mode": "chat"}, where="x.yaml")
    'In chat mode.'
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in variables:
            raise RecipeKeyError(
                f"the variable {{{{{name}}}}} has no value",
                where=where,
                fix="add it to variables, or remove it",
            )
        return variables[name]

    return re.sub(r"\{\{(\w+)\}\}", value, text)
