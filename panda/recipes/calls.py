"""The model calls of a turn: one line of calls.jsonl each, and the answers that such lines give again."""

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from msgspec import structs

from panda.choosing.ask import Pass
from panda.errors import HaltError
from panda.models.contract import Completion, GenerateParams, Message, ModelInfo, ScoreCase, Usage
from panda.recipes.recipe import Recipe
from panda.store import records
from panda.store.layout import turn_name
from panda.store.records import ChoiceCall, GeneratedCall, ModelCall, Prefix, Step

_T = TypeVar("_T")
_SHOWN_LINES = 40
_TAIL = 400
_RULES = "rules"  # method of an execution for which no model was asked


@dataclass(frozen=True)
class Miss:
    """A call that no recording answers, because what it asks has changed."""

    recipe: str  # the recipe
    kind: str  # generate or choose
    difference: str  # unified diff from the nearest recorded prompt to the present one


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

    def score(self, recipe: str, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int] | None:
        """Log-probability and number of tokens of a continuation, if it was scored before."""
        return self._scores.get((digest, prefix, case.context, case.continuation))

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step | None:
        """What the same call of a tool that reaches outside the store gave before; None: it is to be made."""
        return None

    def completion(
        self, recipe: str, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion | None:
        """The completion of the same messages with the same parameters, if one was made before."""
        asked = [(m.role, m.content, *(picture.sha256 for picture in m.pictures)) for m in messages]
        return self._completions.get(_key(digest, asked, vars(params)))

    def _take(self, call: ModelCall) -> None:
        for part in [call.prefix] if isinstance(call, ChoiceCall) else call.messages:
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

    def _text(self, part: Prefix | records.Message) -> str:
        return part.content or self._prefixes.get(part.sha256 or "", "")


class LiveOnMiss(Recordings):
    """
    Recordings that note what they cannot answer, and leave it to the model or the tool. *steps* are the tool
    calls of the turn, as its steps/ hold them; each answers once.
    """

    def __init__(self, calls: Sequence[ModelCall], steps: Sequence[Step] = ()) -> None:
        super().__init__(calls)
        self.misses: list[Miss] = []
        self.restore: Callable[[Step], None] = lambda step: None
        """Told of a recorded step that answers, to bring back the files that it made."""
        self._steps = list(steps)

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step | None:
        for place, step in enumerate(self._steps):
            if (step.tool, step.arguments) == (tool, arguments):
                self.restore(step)
                return self._steps.pop(place)
        self.misses.append(Miss(tool, "tool", f"+{json.dumps(arguments, ensure_ascii=False)}"))
        return None

    def score(self, recipe: str, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int] | None:
        found = super().score(recipe, digest, prefix, case)
        if found is None:
            self.misses.append(Miss(recipe, "choose", f"+{prefix}{case.context}{case.continuation}"[-_TAIL:]))
        return found

    def completion(
        self, recipe: str, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion | None:
        found = super().completion(recipe, digest, messages, params)
        if found is None:
            self.misses.append(Miss(recipe, "generate", f"+{messages[-1].content}"[-_TAIL:]))
        return found


class Replay(LiveOnMiss):
    """
    Recordings that answer everything: what was not asked before is a miss, answered by the nearest recording
    of the same recipe so that all misses of a turn come to light; a tool that was not called fails.
    """

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

    def score(self, recipe: str, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int]:
        found = Recordings.score(self, recipe, digest, prefix, case)
        if found is not None:
            return found
        asked = f"{prefix}{case.context}{case.continuation}"
        candidates = [
            (f"{self._text(call.prefix)}{option.context}{option.continuation}", option)
            for call in self._calls
            if isinstance(call, ChoiceCall) and call.recipe == recipe
            for option in call.options
        ]
        option = self._nearest(recipe, "choose", asked, candidates)
        return option.logprob, option.tokens

    def completion(
        self, recipe: str, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion:
        found = Recordings.completion(self, recipe, digest, messages, params)
        if found is not None:
            return found
        candidates = [
            ("\n".join(self._text(part) for part in call.messages), call)
            for call in self._calls
            if isinstance(call, GeneratedCall) and call.recipe == recipe
        ]
        asked = "\n".join(message.content for message in messages)
        return replace(_completion(self._nearest(recipe, "generate", asked, candidates)), reasoning="")

    def _nearest(self, recipe: str, kind: str, asked: str, candidates: Sequence[tuple[str, _T]]) -> _T:
        def likeness(candidate: tuple[str, _T]) -> float:
            return difflib.SequenceMatcher(None, candidate[0][-600:], asked[-600:], autojunk=False).ratio()

        best = max(candidates, key=likeness, default=None)
        text = best[0] if best else ""
        sides = text.splitlines(), asked.splitlines()
        shown = list(difflib.unified_diff(*sides, "recorded", "now", lineterm="", n=1))
        more = [f"[…] {len(shown) - _SHOWN_LINES} more lines"] if len(shown) > _SHOWN_LINES else []
        self.misses.append(Miss(recipe, kind, "\n".join(shown[:_SHOWN_LINES] + more)))
        if best is None:
            raise HaltError(
                f"{recipe}: no call of this recipe is recorded",
                where=recipe,
                fix="the turn did not ask this recipe when it was recorded; record it anew",
            )
        return best[1]


def _key(digest: str, messages: Sequence[tuple[str, ...]], params: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in params.items() if name != "timeout_seconds"}
    return json.dumps([digest, list(messages), kept], sort_keys=True, ensure_ascii=False)


def _completion(call: GeneratedCall) -> Completion:
    usage = Usage(**structs.asdict(call.usage))
    return Completion(call.output, call.finish_reason, usage, call.seconds, call.reasoning or "")


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

    def add_call(self, record: Mapping[str, object]) -> None:
        """Append one line to calls.jsonl; the journal numbers it."""

    def knows_prefix(self, digest: str) -> bool:
        """Whether a prefix was written down before; from now on it counts as written."""


@dataclass(frozen=True)
class NoTurn:
    """A journal for calls outside of a turn: nothing is written down and nothing is counted."""

    user_id: str = "eval"
    session_id: str | None = "eval"
    first_seed: int | None = None  # without one choices draw nothing
    turn: int = 0
    phase: int | None = None
    recordings: Recordings = field(default_factory=lambda: Recordings(()))

    def seed(self, recipe: str, attempt: int) -> int:
        return 0 if self.first_seed is None else self.first_seed + attempt

    def count_execution(self, recipe: str) -> None:
        """There is no limit."""

    def add_call(self, record: Mapping[str, object]) -> None:
        """Dropped."""

    def knows_prefix(self, digest: str) -> bool:
        """Nothing is written down, so nothing need be spelt out."""
        return True


class CallWriter:
    """Writes the calls of one execution, one line of calls.jsonl each, and adds up their tokens."""

    def __init__(
        self, journal: Journal, recipe: Recipe, prompts: Mapping[str, str], model: ModelInfo
    ) -> None:
        self._journal = journal
        self._recipe = recipe
        self._model = model
        self._hashes = {
            "recipe": text_digest(recipe.text),
            "prompts": text_digest(json.dumps(sorted(prompts.items()), ensure_ascii=False)),
            "schema": text_digest(json.dumps(recipe.output_schema, sort_keys=True, default=str)),
            "model": model.digest,
            "version": recipe_digest(recipe.text, prompts),
        }
        self.totals = Usage(0, 0, 0)
        self._kinds: dict[str, None] = {}

    def write_generate(
        self,
        messages: Sequence[Message],
        params: GenerateParams,
        completion: Completion,
        attempt: int,
        lenient: Sequence[str] = (),
    ) -> None:
        """Write down one completion; *lenient* names the properties whose faults refuse no reply."""
        record = {
            "parameters": {**vars(params)},
            "messages": [self._message(message) for message in messages],
            "output": completion.text,
            "finish_reason": completion.finish_reason,
        }
        if lenient:
            record["lenient"] = list(lenient)
        if completion.reasoning:
            record["reasoning"] = completion.reasoning
        self._write("generate", record, completion.usage, completion.seconds, attempt, self._model)

    def write_choose(self, name: str, made: Pass, attempt: int) -> None:
        """Write down one scoring pass of a property."""
        options = [
            {
                "context": case.context,
                "continuation": case.continuation,
                "logprob": value,
                "tokens": count,
                **({"known": True} if known else {}),
            }
            for case, (value, count), known in zip(made.cases, made.found, made.known, strict=True)
        ]
        record = {"property": name, "prefix": self._prefix(made.prefix), "options": options}
        self._write("choose", record, made.usage, made.seconds, attempt, made.by)

    def log_fields(self, *, was_away: bool) -> dict[str, object]:
        """What a line of the executions log says of recipe, model, turn and tokens (S3 §27)."""
        if was_away:  # only a server is, and that writes
            self._kinds.setdefault("generate")
        return {
            "recipe": self._recipe.name,
            "key": self._recipe.key,
            "version": self._hashes["version"],
            "phase": self._journal.phase,
            "model_layer": self._recipe.model_layer,
            "method": "+".join(self._kinds) or _RULES,
            "model": self._model.name if self._kinds else None,
            "model_digest": self._model.digest if self._kinds else None,
            **whose_turn(self._journal),
            "tokens": token_fields(self.totals),
        }

    def _write(
        self,
        kind: str,
        record: Mapping[str, object],
        usage: Usage,
        seconds: float,
        attempt: int,
        by: ModelInfo,
    ) -> None:
        self._kinds.setdefault(kind)
        self._journal.add_call(
            {
                "phase": self._journal.phase,
                "recipe": self._recipe.key,
                "attempt": attempt,
                "kind": kind,
                "layer": self._recipe.model_layer,
                "model": by.name,
                "hashes": {**self._hashes, "model": by.digest},
                **record,
                "usage": {**vars(usage)},
                "seconds": round(seconds, 4),
            }
        )
        self.totals += usage

    def _message(self, message: Message) -> dict[str, object]:
        content = self._prefix(message.content) if message.role == "system" else {"content": message.content}
        digests = [picture.sha256 for picture in message.pictures]
        return {"role": message.role, **content, **({"pictures": digests} if digests else {})}

    def _prefix(self, text: str) -> dict[str, str]:
        digest = text_digest(text)
        known = self._journal.knows_prefix(digest)
        return {"sha256": digest} if known else {"sha256": digest, "content": text}


def token_fields(usage: Usage) -> dict[str, int | None]:
    """Tokens as a line of the executions log has them."""
    prompt, output = usage.prompt, usage.output
    total = None if prompt is None or output is None else prompt + output
    return {"prompt": prompt, "reused": usage.reused, "output": output, "total": total}


def whose_turn(journal: Journal) -> dict[str, object]:
    """What a line of the executions log says of user, session and turn; no turn is null."""
    turn_id = turn_name(journal.turn) if journal.turn else None
    return {"user_id": journal.user_id, "session_id": journal.session_id, "turn_id": turn_id}


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def recipe_digest(text: str, prompts: Mapping[str, str]) -> str:
    """What a version of a recipe is known by: sha256 of its file and of every prompt that it names, hex."""
    return text_digest(json.dumps([text, sorted(prompts.items())], ensure_ascii=False))
