"""
The recipe executor (S3 §15): the only caller of a model.

One execution: fit the inputs, build the prompt, ask the model, fill templates, check the reply, retry with
the error, log. A model that only chooses scores the choices by their decision lists and leaves text to the
recipe's templates. A model that writes gives text and choices in one reply under the schema, the choices
last; if it scores too, the confidence of the deciding choice is the probability of its value in that reply,
else there is none.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, cast

from msgspec import structs

from panda.choosing.ask import Ask, Memo
from panda.choosing.decision import Choice, ChoiceInputs, ChoiceSpec
from panda.choosing.scorers import choose, written_choice
from panda.compression.budgets import Limits
from panda.compression.fit import (
    REWRITE,
    STEPS,
    Cut,
    InputDocument,
    Rewrite,
    compressed_line,
    overflow_line,
)
from panda.compression.pieces import ContentType
from panda.documents.times import Clock, render_time
from panda.errors import (
    BudgetExceededError,
    GateError,
    HaltError,
    Location,
    ModelAwayError,
    RecipeSchemaError,
    ReplyError,
    SchemaError,
    TryAgainError,
)
from panda.models.contract import Encoder, GenerateParams, Layers, Message, Model, ScoreCase
from panda.models.models_file import OFFLINE
from panda.models.replies import as_written
from panda.recipes.book import RecipeBook
from panda.recipes.calls import CallWriter, Journal, whose_turn
from panda.recipes.messages import Request, Room, build_messages, shown_to_writer
from panda.recipes.plan import capability_of
from panda.recipes.reply import (
    Gate,
    Reply,
    fill_templates,
    find_fault,
    find_unlinked,
    parse_object,
    value_span,
)
from panda.recipes.schema import lower_limits, plain_schema
from panda.store.log import AWAY
from panda.store.records import Execution

_COMMON_CHARS = 3
"""Characters of a token in most replies."""
_LEAST_CHARS = 1
"""Characters of a token at least."""
_Ended = Reply | HaltError | ModelAwayError


class RecipeExecutor:
    """Executes recipes; *log* takes one line of the executions log."""

    def __init__(
        self,
        book: RecipeBook,
        layers: Layers,
        encoder: Encoder | None = None,
        *,
        clock: Clock,
        log: Callable[[Execution], None],
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.book = book
        self.encoder = encoder
        self.memo = Memo()
        self._layers = layers
        self._clock = clock
        self._log = log

    def model(self, key: str) -> Model:
        """The model that runs a recipe."""
        return self._layers.model(self.book.load_recipe(key).model_layer)

    def writes(self, key: str) -> bool:
        """Whether the layer of a recipe has a model, which is asked for whole replies."""
        return not self._layers.is_offline(self.book.load_recipe(key).model_layer)

    def served_by(self, layer: str) -> str:
        """Return what answers calls of a layer: its model, or the encoder, else words in common."""
        if not self._layers.is_offline(layer):
            return f"{layer}: {self._layers.model(layer).info.name}"
        return f"encoder {self.encoder.info.name}" if self.encoder else "words in common"

    def execute(self, key: str, request: Request, journal: Journal) -> Reply:
        """
        The checked reply of one recipe, e.g. "pipeline/phase1_reflection". BudgetExceededError: the protected
        inputs do not fit. ReplyError: the reply stayed invalid after all retries. GateError: below the
        confidence threshold, and the recipe halts then.
        """
        execution = _Execution(self, key, request, journal)
        started = time.monotonic()
        ended: _Ended
        try:
            ended = execution.run()
        except (HaltError, ModelAwayError) as exc:
            ended = exc
        finally:
            self._layers.release(execution.recipe.model_layer)
        for line in execution.log_lines(time.monotonic() - started, ended, render_time(self._clock())):
            self._log(line)
        if isinstance(ended, Reply):
            return ended
        raise ended

    def compressed(self, cut: Cut, recipe: str | None) -> Execution:
        """The line of the log of one compression: with the model that worded passages anew, if one did."""
        layer = model = None
        if cut.method == REWRITE:
            key = self.book.key_for(STEPS[cut.content_type], "chat")
            layer, model = self.book.load_recipe(key).model_layer, self.model(key).info.name
        now = render_time(self._clock())
        return compressed_line(cut, timestamp=now, recipe=recipe, layer=layer, model=model)

    def decide(self, key: str, name: str, request: Request, journal: Journal) -> Choice:
        """The choice of the property *name* of a recipe, as an execution would make it: for measuring."""
        self.memo.clear()
        execution = _Execution(self, key, request, journal)
        execution.attempts += 1
        return execution.choose(execution.recipe.choice(name))


class _Execution:
    """One execution of a recipe: its plan is asked, the reply checked, asked for anew, and written down."""

    def __init__(self, executor: RecipeExecutor, key: str, request: Request, journal: Journal) -> None:
        self.executor = executor
        self.request = request
        self.journal = journal
        self.writer_model = executor.model(key) if executor.writes(key) else None
        """None where the layer is offline."""
        info = self.writer_model.info if self.writer_model else None
        self.plan = executor.book.plan(key, capability_of(info or OFFLINE))
        self.recipe = self.plan.recipe
        self.prompt = executor.book.prompt_of(self.recipe)
        self.shown = shown_to_writer(self.plan, request, self.prompt) if self.plan.writes else request
        self.cuts: list[Cut] = []
        self.attempts = 0
        self.times_cut = 0
        self.room_tokens = self.recipe.token_budget.output
        self.reasoning = ""
        prompts = executor.book.prompts_of(key)
        self.writer = CallWriter(journal, self.recipe, prompts, info)

    @property
    def model(self) -> Model:
        """The model that writes; there is none where the layer is offline."""
        assert self.writer_model is not None
        return self.writer_model

    @cached_property
    def room(self) -> Room:
        """What the inputs of a model that writes must fit into."""
        rewriter = cache(lambda kind: passage_rewriter(self.executor, kind, self.request.query, self.journal))
        return Room(self.recipe, self.model, self.executor.limits, rewriter)

    def run(self) -> Reply:
        gates, recipe = self.recipe.quality_gates, self.recipe
        error: str | None = None
        received: str | None = None
        for _ in range(gates.max_retries + 1):
            if self.executor.book.step_of(recipe.key) not in STEPS.values():  # compression is not counted
                self.journal.count_execution(recipe.key)
            self.attempts += 1
            received, reply, error = self._attempt(self.messages(error))
            if reply is not None and self._gate_passes(reply):
                return reply
            error = error or f"the confidence of the reply is below {gates.confidence_threshold}"
        raise ReplyError(
            f"{recipe.key}: no valid reply in {self.attempts} attempts: {error}",
            where=str(recipe.path),
            fix="see calls.jsonl of the turn; change the prompt or the model, then resume the turn",
            expected="a reply that satisfies output_schema and the quality gates",
            received=received,
        )

    def _gate_passes(self, reply: Reply) -> bool:
        gates = self.recipe.quality_gates
        if not reply.below_threshold or gates.below_threshold in ("proceed", "clarify"):
            return True
        if gates.below_threshold == "halt":
            raise GateError(
                f"{self.recipe.key}: confidence {reply.confidence} is below {gates.confidence_threshold}",
                where=Location(self.recipe.path, key="quality_gates"),
                expected=f"a confidence of at least {gates.confidence_threshold}",
                received=str(reply.confidence),
            )
        return False

    def messages(self, error: str | None) -> Sequence[Message]:
        """Return the messages of an attempt; of an offline layer none is sent, and no document is cut."""
        names = (*self._texts(), *(spec.name for spec in self.plan.choices))
        schema = plain_schema(self._limited(names), only=names, options={})

        def build(documents: Sequence[InputDocument]) -> Sequence[Message]:
            return build_messages(self.plan, self.prompt, self.shown, documents, error=error, schema=schema)

        if not self.plan.writes:
            return build(self.request.documents)
        documents, self.cuts = self.room.fit(self.shown, build)
        self.writer.sent = build(documents)
        return self.writer.sent

    def _texts(self) -> list[str]:
        """The texts that the model writes, after a reply that was cut only those that may not be missing."""
        return [name for name in self.plan.texts if not self.times_cut or name not in self.plan.lenient]

    def _limited(self, names: Sequence[str]) -> Mapping[str, Any]:
        """The output schema; after a reply that was cut with limits under which these properties fit."""
        schema = self.recipe.output_schema
        if not self.times_cut or not schema:
            return schema
        asked = {**schema, "properties": {name: schema["properties"][name] for name in names}}
        is_last = self.attempts > self.recipe.quality_gates.max_retries
        per_token = _LEAST_CHARS if is_last or self.times_cut > 1 else _COMMON_CHARS
        return lower_limits(asked, self.room_tokens * per_token, self.request.option_ids)

    def _attempt(self, messages: Sequence[Message]) -> tuple[str | None, Reply | None, str | None]:
        """One attempt: what the model said, the reply if it passed, and else why it did not."""
        recipe, plan, options = self.recipe, self.plan, self.request.options
        drawn = [spec for spec in plan.choices if plan.writes and (spec.values or options.get(spec.name))]
        names = [*self._texts(), *(spec.name for spec in drawn)]
        values: dict[str, Any] = {}
        choices: dict[str, Choice] = {}
        received = error = None
        if not recipe.is_object and plan.writes:
            received, error = self._generate(messages, None)
            values["text"] = received
        elif names:
            received, error = self._generate(messages, names)
            if error is None:
                values, error = parse_object(received, is_yaml=recipe.output_format == "yaml")
            error = error or self._fault(values, names)
        if error:
            return received, None, error
        for spec in plan.choices:
            if not plan.writes:
                choices[spec.name] = self.choose(spec)
            elif spec.name in values or spec.many:  # a subset of no options is empty
                choices[spec.name] = written_choice(spec, values.get(spec.name, []))
        if plan.capability == "writes and scores" and received is not None:
            self._measure(choices, messages, received)
        for name, choice in choices.items():
            if choice.value is not None:
                values[name] = list(choice.value) if isinstance(choice.value, tuple) else choice.value
        values |= fill_templates(plan, self.request, choices, values)
        error = self._fault(values, None) or find_unlinked(recipe, self.request, values)
        if error:
            return json.dumps(values, ensure_ascii=False), None, error
        return received, self._reply(values, choices), None

    def _measure(self, choices: dict[str, Choice], messages: Sequence[Message], text: str) -> None:
        """Give the deciding choice of a written reply the probability of its value there as confidence."""
        spec = self.plan.deciding
        made = choices.get(spec.name) if spec else None
        place = value_span(text, spec.name, made.value) if spec and made else None
        if spec is None or place is None:
            return
        chat = self.model.render_chat(messages)
        case = ScoreCase(as_written(chat, self.reasoning, text[: place[0]]), text[slice(*place)])
        ((logprob, _),) = self.ask(spec).score(chat, [case])
        confidence = round(math.exp(min(0.0, logprob)), 4)
        choices[spec.name] = replace(choices[spec.name], confidence=confidence)

    def _generate(self, messages: Sequence[Message], names: Sequence[str] | None) -> tuple[str, str | None]:
        recipe, request, schema = self.recipe, self.request, None
        if names is not None and recipe.output_format == "json":
            limited, ids = self._limited(names), request.option_ids
            schema = plain_schema(limited, only=names, options=ids, arguments=request.arguments)
        self.room_tokens = self.room.output(messages)
        params = GenerateParams(
            temperature=recipe.temperature,
            max_tokens=self.room_tokens,
            seed=self.journal.seed(recipe.key, self.attempts),
            timeout_seconds=recipe.quality_gates.timeout_ms / 1000,
            schema=schema,
        )
        recordings, digest = self.journal.recordings, self.model.info.digest
        recorded = recordings.completion(self.writer.asker, digest, messages, params)
        completion = recorded or self.model.generate(messages, params)
        self.reasoning = completion.reasoning
        lenient = [name for name in self.plan.lenient if name in (names or ())]
        self.writer.write_generate(messages, params, completion, self.attempts, lenient)
        if completion.finish_reason == "length":
            self.times_cut += 1
            told = f"it was cut after {params.max_tokens:,} tokens; write a shorter one"
            return completion.text, told + (" within the limits of the schema" if schema else "")
        return completion.text, None

    def choose(self, spec: ChoiceSpec) -> Choice:
        """Make one choice by its decision list."""
        return choose(spec, self.inputs(), self.ask(spec))

    def inputs(self) -> ChoiceInputs:
        documents = {document.name: document.text for document in self.request.documents}
        return ChoiceInputs(self.request.scored, self.request.options, documents)

    def ask(self, spec: ChoiceSpec) -> Ask:
        book, recipe = self.executor.book, self.recipe
        return Ask(
            self.writer_model,
            self.executor.encoder,
            self.executor.memo,
            partial(book.load_prompt, where=str(recipe.path)),
            book.fit,
            partial(self.journal.recordings.score, self.writer.asker),
            partial(self.writer.write_choose, spec.name, attempt=self.attempts),
            recipe.quality_gates.timeout_ms / 1000,
        )

    def _fault(self, values: Mapping[str, Any], names: Sequence[str] | None) -> str | None:
        """What is wrong with the values so far; with names, those properties alone are looked at."""
        if not self.recipe.quality_gates.schema_validation or not self.recipe.output_schema:
            return None
        schema = plain_schema(self.recipe.output_schema, only=names, options=self.request.option_ids)
        try:
            return find_fault(values, schema, optional=self.plan.optional, lenient=self.plan.lenient)
        except SchemaError as exc:
            place = Location(self.recipe.path, key="output_schema")
            raise RecipeSchemaError(exc.message, place, fix=exc.fix) from exc

    def _reply(self, values: dict[str, Any], choices: Mapping[str, Choice]) -> Reply:
        deciding = self.plan.deciding
        confidence = choices[deciding.name].confidence if deciding and deciding.name in choices else None
        gates, gate = self.recipe.quality_gates, cast(Gate | None, None)
        threshold = gates.confidence_threshold
        if threshold is not None and (gates.of == "all" or self.plan.writes):
            gate = "not_measured" if confidence is None else "below" if confidence < threshold else "passed"
        computed = {"confidence": confidence} if self.plan.computes_confidence else {}
        values = {**self.plan.defaults, **computed, **values}
        return Reply(self.recipe, values, choices, confidence, gate, self.attempts, tuple(self.cuts))

    def log_lines(self, seconds: float, ended: "_Ended", timestamp: str) -> Iterator[Execution]:
        """
        The lines of logs/executions.jsonl that it leaves (S3 §27): one for each document that was compressed
        or did not fit, then its own.
        """
        recipe, turn = self.recipe, whose_turn(self.journal)
        lines = [self.executor.compressed(cut, recipe.name) for cut in self.cuts]
        if isinstance(ended, BudgetExceededError):
            lines.append(overflow_line("call", ended.message, timestamp=timestamp, recipe=recipe.name))
        yield from (structs.replace(line, **turn) for line in lines)
        reply = ended if isinstance(ended, Reply) else None
        is_away = isinstance(ended, ModelAwayError)
        yield structs.replace(
            self.writer.log_line(timestamp, was_away=is_away),
            latency_ms=None if is_away else round(seconds * 1000),
            outcome=AWAY if is_away else "done" if reply else "failed",
            success=reply is not None,
            schema_valid=None if is_away else reply is not None,
            confidence=reply.confidence if reply else None,
            gate=reply.gate if reply else None,
            retries=max(0, self.attempts - 1),
            compression_applied=bool(self.cuts),
            compression_savings=sum(cut.before_tokens - cut.after_tokens for cut in self.cuts),
        )


def passage_rewriter(
    executor: RecipeExecutor, kind: ContentType, query: str, journal: Journal
) -> Rewrite | None:
    """
    What words passages of a document anew, by the recipe of its type; None where that recipe's model does not
    write. The calls do not count as executions of the turn. Once its model is away, it is not asked again.
    """
    key = executor.book.key_for(STEPS[kind], "chat")
    if not executor.writes(key):
        return None
    name = executor.book.load_recipe(key).input_docs[0]
    away: list[TryAgainError] = []

    @cache  # a retry of the call words the same passages
    def rewrite(passage: str, tokens: int) -> str:
        if away:
            raise away[0]
        documents = [InputDocument(name, passage, protected=True)]
        request = Request(query, documents, variables={"target_tokens": str(tokens)})
        try:
            return str(executor.execute(key, request, journal).values["text"])
        except TryAgainError as exc:
            away.append(exc)
            raise

    return rewrite
