"""What a call sends (S3 §6, §12): documents of the turn fitted to their room, and the messages of them."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from panda.compression.budgets import Limits
from panda.compression.fit import (
    Cut,
    InputDocument,
    Rewriter,
    Trigger,
    fit_documents,
    newest_result,
)
from panda.documents.context import SECTIONS, ContextDocument, Phase, Section, render_for_prompt
from panda.documents.safe_text import escape_prompt_lines, one_line
from panda.errors import BudgetExceededError, Location, RecipeKeyError
from panda.language.dates import DATES
from panda.language.numbers import CURRENCY_BEFORE
from panda.models.cl100k import count_tokens
from panda.models.model_contract import Message, Model
from panda.models.replies import with_schema
from panda.recipes.book import RecipeBook
from panda.recipes.recipe_file import Recipe
from panda.recipes.schema import (
    askable_schema,
    asked_properties,
    describe_schema,
    plain_schema,
    property_schemas,
)
from panda.steps.all_steps import (
    ASSESSMENT,
    BASE_VARIABLES,
    CARRY,
    PROGRESS,
    RAW_QUERY,
    TICKET,
    TOOL_RESULTS,
)
from panda.steps.options import Option
from panda.steps.request import Request
from panda.steps.step_contract import StepContract
from panda.store.layout import CONTEXT_MD, TOOLRESULTS_MD
from panda.store.turns import TurnFolder, read_turn_file

_NEWEST_SHARE = 0.5
_NEVER_CUT = (RAW_QUERY, PROGRESS, ASSESSMENT)
_MODEL_TOKENS_PER_BUDGET_TOKEN = 1.2
_SLACK_TOKENS = 8
_KEPT_KINDS = {
    "urls": re.compile(r"\w+://\S"),
    "prices": re.compile(rf"(?:{CURRENCY_BEFORE})\s?\d|\d\s?[€£¥₽₹]", re.VERBOSE),
    "dates": re.compile(DATES, re.VERBOSE),
}
"""What compression.preserve may name besides documents, section_0 … section_6 and tool_errors."""


def build_messages(
    recipe: Recipe,
    contract: StepContract[Any],
    prompt: str,
    request: Request,
    documents: Sequence[InputDocument],
    *,
    error: str | None = None,
    schema: Mapping[str, Any] | None = None,
) -> list[Message]:
    """
    The messages of one call, what never changes first: a system message that is the same for every call of
    the recipe, and a user message of documents, options, guidance, query, task. What follows a line `# Task`
    of the prompt goes last. *error* says why the previous attempt was refused; *schema* stands for that of
    the properties that the recipe asks for.
    """
    asked = asked_properties(recipe.output_schema, contract)
    request_values = {"query": request.query, **request.variables}
    place = str(recipe.path)
    own = {name: fill(value, request_values, where=place) for name, value in recipe.variables.items()}
    variables = {**request_values, **own}
    role, _, task = prompt.partition("\n# Task\n")
    system = [role.strip()]
    if recipe.is_object and asked:
        asked_schema = schema or plain_schema(recipe.output_schema, contract, only=asked)
        form = "one YAML mapping" if recipe.output_format == "yaml" else "one JSON object"
        system.append(_describe_reply(form, asked_schema))
    system += [f"Example:\n{example.strip()}" for example in recipe.examples]
    sent = [document for document in documents if document.text and document.name != RAW_QUERY]
    user = [_block(one_line(document.name), document.text) for document in sent]
    user += [_render_options(name, options) for name, options in request.shown_options.items() if options]
    if request.guidance:
        user.append(_block("Guidance", request.guidance))
    if error:
        user.append(_block("Your last reply was refused", error))
    user.append(f"User query: {escape_prompt_lines(request.query)}")
    if request.meant:
        user.append(f"The query with names for what it refers to: {escape_prompt_lines(request.meant)}")
    if task.strip():
        user.append(fill(task.strip(), variables, where=place))
    return [
        Message("system", fill("\n\n".join(system), variables, where=place)),
        Message("user", "\n\n".join(user), request.pictures),
    ]


def _describe_reply(form: str, schema: Mapping[str, Any]) -> str:
    """Return how a reply has to look, as short as its schema allows."""
    described = describe_schema(schema)
    if described is None:
        return f"Reply with {form} of this schema:\n{json.dumps(schema, ensure_ascii=False)}"
    return f"Reply with {form} of this form (? is optional; ≤ characters or items):\n{described}"


def _block(title: str, text: str) -> str:
    return f"===== {title} =====\n{escape_prompt_lines(text)}"


def _render_options(name: str, options: Sequence[Option]) -> str:
    """Return a set of options, a line each; a label that several in a row have stands once above them."""
    lines = [f"===== Options: {name} ====="]
    label = ""
    for option in options:
        if option.label != label:
            label = option.label
            lines.append(one_line(label) or "Without a source:")
        own_id = " ".join(option.id.splitlines())
        text = one_line(option.shown or option.text)
        lines.append(f"- {own_id}" if text == own_id else f"- {own_id} | {text}")
    return "\n".join(lines)


_PART = re.compile(r"^\{\{#([\w.]+)\}\}\n(.*?)^\{\{/\1\}\}(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def choose_parts(prompt: str, gives: Callable[[str], bool]) -> str:
    r"""
    Return a prompt with those of its parts whose name is given. A part stands between a line `{{#name}}` and
    a line `{{/name}}`, and the name is that of a set of options, a document or a variable.

    >>> choose_parts("Rules:\n{{#pages}}\n- Read them.\n{{/pages}}\n- Be short.", lambda name: False)
    'Rules:\n- Be short.'
    """
    return _PART.sub(lambda part: part[2] if gives(part[1]) else "", prompt)


def with_every_part(prompt: str) -> str:
    """Return a prompt with all of its parts, as no call is longer."""
    return choose_parts(prompt, lambda name: True)


def part_names(prompt: str) -> list[str]:
    """Return the names of the parts of a prompt, in order."""
    return [match[1] for match in _PART.finditer(prompt)]


def fill(text: str, variables: Mapping[str, str], *, where: str) -> str:
    """
    The text with every {{name}} replaced by its value as it is: a {{name}} inside a value is not replaced. A
    name without a value is a RecipeKeyError.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            message = f"the variable {match[0]} has no value"
            raise RecipeKeyError(message, where=where, fix="add it to variables, or remove it")
        return variables[match[1]]

    return re.sub(r"\{\{(\w+)\}\}", value, text)


