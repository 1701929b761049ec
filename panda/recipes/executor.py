"""
The recipe executor (S3 §15): asks what serves the recipe's layer, checks the reply, asks again with the
error, applies the gates and logs. It does not know what kind of responder replies.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import structs

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
from panda.models.model_contract import Encoder, Layers, Model
from panda.recipes.book import RecipeBook
from panda.recipes.calls import CallWriter, Journal, NoTurn, whose_turn
from panda.recipes.reply import Gate, Reply, find_fault, find_unlinked
from panda.recipes.responder import Call, RawReply, Responder
from panda.recipes.responders import Responders
from panda.recipes.schema import is_confidence, plain_schema, without_choice
from panda.steps.reply_contents import ReplyContent
from panda.steps.request import Request
from panda.steps.step_contract import R, StepContract
from panda.store.execution_log import AWAY
from panda.store.records import Execution

_Ended = Reply[Any] | HaltError | ModelAwayError


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
        self._responders = Responders(layers, encoder, book, self.limits)
        self._layers = layers
        self._clock = clock
        self._log = log

    def model(self, key: str) -> Model:
        """The model that runs a recipe."""
        return self._layers.model(self.book.load_recipe(key).model_layer)

    def responder(self, key: str, request: Request, journal: Journal) -> Responder:
        """Return what replies to calls of a recipe."""

        def rewriter(kind: ContentType) -> Rewrite | None:
            return passage_rewriter(self, kind, request.query, journal)

        return self._responders.of_layer(self.book.load_recipe(key).model_layer, rewriter)

    def unsupported(self, key: str) -> str | None:
        """Return why nothing that is set can reply to a recipe, in words; None if something can."""
        responder = self.responder(key, Request(""), NoTurn())
        return responder.unsupported(self.book.load_recipe(key), self.book.contract_of(key))

    def served_by(self, layer: str) -> str:
        """Return what answers calls of a layer, in words."""
        return self._responders.name_of(layer)

    def ask(
        self,
        contract: StepContract[R],
        request: Request,
        journal: Journal,
        *,
        mode: str = "chat",
        intent: str | None = None,
    ) -> Reply[R]:
        """Return the checked reply to a step, by the recipe that serves it. Raises as execute does."""
        return self.execute(self.book.key_for(contract.name, mode, intent), request, journal)

    def execute(self, key: str, request: Request, journal: Journal) -> Reply[Any]:
        """
        Return the checked reply of one recipe, e.g. "pipeline/phase1_reflection".

        Raises:
            BudgetExceededError: The protected inputs do not fit.
            ReplyError: The reply stayed invalid after all retries, or nothing that is set can reply.
            GateError: Its confidence is below the threshold, and the recipe halts then.
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
        """Return the log line of one compression, with the model that rewrote passages, if one did."""
        layer = model = None
        if cut.method == REWRITE:
            key = self.book.key_for(STEPS[cut.content_type], "chat")
            layer = self.book.load_recipe(key).model_layer
            model = self.model(key).info.name
        now = render_time(self._clock())
        return compressed_line(cut, timestamp=now, recipe=recipe, layer=layer, model=model)


