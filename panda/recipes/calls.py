"""The model calls of a turn: one line of calls.jsonl each, and the answers that such lines give again."""

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from msgspec import UNSET, structs

from panda.compression.fit import Cut
from panda.documents.safe_text import count_noun
from panda.errors import HaltError
from panda.models.cl100k import count_tokens
from panda.models.model_contract import (
    Completion,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    TokenLogprob,
    Usage,
)
from panda.recipes.recipe_file import Recipe
from panda.store import records
from panda.store.files import render_json
from panda.store.layout import turn_name
from panda.store.records import (
    ChoiceCall,
    Execution,
    GeneratedCall,
    ModelCall,
    OfflineCall,
    Prefix,
    Step,
    TokenCounts,
)

_T = TypeVar("_T")
_SHOWN_LINES = 40
_TAIL = 400
_NOTHING_ASKED = "rules"  # method of an execution for which nothing was asked


Cause = Literal["recipe changed", "asked otherwise", "not recorded", "behaves otherwise since"]


@dataclass(frozen=True)
class Miss:
    """A call that no recording answers, because what it asks has changed."""

    recipe: str  # the recipe, or the tool
    kind: str  # generate, choose, offline or tool
    difference: str  # unified diff from the nearest recorded prompt to the present one
    cause: Cause = "asked otherwise"


@dataclass(frozen=True)
class Asker:
    """Who asks for a recorded answer."""

    recipe: str  # key of the recipe
    version: str  # digest of its file and prompts


