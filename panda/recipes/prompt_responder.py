"""Replies of a model: documents fitted to their room, a prompt, a reply under the recipe's schema."""

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from panda.compression.budgets import Limits
from panda.compression.fit import InputDocument, Rewriter
from panda.models.model_contract import (
    Completion,
    GenerateParams,
    Message,
    Model,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    Usage,
)
from panda.models.replies import as_written
from panda.recipes.book import RecipeBook
from panda.recipes.messages import Room, build_messages, choose_parts, without_doubles
from panda.recipes.recipe_file import Recipe
from panda.recipes.reply import parse_object, value_span
from panda.recipes.responder import Call, RawReply
from panda.recipes.schema import (
    askable_schema,
    asked_properties,
    deciding_property,
    is_confidence,
    lower_limits,
    plain_schema,
    property_schemas,
)
from panda.steps.step_contract import StepContract
from panda.store.records import OptionRecord

_COMMON_CHARS = 3
"""Characters of a token in most replies."""
_LEAST_CHARS = 1
"""Characters of a token at least."""
_MAX_QUOTED_CHARS = 200
"""How much of a reply that cannot be read is quoted in the error."""


class PromptResponder:
    """Replies of one model, in this process or on a server."""

    def __init__(self, model: Model, book: RecipeBook, limits: Limits, rewriter: Rewriter) -> None:
        self._model = model
        self._book = book
        self._limits = limits
        self._rewriter = cache(rewriter)

    @property
    def info(self) -> ModelInfo:
        """The model."""
        return self._model.info

    def attempts(self, recipe: Recipe) -> int:
        """Return the first attempt and all retries of the recipe."""
        return recipe.quality_gates.max_retries + 1

    def optional(self, recipe: Recipe, contract: StepContract[Any]) -> list[str]:
        """Return the confidence, which code computes."""
        schemas = property_schemas(recipe.output_schema)
        return [name for name, schema in schemas.items() if is_confidence(name, schema)]

    def unsupported(self, recipe: Recipe, contract: StepContract[Any]) -> str | None:
        """Return None: a model is asked whatever a recipe says."""
        return None

    def reply(self, call: Call) -> RawReply:
        """Reply to a call; see Responder."""
        return _Attempt(call, self._model, self._book, self._limits, self._rewriter).run()