def without_doubles(recipe: Recipe, contract: StepContract[Any], request: Request, prompt: str) -> Request:
    """
    Return the request as a model is shown it, so that nothing is sent twice: with the options that it
    chooses from, and those that its prompt names, as in `the options "pages"`, unless lines of the documents
    have each of them with its id; of other options those that no document holds. Ids without a text are shown
    where nothing else names them.
    """
    document_lines = [
        " ".join(line.split()) for document in request.shown_documents for line in document.text.splitlines()
    ]
    documents = " ".join(document_lines)
    described = [option.label + (option.shown or option.text) for option in _options_with_texts(request)]
    all_texts = "\n".join([prompt, documents, *described, *request.variables.values()])

    def is_shown(option: Option) -> bool:
        return option.id == option.text or " ".join((option.shown or option.text).split()) not in documents

    def has_line(option: Option) -> bool:
        text = " ".join((option.shown or option.text).split())
        return any(option.id in line and text in line for line in document_lines)

    options: dict[str, Sequence[Option]] = {}
    for name, offered in request.shown_options.items():
        are_named = all(option.id == option.text and option.id in all_texts for option in offered)
        if are_named or all(map(has_line, offered)):
            options[name] = ()
        elif is_shown_whole(recipe, contract, name, prompt):
            options[name] = offered
        else:
            options[name] = list(filter(is_shown, offered))
    ids = {name: [option.id for option in offered] for name, offered in request.shown_options.items()}
    shown_ids = {
        name: ids[name] if not remaining else [option.id for option in remaining]
        for name, remaining in options.items()
    }
    return replace(request, options=options, ids=shown_ids)


def _options_with_texts(request: Request) -> list[Option]:
    options = [option for set_options in request.shown_options.values() for option in set_options]
    return [option for option in options if option.id != option.text]