class _Execution:
    """One execution of a recipe: it is asked, the reply checked, asked for anew, and written down."""

    def __init__(self, executor: RecipeExecutor, key: str, request: Request, journal: Journal) -> None:
        self.executor = executor
        self.request = request
        self.journal = journal
        self.recipe = executor.book.load_recipe(key)
        self.contract = executor.book.contract_of(key)
        self.responder = executor.responder(key, request, journal)
        self.attempts = 0
        self.times_cut = 0
        prompts = executor.book.prompts_of(key)
        self.writer = CallWriter(journal, self.recipe, prompts, self.responder.info)

    def run(self) -> Reply[Any]:
        recipe = self.recipe
        if reason := self.responder.unsupported(recipe, self.contract):
            raise ReplyError(
                f"{recipe.key}: {reason}",
                where=str(recipe.path),
                fix=f"give the layer {recipe.model_layer} a model in models.yaml",
                expected="a layer that serves this recipe",
                received=f"{recipe.model_layer}: offline",
            )
        error: str | None = None
        received: str | None = None
        attempts = self.responder.attempts(recipe)
        for _ in range(attempts):
            if self.contract.name not in STEPS.values():  # compression is not counted
                self.journal.count_execution(recipe.key)
            self.attempts += 1
            raw = self.responder.reply(self._call(error, is_last=self.attempts == attempts))
            received = raw.received
            self.times_cut += raw.is_cut
            values = self._completed(raw.values)
            error = (
                raw.error or self._fault(values) or find_unlinked(recipe, self.contract, self.request, values)
            )
            reply: Reply[Any] | None = None
            if error is None:
                try:
                    reply = self._reply(values, raw)
                except ValueError as exc:
                    error = str(exc)
            if reply is not None:
                if self._gate_passes(reply):
                    return reply
                error = f"the confidence of the reply is below {recipe.quality_gates.confidence_threshold}"
            elif raw.error is None and received is None:
                received = json.dumps(values, ensure_ascii=False)
        raise ReplyError(
            f"{recipe.key}: no valid reply in {self.attempts} attempts: {error}",
            where=str(recipe.path),
            fix="see calls.jsonl of the turn; change the prompt or the model, then resume the turn",
            expected="a reply that satisfies output_schema and the quality gates",
            received=received,
        )

    def _call(self, error: str | None, *, is_last: bool) -> Call:
        return Call(
            recipe=self.recipe,
            contract=self.contract,
            request=self.request,
            journal=self.journal,
            writer=self.writer,
            attempt=self.attempts,
            is_last=is_last,
            error=error,
            times_cut=self.times_cut,
        )

    def _gate_passes(self, reply: Reply[Any]) -> bool:
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

    def _completed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply with [] for lists without options, no id twice and no reported confidence."""
        properties = self.recipe.output_schema.get("properties", {})
        completed: dict[str, Any] = {
            name: [] for name in self._without_choice() if properties[name].get("type") == "array"
        }
        for name, value in values.items():
            if is_confidence(name, properties.get(name)):
                continue
            is_placed = name in self.contract.places and isinstance(value, list)
            if is_placed and all(isinstance(id_, str) for id_ in value):
                completed[name] = list(dict.fromkeys(value))
            else:
                completed[name] = value
        return completed

    def _fault(self, values: Mapping[str, Any]) -> str | None:
        """Return what breaks the schema of the recipe, or the contract; None if nothing does."""
        if not self.recipe.quality_gates.schema_validation or not self.recipe.output_schema:
            return None
        options = self.request.option_ids(self.contract)
        schema = plain_schema(self.recipe.output_schema, self.contract, options=options)
        lenient = self.contract.lenient
        try:
            return find_fault(values, schema, optional=self._optional(), lenient=lenient)
        except SchemaError as exc:
            place = Location(self.recipe.path, key="output_schema")
            raise RecipeSchemaError(exc.message, place, fix=exc.fix) from exc

    def _without_choice(self) -> frozenset[str]:
        return without_choice(
            self.recipe.output_schema, self.contract, self.request.option_ids(self.contract)
        )

    def _optional(self) -> list[str]:
        """Return the properties that a reply may lack, whatever the recipe requires."""
        return [*self.responder.optional(self.recipe, self.contract), *self._without_choice()]

    def _reply(self, values: Mapping[str, Any], raw_reply: RawReply) -> Reply[Any]:
        """Return the reply as the phase reads it. Raises ValueError: it is not what the contract says."""
        properties = self.recipe.output_schema.get("properties", {})
        threshold = self.recipe.quality_gates.confidence_threshold
        gate: Gate | None = None
        confidence = raw_reply.measure()
        if threshold is not None:
            if confidence is None:
                gate = "not_measured"
            elif confidence < threshold:
                gate = "below"
            else:
                gate = "passed"
        computed = (
            {"confidence": confidence} if is_confidence("confidence", properties.get("confidence")) else {}
        )
        return Reply(
            recipe=self.recipe,
            content=self._content(values),
            values={**computed, **values},
            confidence=confidence,
            gate=gate,
            attempts=self.attempts,
            cuts=tuple(self.writer.cuts),
        )

    def _content(self, values: Mapping[str, Any]) -> ReplyContent:
        from_text = self.contract.from_text
        content: ReplyContent
        if from_text is None or self.recipe.is_object:
            content = self.contract.read(values)
        else:
            content = from_text(str(values["text"]) if "text" in values else None)
        return content

    def log_lines(self, seconds: float, ended: "_Ended", timestamp: str) -> Iterator[Execution]:
        """
        The lines of logs/executions.jsonl that it leaves (S3 §27): one for each document that was compressed
        or did not fit, then its own.
        """
        recipe = self.recipe
        turn = whose_turn(self.journal)
        lines = [self.executor.compressed(cut, recipe.name) for cut in self.writer.cuts]
        if isinstance(ended, BudgetExceededError):
            lines.append(overflow_line("call", ended.message, timestamp=timestamp, recipe=recipe.name))
        yield from (structs.replace(line, **turn) for line in lines)
        reply = ended if isinstance(ended, Reply) else None
        is_away = isinstance(ended, ModelAwayError)
        outcome = "done" if reply else "failed"
        if is_away:
            outcome = AWAY
        yield structs.replace(
            self.writer.log_line(timestamp, was_away=is_away),
            latency_ms=None if is_away else round(seconds * 1000),
            outcome=outcome,
            success=reply is not None,
            schema_valid=None if is_away else reply is not None,
            confidence=reply.confidence if reply else None,
            gate=reply.gate if reply else None,
            retries=max(0, self.attempts - 1),
            compression_applied=bool(self.writer.cuts),
            compression_savings=sum(cut.before_tokens - cut.after_tokens for cut in self.writer.cuts),
        )


def passage_rewriter(
    executor: RecipeExecutor, kind: ContentType, query: str, journal: Journal
) -> Rewrite | None:
    """
    Return a function that rewrites passages of a document by the recipe of its type; None where that recipe's
    model does not write. The calls do not count as executions of the turn. Once its model is away, it is not
    asked again.
    """
    key = executor.book.key_for(STEPS[kind], "chat")
    if executor.unsupported(key) is not None:
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
            return str(executor.execute(key, request, journal).content.text)
        except TryAgainError as exc:
            away.append(exc)
            raise

    return rewrite