class _Attempt:
    def __init__(
        self, call: Call, model: Model, book: RecipeBook, limits: Limits, rewriter: Rewriter
    ) -> None:
        self._call = call
        self._model = model
        prompt = book.prompt_of(call.recipe)
        self._shown_request = without_doubles(call.recipe, call.contract, call.request, prompt)
        self._prompt = choose_parts(prompt, self._shown_request.gives)
        self._askable = askable_schema(call.recipe.output_schema, call.contract, self._shown_request.gives)
        self._option_ids = self._shown_request.option_ids(call.contract)
        self._room = Room(call.recipe, model, limits, rewriter)
        self._reply_tokens = call.recipe.token_budget.output

    def run(self) -> RawReply:
        messages = self._messages()
        completion, error, values = self._generate(messages)
        return RawReply(
            values=values,
            received=completion.text,
            error=error,
            is_cut=completion.finish_reason == "length",
            measure=partial(self._confidence, messages, completion, values),
        )

    def _asked(self) -> list[str]:
        """Return the properties that are asked for; after a reply that was cut those that are needed."""
        call = self._call
        dispensable = frozenset(call.contract.lenient).difference(call.contract.required)
        names = asked_properties(self._askable, call.contract)
        return [name for name in names if not call.times_cut or name not in dispensable]

    def _schema(self, *, with_ids: bool) -> Mapping[str, Any]:
        """Return the schema of the reply; after a reply that was cut with limits under which it fits."""
        call = self._call
        schema = self._askable
        if call.times_cut and schema:
            per_token = _LEAST_CHARS if call.is_last or call.times_cut > 1 else _COMMON_CHARS
            schema = lower_limits(schema, self._reply_tokens * per_token, filled=self._filled)
        return self._filled(schema) if with_ids else plain_schema(schema, call.contract, only=self._asked())

    def _filled(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema of the asked properties with the ids on offer, and their arguments."""
        return plain_schema(
            schema,
            self._call.contract,
            only=self._asked(),
            options=self._option_ids,
            arguments=self._shown_request.arguments,
        )

    def _messages(self) -> Sequence[Message]:
        call = self._call
        schema = self._schema(with_ids=False) if call.recipe.is_object else None

        def build(documents: Sequence[InputDocument]) -> Sequence[Message]:
            return build_messages(
                call.recipe,
                call.contract,
                self._prompt,
                self._shown_request,
                documents,
                error=call.error,
                schema=schema,
            )

        documents, call.writer.cuts = self._room.fit(self._shown_request, build)
        call.writer.sent = build(documents)
        return call.writer.sent

    def _generate(self, messages: Sequence[Message]) -> tuple[Completion, str | None, dict[str, Any]]:
        """Return a completion, what is wrong with it, and its values, of which there are none then."""
        call = self._call
        recipe = self._call.recipe
        self._reply_tokens = self._room.output(messages)
        params = GenerateParams(
            temperature=recipe.temperature,
            max_tokens=self._reply_tokens,
            seed=call.journal.seed(recipe.key, call.attempt),
            timeout_seconds=recipe.quality_gates.timeout_ms / 1000,
            schema=self._schema(with_ids=True) if recipe.output_format == "json" else None,
        )
        recordings = call.journal.recordings
        digest = self._model.info.digest
        recorded = recordings.completion(call.writer.asker, digest, messages, params)
        completion = recorded or self._model.generate(messages, params)
        error, values = self._read(completion, params)
        span = self._deciding_span(completion, values)
        call.writer.write_generate(
            messages,
            params,
            completion,
            call.attempt,
            lenient=[name for name in call.contract.lenient if name in self._asked()],
            logprobs=completion.tokens_of(*span) if span else (),
        )
        return completion, error, values

    def _read(self, completion: Completion, params: GenerateParams) -> tuple[str | None, dict[str, Any]]:
        recipe = self._call.recipe
        if completion.finish_reason == "length":
            within = " within the limits of the schema" if params.schema else ""
            return f"it was cut after {params.max_tokens:,} tokens; write a shorter one{within}", {}
        if not recipe.is_object:
            return None, {"text": completion.text}
        values, error = parse_object(completion.text, is_yaml=recipe.output_format == "yaml")
        return (f"{error}, but {_quote(completion.text)}" if error else None), values

    def _deciding_span(self, completion: Completion, values: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return where the deciding value stands in a reply; None where it stands nowhere."""
        gates = self._call.recipe.quality_gates
        if gates.confidence_threshold is None and not self._call.contract.decides:
            return None  # nobody reads it
        name = deciding_property(self._call.recipe.output_schema)
        if name is None or name not in values:
            return None
        return value_span(completion.text, name, values[name])

    def _confidence(
        self, messages: Sequence[Message], completion: Completion, values: Mapping[str, Any]
    ) -> float | None:
        """Return the probability of the deciding value where it was written; None where it is not known."""
        gates = self._call.recipe.quality_gates
        if gates.confidence_threshold is None and not self._call.contract.decides:
            return None  # nobody reads it
        name = deciding_property(self._call.recipe.output_schema)
        place = self._deciding_span(completion, values)
        if name is None or place is None:
            return None
        if not self._model.info.scores:
            logprob = completion.logprob_of(*place)
            return None if logprob is None else round(math.exp(logprob), 4)
        chat = self._model.render_chat(messages)
        before = as_written(chat, completion.reasoning, completion.text[: place[0]])
        case = ScoreCase(before, completion.text[slice(*place)])
        return round(math.exp(min(0.0, self._logprob(name, chat, case))), 4)

    def _logprob(self, name: str, chat: str, case: ScoreCase) -> float:
        """Return the log-probability of a written value, recorded or computed, and write it down."""
        call = self._call
        info = self._model.info
        recorded = call.journal.recordings.score(call.writer.asker, info.digest, chat, case)
        if recorded is not None:
            logprob, tokens = recorded
            usage = Usage(0, 0, 0)
            seconds = 0.0
        else:
            limit = ScoreParams(call.recipe.quality_gates.timeout_ms / 1000)
            scores = self._model.score(chat, [case], limit)
            logprob = scores.logprobs[0]
            tokens = scores.tokens[0]
            usage = scores.usage
            seconds = scores.seconds
        option = OptionRecord(case.context, case.continuation, logprob, tokens, recorded is not None)
        call.writer.write_probability(name, chat, option, usage=usage, seconds=seconds, attempt=call.attempt)
        return logprob


def _quote(text: str) -> str:
    """Return how a reply begins, in quotation marks and on one line."""
    words = " ".join(text.split())
    return f'"{words}"' if len(words) <= _MAX_QUOTED_CHARS else f'"{words[:_MAX_QUOTED_CHARS]}…"'