def is_shown_whole(recipe: Recipe, contract: StepContract[Any], set_name: str, prompt: str) -> bool:
    """Return whether a model sees all options of a set: it chooses from them, or its prompt names them."""
    properties = property_schemas(recipe.output_schema)
    is_chosen = any(
        name == set_name and place.partition(".")[0].removesuffix("[]") in properties
        for place, name in contract.places.items()
    )
    return is_chosen or f'"{set_name}"' in prompt or not recipe.is_object


def recipe_documents(
    recipe: Recipe,
    context: ContextDocument,
    *,
    file_text: Callable[[str], str],
    extra: Mapping[str, str],
) -> list[InputDocument]:
    """
    The documents of one call that are there, in the recipe's order (S3 §12.1, §12.2), but the carry next to
    §0, so that it is cut late. context.md among its documents stands for its sections. The user's query, the
    state of the goals and the assessment of §2 are protected. Until all else is cut, all the room is left to
    the newest section, and half of it to the newest tool result, a document of its own. *file_text* gives ""
    for a file that is not there; *extra* are documents that are no files of the turn, by the name that
    input_docs uses.
    """
    documents: list[InputDocument] = []
    last = max(filter(context.section, recipe.input_sections), default=0)
    for number in recipe.input_sections:
        section = context.section(number)
        if section is None:
            continue
        title = f"§{number} {SECTIONS[number].title}"
        if number == Phase.COORDINATOR:
            at = newest_result(section)
            older = render_for_prompt(Section(number, section.blocks[:at])) if at else ""
            documents += _results(title, older, render_for_prompt(Section(number, section.blocks[at:])))
        else:
            share = float(0 < number == last)
            documents.append(
                InputDocument(title, render_for_prompt(section), number == Phase.QUERY_ANALYZER, share)
            )
    plan = context.section(Phase.PLANNER)
    given_documents = {CONTEXT_MD: "", TICKET: plan.text if plan else "", **extra}
    for name in recipe.input_docs:
        text = given_documents[name] if name in given_documents else file_text(name)
        if not text:
            continue
        if name in (TOOLRESULTS_MD, TOOL_RESULTS):
            older, step, newest = text.rpartition("\n\n## Step ")  # what tools quote is indented
            documents += _results(name, older, step.lstrip() + newest)
        else:
            at = min(1, len(documents)) if name == CARRY else len(documents)
            documents.insert(at, InputDocument(name, text, name in _NEVER_CUT))
    return documents


def _results(title: str, older: str, newest: str) -> list[InputDocument]:
    if not older:
        return [InputDocument(title, newest, share=_NEWEST_SHARE)]
    return [
        InputDocument(f"{title}, earlier results", older),
        InputDocument(f"{title}, newest result", newest, share=_NEWEST_SHARE),
    ]


