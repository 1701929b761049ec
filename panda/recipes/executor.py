"""
The recipe executor (S3 §15): the only caller of a model.

One execution: fit the inputs, build the prompt, let the model write the text properties (if it writes) and
score the choices, fill templates, check the reply, retry with the error, log. What a model cannot do it is
not asked to do: a model that does not write leaves text to the recipe's templates, a model that cannot score
chooses by generation under the schema, without a confidence.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from panda.compression.fitting import Cut, InputDocument
from panda.compression.limits import Limits
from panda.documents.times import Clock, render_time
from panda.errors import GateError, HaltError, ReplyError
from panda.models.contract import GenerateParams, Message, Model
from panda.recipes.book import RecipeBook
from panda.recipes.choices import Choice, written_choice
from panda.recipes.evidence_gate import find_unlinked
from panda.recipes.executions import Ran, execution_lines
from panda.recipes.journal import CallWriter, Journal
from panda.recipes.pack import Request, build_messages
from panda.recipes.recipe import Recipe
from panda.recipes.reply import Reply, find_fault, parse_object
from panda.recipes.room import fit_request
from panda.recipes.schemas import ChoiceSpec, choice_specs, plain_schema, text_properties
from panda.recipes.scoring import ChoiceScorer, Memo
from panda.recipes.templates import fill_templates, replaced_texts, template_sources, without_replaced

__all__ = ["Layers", "RecipeExecutor", "Reply"]


class Layers(Protocol):
    """Gives the model of a layer, and frees what of it was loaded on demand."""

    def model(self, layer: str) -> Model: ...
    def release(self, layer: str) -> None: ...


class RecipeExecutor:
    """
    Executes recipes.

    Args:
        book: Recipes and prompts.
        layers: Models by layer.
        clock: The present.
        log: Takes one line of the executions log.
        count: Maps a text to budget tokens.
        limits: What the user has set of how inputs are fitted.
    """

    def __init__(
        self,
        book: RecipeBook,
        layers: Layers,
        *,
        clock: Clock,
        log: Callable[[Mapping[str, object]], None],
        count: Callable[[str], int],
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.book = book
        self._layers = layers
        self._clock = clock
        self._log = log
        self._count = count
        self._memo = Memo()

    def writes(self, key: str) -> bool:
        """Whether the model of a recipe writes text."""
        return self._layers.model(self.book.load_recipe(key).model_layer).info.writes

    def execute(self, key: str, request: Request, journal: Journal) -> Reply:
        """
        Run one recipe and give its checked reply.

        Args:
            key: Recipe name, e.g. "pipeline/phase1_reflection".
            request: Query, documents, options.
            journal: The turn's record of calls.

        Raises:
            BudgetExceededError: The protected inputs do not fit.
            ReplyError: The reply stayed invalid after all retries.
            ModelTimeoutError: A call took too long.
            GateError: Below the confidence threshold, and the recipe halts then.
        """
        recipe = self.book.load_recipe(key)
        execution = _Execution(self, recipe, request, journal)
        started = time.monotonic()
        try:
            reply = execution.run()
        except HaltError as exc:
            self._write_log(execution, time.monotonic() - started, exc)
            raise
        finally:
            self._layers.release(recipe.model_layer)
        self._write_log(execution, time.monotonic() - started, reply)
        return reply

    def decide(self, key: str, name: str, request: Request, journal: Journal) -> Choice:
        """
        Make one choice of a recipe, that of the property *name*, as an execution would: for measuring.

        Raises:
            HaltError: A call failed.
        """
        self._memo.clear()
        return _Execution(self, self.book.load_recipe(key), request, journal).decide(name)

    def scorer(
        self, key: str, name: str, request: Request | None, journal: Journal
    ) -> tuple[ChoiceScorer, ChoiceSpec]:
        """What makes one choice of a recipe, and the choice: for tuning."""
        execution = _Execution(self, self.book.load_recipe(key), request or Request(""), journal)
        return execution.scorer, next(spec for spec in execution.specs if spec.name == name)

    def _write_log(self, made: "_Execution", seconds: float, ended: Reply | HaltError) -> None:
        ran = Ran(made.recipe, made.journal, made.writer, seconds, made.attempts, made.cuts, ended)
        for line in execution_lines(ran, timestamp=render_time(self._clock())):
            self._log(line)


class _Execution:
    """One execution of one recipe: attempts until a reply passes."""

    def __init__(self, executor: RecipeExecutor, recipe: Recipe, request: Request, journal: Journal) -> None:
        self.executor = executor
        self.recipe = recipe
        self.request = request
        self.journal = journal
        self.model = executor._layers.model(recipe.model_layer)
        texts = [executor.book.load_prompt(name, where=str(recipe.path)) for name in recipe.prompt_files]
        self.prompt = recipe.system_prompt if recipe.system_prompt is not None else "\n\n".join(texts)
        self.specs = choice_specs(recipe.output_schema, path=recipe.path)
        self.texts = text_properties(recipe.output_schema)
        self.sources = template_sources(recipe) if self.model.info.writes else set()
        self.optional = self.sources if self.model.info.writes else set(replaced_texts(recipe))
        self.shown = without_replaced(recipe, request) if self.model.info.writes else request
        self.cuts: list[Cut] = []
        self.attempts = 0
        self.writer = CallWriter(journal, recipe, executor.book.prompts_of(recipe.key), self.model.info)
        self.scorer = ChoiceScorer(executor.book, recipe, self.model, executor._memo, journal, self.writer)

    def run(self) -> Reply:
        gates = self.recipe.quality_gates
        error: str | None = None
        received: str | None = None
        for _ in range(gates.max_retries + 1):
            self.journal.count_execution(self.recipe.key)
            self.attempts += 1
            messages = self._messages(error)
            received, reply, error = self._attempt(messages)
            if reply is not None and self._gate_passes(reply):
                return reply
            error = error or f"the confidence of the reply is below {gates.confidence_threshold}"
        raise ReplyError(
            f"{self.recipe.key}: no valid reply in {self.attempts} attempts: {error}",
            where=str(self.recipe.path),
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
                where=f"{self.recipe.path} (quality_gates)",
                expected=f"a confidence of at least {gates.confidence_threshold}",
                received=str(reply.confidence),
            )
        return False

    def _messages(self, error: str | None) -> Sequence[Message]:
        """The messages of an attempt; scorers with prompts of their own see no documents: none is cut."""

        def build(documents: Sequence[InputDocument]) -> Sequence[Message]:
            asked = self._asked()
            return build_messages(self.recipe, self.prompt, self.shown, documents, error=error, asked=asked)

        if not self._asks_with_messages():
            return build(self.request.documents)
        count, limits = self.executor._count, self.executor.limits
        documents, self.cuts = fit_request(
            self.recipe, self.shown, self.model, build=build, count=count, limits=limits
        )
        return build(documents)

    def _asked(self) -> tuple[str, ...]:
        """Properties that the prompt shows: what the model writes, or else what it chooses."""
        info = self.model.info
        written = self.texts if info.writes else ()
        if written and info.scores:
            return written
        return (*written, *(spec.name for spec in self.specs if spec.name not in self.sources))

    def _asks_with_messages(self) -> bool:
        text = bool(self.texts) or self.recipe.output_format != "json"
        writes = self.model.info.writes and text
        labels = any(step.scorer == "label" and step.scores for spec in self.specs for step in spec.steps)
        return writes or labels or not self.model.info.scores

    def _attempt(self, messages: Sequence[Message]) -> tuple[str | None, Reply | None, str | None]:
        """One attempt: what the model said, the reply if it passed, and else why it did not."""
        info, recipe = self.model.info, self.recipe
        specs = [spec for spec in self.specs if spec.name not in self.sources]
        written = self.texts if info.writes else ()
        drawn = [spec for spec in specs if not info.scores and self._has_options(spec)]
        names = [*written, *(spec.name for spec in drawn)]
        values: dict[str, Any] = {}
        choices: dict[str, Choice] = {}
        received: str | None = None
        if recipe.output_format != "json" and info.writes:
            received, error = self._generate(messages, None)
            values["text"] = received
        elif names:
            received, error = self._generate(messages, names)
            if error is None:
                values, error = parse_object(received)
            error = error or self._fault(values, names)
        else:
            error = None
        if error:
            return received, None, error
        for spec in specs if info.scores else ():
            choices[spec.name] = self._choose(spec, lambda: messages)
        for spec in specs if not info.scores else ():
            if spec.name in values or spec.many:  # a subset of no options is empty
                choices[spec.name] = written_choice(spec, values.get(spec.name, []))
        for name, choice in choices.items():
            if choice.value is not None:
                values[name] = list(choice.value) if isinstance(choice.value, tuple) else choice.value
        if not info.writes:
            values |= fill_templates(recipe, self.request, choices, values)
        error = self._fault(values, None) or find_unlinked(recipe, self.request, values)
        if error:
            return json.dumps(values, ensure_ascii=False), None, error
        return received, self._reply(values, choices), None

    def _has_options(self, spec: ChoiceSpec) -> bool:
        return bool(spec.values or self.request.options.get(spec.name))

    def _generate(self, messages: Sequence[Message], names: Sequence[str] | None) -> tuple[str, str | None]:
        recipe = self.recipe
        schema = None
        if names is not None:
            schema = plain_schema(recipe.output_schema, only=names, options=self._ids())
        params = GenerateParams(
            temperature=recipe.temperature,
            max_tokens=recipe.token_budget.output,
            seed=self.journal.seed(recipe.key, self.attempts),
            timeout_seconds=recipe.quality_gates.timeout_ms / 1000,
            schema=schema,
        )
        digest = self.model.info.digest
        recorded = self.journal.recordings.completion(recipe.key, digest, messages, params)
        completion = recorded or self.model.generate(messages, params)
        self.writer.write_generate(messages, params, completion, self.attempts)
        if completion.finish_reason == "length":
            return completion.text, f"the reply was cut after {params.max_tokens} tokens; be shorter"
        return completion.text, None

    def _choose(self, spec: ChoiceSpec, messages: Callable[[], Sequence[Message]]) -> Choice:
        """One choice; the messages are made only if a scorer reads them."""
        return self.scorer.choose(
            spec, self.request, lambda: self.model.render_chat(messages()), self.attempts
        )

    def decide(self, name: str) -> Choice:
        """The choice of one property alone."""
        self.attempts += 1
        spec = next(spec for spec in self.specs if spec.name == name)
        return self._choose(spec, lambda: self._messages(None))

    def _fault(self, values: Mapping[str, Any], names: Sequence[str] | None) -> str | None:
        """What is wrong with the values so far; with names, those properties alone are looked at."""
        if not self.recipe.quality_gates.schema_validation or not self.recipe.output_schema:
            return None
        schema = plain_schema(self.recipe.output_schema, only=names, options=self._ids())
        return find_fault(values, schema, optional=sorted(self.optional))

    def _ids(self) -> dict[str, list[str]]:
        return {name: [option.id for option in options] for name, options in self.request.options.items()}

    def _reply(self, values: Mapping[str, Any], choices: Mapping[str, Choice]) -> Reply:
        deciding = [spec.name for spec in self.specs if spec.values]
        made = choices.get(deciding[-1]) if deciding else None
        threshold = self.recipe.quality_gates.confidence_threshold
        confidence = made.confidence if made else None
        below = threshold is not None and (confidence is None or confidence < threshold)
        return Reply(self.recipe, values, choices, confidence, below, self.attempts, tuple(self.cuts))