class Recordings:
    """
    The answers in the lines of a calls.jsonl, in order, looked up by exactly what was asked; a prefix is
    spelt out where it first occurs.
    """

    def __init__(self, calls: Sequence[ModelCall]) -> None:
        self._prefixes: dict[str, str] = {}
        self._scores: dict[tuple[str, str, str, str], tuple[float, int]] = {}
        self._completions: dict[str, Completion] = {}
        self._calls = list(calls)
        for call in calls:
            self._take(call)

    def score(self, asker: Asker, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int] | None:
        """Log-probability and number of tokens of a continuation, if it was scored before."""
        return self._scores.get((digest, prefix, case.context, case.continuation))

    def compare_offline(self, asker: Asker, call: OfflineCall) -> None:
        """Note where the program itself replies otherwise than was recorded."""

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step | None:
        """
        Return the recorded step of the same call of a tool that reaches outside the store; None if it is to
        be made.
        """
        return None

    def completion(
        self, asker: Asker, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion | None:
        """The completion of the same messages with the same parameters, if one was made before."""
        asked = [(m.role, m.content, *(picture.sha256 for picture in m.pictures)) for m in messages]
        return self._completions.get(_key(digest, asked, vars(params)))

    def _take(self, call: ModelCall) -> None:
        if isinstance(call, OfflineCall):
            return
        parts = [call.prefix] if isinstance(call, ChoiceCall) else call.messages
        for part in parts:
            if part.sha256 and part.content:
                self._prefixes[part.sha256] = part.content
        digest = str(call.hashes["model"])
        if isinstance(call, ChoiceCall):
            prefix = self._text(call.prefix)
            for option in call.options:
                key = (digest, prefix, option.context, option.continuation)
                self._scores[key] = (option.logprob, option.tokens)
        else:
            asked = [(part.role, self._text(part), *part.pictures) for part in call.messages]
            self._completions[_key(digest, asked, call.parameters)] = _completion(call)

    def _text(self, part: Prefix | records.MessageRecord) -> str:
        return part.content or self._prefixes.get(part.sha256 or "", "")


class LiveOnMiss(Recordings):
    """
    Recordings that note what they cannot answer, and leave it to the model or the tool. *steps* are the tool
    calls of the turn, as its steps/ hold them; each answers once.
    """

    answers_all = False

    def __init__(self, calls: Sequence[ModelCall], steps: Sequence[Step] = ()) -> None:
        super().__init__(calls)
        self.misses: list[Miss] = []
        self.restore: Callable[[Step], None] = lambda step: None
        """Told of a recorded step that answers, to bring back the files that it made."""
        self._steps = list(steps)
        self._versions: dict[str, set[str | None]] = {}
        self._offline: dict[str, list[OfflineCall]] = {}
        for call in calls:
            if isinstance(call, OfflineCall):
                self._offline.setdefault(call.recipe, []).append(call)
            self._versions.setdefault(call.recipe, set()).add(call.hashes.get("version"))

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step | None:
        for place, step in enumerate(self._steps):
            if (step.tool, step.arguments) == (tool, arguments):
                self.restore(step)
                return self._steps.pop(place)
        self.misses.append(Miss(tool, "tool", f"+{json.dumps(arguments, ensure_ascii=False)}"))
        return None

    def compare_offline(self, asker: Asker, call: OfflineCall) -> None:
        recorded = self._offline.get(call.recipe)
        if not recorded:
            return  # recorded before such replies were, or by a model
        before = recorded.pop(0)
        if before.reply != call.reply:
            texts = [render_json(reply).splitlines() for reply in (before.reply, call.reply)]
            difference = difflib.unified_diff(texts[0], texts[1], "recorded", "now", lineterm="", n=1)
            is_asked_alike = before.hashes.get("inputs") == call.hashes.get("inputs")
            behaves_alike = before.behaviour == call.behaviour
            cause: Cause = "behaves otherwise since"
            if behaves_alike and not is_asked_alike:
                cause = "asked otherwise"
            self.misses.append(Miss(asker.recipe, "offline", "\n".join(difference), cause))

    def score(self, asker: Asker, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int] | None:
        recorded_score = super().score(asker, digest, prefix, case)
        if recorded_score is not None:
            return recorded_score
        choices = (call for call in self._calls if isinstance(call, ChoiceCall))
        candidates = (
            (
                f"{self._text(call.prefix)}{option.context}{option.continuation}",
                (option.logprob, option.tokens),
            )
            for call in choices
            if call.recipe == asker.recipe
            for option in call.options
        )
        return self._miss(asker, "choose", f"{prefix}{case.context}{case.continuation}", candidates)

    def completion(
        self, asker: Asker, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion | None:
        recorded_completion = super().completion(asker, digest, messages, params)
        if recorded_completion is not None:
            return recorded_completion
        texts = (call for call in self._calls if isinstance(call, GeneratedCall))
        candidates = (
            ("\n".join(self._text(part) for part in call.messages), replace(_completion(call), reasoning=""))
            for call in texts
            if call.recipe == asker.recipe
        )
        asked = "\n".join(message.content for message in messages)
        return self._miss(asker, "generate", asked, candidates)

    def _miss(self, asker: Asker, kind: str, asked: str, candidates: Iterable[tuple[str, _T]]) -> _T | None:
        """Notes a miss and how it differs from the nearest recorded call; that one's answer, if it counts."""

        def likeness(candidate: tuple[str, _T]) -> float:
            return difflib.SequenceMatcher(None, candidate[0][-600:], asked[-600:], autojunk=False).ratio()

        versions = self._versions.get(asker.recipe)
        cause: Cause = "asked otherwise" if versions else "not recorded"
        if versions and asker.version not in versions:
            cause = "recipe changed"
        best = max(candidates, key=likeness, default=None) if self.answers_all else None
        sides = (best[0] if best else "").splitlines(), asked.splitlines()
        diff_lines = list(difflib.unified_diff(*sides, "recorded", "now", lineterm="", n=1))
        shown_lines = diff_lines[:_SHOWN_LINES]
        if len(diff_lines) > _SHOWN_LINES:
            shown_lines.append(f"[…] {count_noun(len(diff_lines) - _SHOWN_LINES, 'more line')}")
        difference = "\n".join(shown_lines) if self.answers_all else f"+{asked[-_TAIL:]}"
        self.misses.append(Miss(asker.recipe, kind, difference, cause))
        if best is None and self.answers_all:
            raise HaltError(
                f"{asker.recipe}: no call of this recipe is recorded",
                where=asker.recipe,
                fix="the turn did not ask this recipe when it was recorded; record it anew",
            )
        return best[1] if best else None


class Replay(LiveOnMiss):
    """
    Recordings that answer everything: what was not asked before is a miss, answered by the nearest recording
    of the same recipe so that all misses of a turn come to light; a tool that was not called fails.
    """

    answers_all = True

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step:
        return super().step(tool, arguments) or Step(
            step=1,
            plan=0,
            round=1,
            goal=None,
            tool=tool,
            kind=None,
            arguments=dict(arguments),
            note=None,
            conclusion=None,
            status="error",
            error="this call is not recorded",
        )


def _key(digest: str, messages: Sequence[tuple[str, ...]], params: Mapping[str, Any]) -> str:
    relevant_params = {name: value for name, value in params.items() if name != "timeout_seconds"}
    return json.dumps([digest, list(messages), relevant_params], sort_keys=True, ensure_ascii=False)


def _completion(call: GeneratedCall) -> Completion:
    usage = Usage(**structs.asdict(call.usage))
    return Completion(
        call.output,
        call.finish_reason,
        usage,
        call.seconds,
        reasoning=call.reasoning or "",
        repairs=call.repairs or (),
        logprobs=tuple(TokenLogprob(**structs.asdict(token)) for token in call.logprobs or ()),
    )


class Journal(Protocol):
    """A turn's record of its calls, as the executor needs it."""

    @property
    def user_id(self) -> str: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def turn(self) -> int: ...
    @property
    def phase(self) -> int | None:
        """The phase that runs; None for work outside a turn."""

    @property
    def recordings(self) -> Recordings:
        """Answers that need not be asked for again."""

    def seed(self, recipe: str, attempt: int) -> int:
        """Seed of one attempt, the same whenever the turn is run again."""

    def count_execution(self, recipe: str) -> None:
        """Count one recipe execution; raises HaltError past the most a turn may have."""

    def add_call(self, call: ModelCall) -> None:
        """Append one line to calls.jsonl; the journal numbers it."""

    def knows_prefix(self, digest: str) -> bool:
        """Return whether a prefix was written down before; from now on it counts as written."""


@dataclass(frozen=True)
class NoTurn:
    """A journal for calls outside of a turn: nothing is written down and nothing is counted."""

    user_id: str = "eval"
    session_id: str | None = "eval"
    turn: int = 0
    phase: int | None = None
    recordings: Recordings = field(default_factory=lambda: Recordings(()))

    def seed(self, recipe: str, attempt: int) -> int:
        return attempt - 1

    def count_execution(self, recipe: str) -> None:
        """There is no limit."""

    def add_call(self, call: ModelCall) -> None:
        """Dropped."""

    def knows_prefix(self, digest: str) -> bool:
        """Nothing is written down, so nothing need be spelt out."""
        return True


class CallWriter:
    """Writes the calls of one execution, one line of calls.jsonl each, and adds up their tokens."""

    def __init__(
        self, journal: Journal, recipe: Recipe, prompts: Mapping[str, str], model: ModelInfo | None
    ) -> None:
        self.asker = Asker(recipe.key, recipe_digest(recipe.text, prompts))
        self.totals = Usage(0, 0, 0)
        self.sent: Sequence[Message] = ()  # the messages of the last attempt
        self.cuts: Sequence[Cut] = ()  # what was taken from the documents of the last attempt
        self._journal = journal
        self._recipe = recipe
        self._model = model
        self._hashes = {
            "recipe": text_digest(recipe.text),
            "prompts": text_digest(json.dumps(sorted(prompts.items()), ensure_ascii=False)),
            "schema": text_digest(json.dumps(recipe.output_schema, sort_keys=True, default=str)),
            "version": self.asker.version,
        }
        self._asked: dict[str, ModelInfo | None] = {}  # model that answered last, by kind of call

    def write_generate(
        self,
        messages: Sequence[Message],
        params: GenerateParams,
        completion: Completion,
        attempt: int,
        lenient: Sequence[str] = (),
        logprobs: Sequence[TokenLogprob] = (),
    ) -> None:
        """
        Write down one completion; *lenient* names the properties whose faults refuse no reply, *logprobs* are
        the tokens of the value that decides.
        """
        assert self._model is not None, "an offline layer generates nothing"
        line = GeneratedCall(
            **self._common("generate", attempt, completion.usage, completion.seconds),
            messages=tuple(map(self._message, messages)),
            parameters={**vars(params)},
            output=completion.text,
            finish_reason=completion.finish_reason,
            lenient=tuple(lenient) or UNSET,
            reasoning=completion.reasoning or UNSET,
            repairs=completion.repairs or UNSET,
            logprobs=tuple(records.TokenProbability(**vars(token)) for token in logprobs) or UNSET,
        )
        self._journal.add_call(line)

    def write_probability(
        self,
        name: str,
        prefix: str,
        value: records.OptionRecord,
        *,
        usage: Usage,
        seconds: float,
        attempt: int,
    ) -> None:
        """Write down how probable the value of a property was where it was written."""
        line = ChoiceCall(
            **self._common("choose", attempt, usage, seconds),
            property=name,
            prefix=Prefix(**self._prefix(str(prefix))),  # a rendered chat is more than a text
            options=(value,),
        )
        self._journal.add_call(line)

    def write_offline(
        self,
        values: Mapping[str, Any],
        *,
        inputs_digest: str,
        weights_digest: str,
        behaviour: int,
        seconds: float,
        attempt: int,
    ) -> None:
        """Write down a reply that the program gave itself; digests are hex sha256."""
        line = OfflineCall(
            **self._common("offline", attempt, Usage(0, 0, 0), seconds),
            behaviour=behaviour,
            reply=dict(values),
        )
        line = structs.replace(
            line, hashes={**line.hashes, "inputs": inputs_digest, "weights": weights_digest}
        )
        self._journal.recordings.compare_offline(self.asker, line)
        self._journal.add_call(line)

    def log_line(self, timestamp: str, *, was_away: bool) -> Execution:
        """A line of the executions log that says recipe, models, turn and tokens (S3 §27)."""
        if was_away and self._model is not None:
            self._asked.setdefault("generate", self._model)
        models = {model.name: model.digest for model in self._asked.values() if model}
        return Execution(
            timestamp=timestamp,
            recipe=self._recipe.name,
            key=self._recipe.key,
            version=self.asker.version,
            phase=self._journal.phase,
            model_layer=self._recipe.model_layer,
            method="+".join(self._asked) or _NOTHING_ASKED,
            model="+".join(models) or None,
            model_digest="+".join(models.values()) or None,
            **whose_turn(self._journal),
            tokens=count_totals(self.totals, self.sent),
        )

    def _common(self, kind: str, attempt: int, usage: Usage, seconds: float) -> dict[str, Any]:
        self._asked[kind] = self._model
        self.totals += usage
        return {
            "n": 1,  # the journal numbers it
            "phase": self._journal.phase,
            "recipe": self._recipe.key,
            "attempt": attempt,
            "layer": self._recipe.model_layer,
            "model": self._model.name if self._model else UNSET,
            "hashes": {**self._hashes, "model": self._model.digest if self._model else None},
            "usage": records.UsageRecord(**vars(usage)),
            "seconds": round(seconds, 4),
        }

    def _message(self, message: Message) -> records.MessageRecord:
        content = self._prefix(message.content) if message.role == "system" else {"content": message.content}
        pictures = tuple(picture.sha256 for picture in message.pictures)
        return records.MessageRecord(message.role, **content, pictures=pictures)

    def _prefix(self, text: str) -> dict[str, str]:
        digest = text_digest(text)
        is_known = self._journal.knows_prefix(digest)
        return {"sha256": digest} if is_known else {"sha256": digest, "content": text}


def count_totals(usage: Usage, sent: Sequence[Message] = ()) -> TokenCounts:
    """
    Return the counts of tokens read and written; of messages as prompt and input, by their budget tokens,
    else as input.
    """
    read = usage.prompt
    output = usage.output
    fixed = 0
    if read and sent:
        system, *others = [count_tokens(message.content) for message in sent]
        fixed = round(read * system / (system + sum(others)))
    total = None if read is None or output is None else read + output
    return TokenCounts(read and fixed, read and read - fixed, usage.reused, output, total)


def whose_turn(journal: Journal) -> dict[str, Any]:
    """Return user, session and turn as a line of the executions log has them; null without a turn."""
    turn_id = turn_name(journal.turn) if journal.turn else None
    return {"user_id": journal.user_id, "session_id": journal.session_id, "turn_id": turn_id}


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def recipe_digest(text: str, prompts: Mapping[str, str]) -> str:
    """
    Return the digest of a version of a recipe: sha256 of its file and of every prompt that it names, hex.
    """
    return text_digest(json.dumps([text, sorted(prompts.items())], ensure_ascii=False))