@dataclass(frozen=True)
class Room:
    """The room that a recipe, its model and a call leave for documents and reply (design: fitting)."""

    recipe: Recipe  # the recipe
    model: Model  # the model that runs it
    limits: Limits  # what the user has set
    rewriter: Rewriter = lambda kind: None  # what words passages of documents anew

    def fit(
        self, request: Request, build: Callable[[Sequence[InputDocument]], Sequence[Message]]
    ) -> tuple[list[InputDocument], list[Cut]]:
        """
        The documents of a request in the given order, brought down to the recipe's input budget, to what any
        call may have and to the model's window, in this order; and what was cut and why. Query, guidance and
        options take their room first. BudgetExceededError: what is protected does not fit, or something would
        have to be cut and the recipe's compression is off.
        """
        recipe = self.recipe
        limits = self.limits
        offered = [option for options in request.shown_options.values() for option in options]
        labels = [label for label, _ in groupby(option.label for option in offered)]
        options = "\n".join([*labels, *(option.shown or option.text for option in offered)])
        is_known = any(
            document.text == request.query for document in request.shown_documents
        )  # counted as it is
        query = "" if is_known else request.query
        taken = count_tokens(query + (request.meant or "") + (request.guidance or "")) + count_tokens(options)
        documents, keep = _preserved(recipe, request.shown_documents)
        used = sum(count_tokens(document.text) for document in documents)
        budget = recipe.token_budget.input
        most, room = (max(0, all_of - taken) for all_of in (budget, limits.target(taken + used, budget)))
        trigger: Trigger = "input"
        over = 0
        while True:
            try:
                fitted, cuts = fit_documents(documents, room_tokens=room, query=request.asked, keep=keep)
            except BudgetExceededError as exc:
                if not over and room < most:  # what is protected may take the whole budget
                    room = most
                    continue
                raise (self._too_large(trigger, over) if over else exc) from exc
            if cuts and not (recipe.compression.enabled and limits.enabled):
                saved = sum(cut.before_tokens - cut.after_tokens for cut in cuts)
                fix = "set compression.enabled: true and PANDA_COMPRESSION_ENABLED=true"
                raise BudgetExceededError(
                    f"the inputs of {recipe.key} are {saved} tokens over their room, and compression is off",
                    where=Location(recipe.path, key="compression.enabled"),
                    fix=f"raise token_budget.input, or {fix}",
                )
            exceeded, over = self._excess(build(fitted))
            if over <= 0:
                if any(self.rewriter(cut.content_type) for cut in cuts):
                    worded = fit_documents(
                        documents, room_tokens=room, query=request.asked, keep=keep, rewriter=self.rewriter
                    )
                    if self._excess(build(worded[0]))[1] <= 0:
                        fitted, cuts = worded
                return fitted, [replace(cut, trigger=trigger) for cut in cuts]
            trigger = exceeded
            left = sum(count_tokens(document.text) for document in fitted)
            if left == 0:
                raise self._too_large(trigger, over)
            excess = math.ceil(over / _MODEL_TOKENS_PER_BUDGET_TOKEN) if exceeded == "window" else over
            room = max(0, min(room, left) - excess - _SLACK_TOKENS)

    def output(self, messages: Sequence[Message]) -> int:
        """
        The most tokens that a reply to these messages may have: what call and window leave, up to the
        recipe's longest_output.
        """
        budget = self.recipe.token_budget
        info = self.model.info
        if budget.longest_output <= budget.output:
            return budget.output
        used = self._model_tokens(messages) * _MODEL_TOKENS_PER_BUDGET_TOKEN
        left = self.limits.call_tokens - self._tokens(messages)
        window = info.n_ctx - info.thinking_tokens - math.ceil(used)
        return max(budget.output, min(budget.longest_output, min(left, window) - self._reserve))

    @property
    def _reserve(self) -> int:
        return self.recipe.token_budget.response_reserve or self.limits.reserve_tokens

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(count_tokens(message.content) for message in messages)

    def _model_tokens(self, messages: Sequence[Message]) -> int:
        return self.model.count_model_tokens(self.model.render_chat(messages))

    def _excess(self, messages: Sequence[Message]) -> tuple[Trigger, int]:
        """The limit that prompt and output exceed, the earlier first, and by how many tokens; 0: they fit."""
        limits = self.limits
        info = self.model.info
        after = self.recipe.token_budget.output + self._reserve
        prompt = self._tokens(messages)
        if prompt > limits.call_trigger_tokens or prompt + after > limits.call_tokens:
            return "call", prompt - min(limits.call_trigger_tokens, limits.call_tokens - after)
        return "window", max(0, self._model_tokens(messages) + after + info.thinking_tokens - info.n_ctx)

    def _too_large(self, trigger: Trigger, over: int) -> BudgetExceededError:
        recipe = self.recipe
        info = self.model.info
        if trigger == "call":
            most = self.limits.call_tokens
            limit = f"{most} that a call may have"
            fix = "shorten the prompt of the recipe, or raise the setting default_context_budget"
        else:
            most = info.n_ctx - info.thinking_tokens
            limit = f"window of {most} tokens of {info.name}"
            fix = f"use a model with a larger context window for the layer {recipe.model_layer}"
        return BudgetExceededError(
            f"prompt and output of {recipe.key} need {over} tokens more than the {limit}, "
            "with everything cut that may be cut",
            where=str(recipe.path),
            fix=fix,
            expected=f"at most {most} tokens",
            received=f"{most + over} tokens",
        )


def _preserved(
    recipe: Recipe, documents: Sequence[InputDocument]
) -> tuple[list[InputDocument], list[re.Pattern[str]]]:
    """Documents with those protected that a recipe preserves, and patterns of what it keeps in the others."""
    preserve = recipe.compression.preserve

    def is_named(name: str) -> bool:
        """With or without its ending, or as section_0 … section_6."""
        names = {f"section_{name[1]}"} if name.startswith("§") else {name, name.rsplit(".", 1)[0]}
        return not names.isdisjoint(preserve)

    marked_documents = [
        replace(document, protected=document.protected or is_named(document.name)) for document in documents
    ]
    return marked_documents, [pattern for name, pattern in _KEPT_KINDS.items() if name in preserve]


@dataclass(frozen=True)
class Preview:
    messages: tuple[Message, ...]
    """As they would be sent, with `<…>` in the place of what only the running phase knows."""
    prompt_tokens: int  # budget tokens of what never changes: prompt, schema, examples
    input_tokens: int  # budget tokens of query, documents and options
    cuts: tuple[Cut, ...]  # what fitting took from the documents
    schema: Mapping[str, Any] | None
    """The schema of the reply, beside the messages or at the end of them as the dialect has it."""


def preview_recipe(
    book: RecipeBook, recipe: Recipe, turn: TurnFolder | None, *, dialect: str | None = None
) -> Preview:
    """
    The messages of a recipe for a saved turn, or with a placeholder for each document, without sending them.
    *dialect* is how its model is asked for a reply of a schema, None for one that is not asked in words.
    """
    contract = book.contract_of(recipe.key)
    prompt = book.prompt_of(recipe)
    metadata = turn.read_metadata() if turn else None
    query = metadata.query if metadata else "<query>"
    variables = {name: f"<{name}>" for name in (*BASE_VARIABLES, *contract.variables)}
    if metadata:
        variables |= {name: str(getattr(metadata, name)) for name in BASE_VARIABLES}
    extra = {name: f"<{name}, given by the phase>" for name in contract.documents}
    if metadata and RAW_QUERY in extra:
        extra[RAW_QUERY] = query
    options = {
        name: [Option("<id>", f"<options of {name}, given by the phase>")]
        for name in contract.option_sets
        if is_shown_whole(recipe, contract, name, prompt)
    }
    preview_documents, keep = _preserved(recipe, _preview_documents(recipe, turn, extra))
    offered = [_render_options(name, options[name]) for name in options]
    room = max(0, recipe.token_budget.input - count_tokens("\n".join([query, *offered])))
    documents, cuts = fit_documents(
        preview_documents, room_tokens=room, query=metadata.query if metadata else None, keep=keep
    )
    written = without_doubles(recipe, contract, Request(query, documents, options, variables), prompt)

    def gives(name: str) -> bool:
        return name in contract.option_sets or written.gives(name)

    prompt = choose_parts(prompt, gives)
    askable = askable_schema(recipe.output_schema, contract, gives)
    asked = asked_properties(askable, contract)
    form = plain_schema(askable, contract, only=asked)
    messages = build_messages(recipe, contract, prompt, written, documents, schema=form)
    inputs = [query, *(document.text for document in documents)]
    inputs += [_render_options(name, offered) for name, offered in written.shown_options.items()]
    blank = Request("", variables={**variables, "query": ""})
    schema = None
    if recipe.output_format == "json":
        schema = plain_schema(askable, contract, only=asked, options=written.option_ids(contract))
    fixed = build_messages(recipe, contract, prompt, blank, (), schema=form)
    return Preview(
        tuple(messages if schema is None else with_schema(messages, schema, dialect)),
        sum(count_tokens(message.content) for message in fixed),
        sum(map(count_tokens, inputs)),
        tuple(cuts),
        schema,
    )


def _preview_documents(
    recipe: Recipe, turn: TurnFolder | None, extra: Mapping[str, str]
) -> list[InputDocument]:
    if turn is not None:
        text_of = partial(_file_text, turn)
        return recipe_documents(recipe, turn.read_context(), file_text=text_of, extra=extra)
    sections = [InputDocument(f"§{n}", f"<section {n} of context.md>", n == 0) for n in recipe.input_sections]
    names = [name for name in recipe.input_docs if name != CONTEXT_MD]
    return sections + [InputDocument(name, extra.get(name, f"<{name}>")) for name in names]


def _file_text(turn: TurnFolder, name: str) -> str:
    return read_turn_file(turn, name).decode("utf-8", errors="replace") if turn.has(name) else ""
