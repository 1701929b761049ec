"""What is written down of every model call: one line of calls.jsonl each."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from panda.choosing.ask import Pass
from panda.models.contract import Completion, GenerateParams, Message, ModelInfo, Usage
from panda.recipes.recipe import Recipe
from panda.recipes.recordings import Recordings
from panda.storage.layout import turn_name


class Journal(Protocol):
    """A turn's record of its calls, as the executor needs it."""

    @property
    def user_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def turn(self) -> int: ...

    @property
    def phase(self) -> int | None:
        """The phase that runs; None for work outside a turn."""
        ...

    @property
    def recordings(self) -> Recordings:
        """Answers that need not be asked for again."""
        ...

    def seed(self, recipe: str, attempt: int) -> int:
        """Seed of one attempt, the same whenever the turn is run again."""
        ...

    def count_execution(self, recipe: str) -> None:
        """Count one recipe execution; raises HaltError past the most a turn may have."""
        ...

    def add_call(self, record: Mapping[str, object]) -> None:
        """Append one line to calls.jsonl; the journal numbers it."""
        ...

    def knows_prefix(self, digest: str) -> bool:
        """Whether a prefix was written down before; from now on it counts as written."""
        ...


@dataclass(frozen=True)
class NoTurn:
    """A journal for calls outside of a turn: nothing is written down and nothing is counted."""

    user_id: str = "eval"
    session_id: str = "eval"
    first_seed: int | None = None
    turn: int = 0
    phase: int | None = None
    recordings: Recordings = field(default_factory=lambda: Recordings(()))

    def seed(self, recipe: str, attempt: int) -> int:
        """Without a first seed always 0: choices draw nothing."""
        return 0 if self.first_seed is None else self.first_seed + attempt

    def count_execution(self, recipe: str) -> None:
        """There is no limit."""

    def add_call(self, record: Mapping[str, object]) -> None:
        """Dropped."""

    def knows_prefix(self, digest: str) -> bool:
        """Nothing is written down, so nothing need be spelt out."""
        return True


RULES = "rules"
"""Method of an execution for which no model was asked."""


class CallWriter:
    """
    Writes the calls of one execution and adds up their tokens.

    Args:
        journal: Where the lines go.
        recipe: The recipe that is executed.
        prompts: Every prompt file that it names, with its text.
        model: The model that runs it.
    """

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
        written = [{"role": message.role, **self._text(message), **_shown(message)} for message in messages]
        record = {
            "parameters": {
                "temperature": params.temperature,
                "max_tokens": params.max_tokens,
                "seed": params.seed,
                "timeout_seconds": params.timeout_seconds,
                "schema": params.schema,
            },
            "messages": written,
            "output": completion.text,
            "finish_reason": completion.finish_reason,
        }
        if lenient:
            record["lenient"] = list(lenient)
        if completion.reasoning:
            record["reasoning"] = completion.reasoning
        self._write("generate", record, completion.usage, completion.seconds, attempt, self._model)

    def write_choose(self, name: str, one: Pass, attempt: int) -> None:
        """Write down one scoring pass of a property."""
        options = [
            {
                "context": case.context,
                "continuation": case.continuation,
                "logprob": value,
                "tokens": count,
            }
            | ({"known": True} if before else {})
            for case, (value, count), before in zip(one.cases, one.found, one.known, strict=True)
        ]
        record = {"property": name, "prefix": self._prefix(one.prefix), "options": options}
        self._write("choose", record, one.usage, one.seconds, attempt, one.by)

    def log_fields(self) -> dict[str, object]:
        """What a line of the executions log says of recipe, model, turn and tokens (S3 §27)."""
        return {
            "recipe": self._recipe.name,
            "key": self._recipe.key,
            "version": self._hashes["version"],
            "phase": self._journal.phase,
            "model_layer": self._recipe.model_layer,
            "method": "+".join(self._kinds) or RULES,
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
                "usage": {"prompt": usage.prompt, "reused": usage.reused, "output": usage.output},
                "seconds": round(seconds, 4),
            }
        )
        self.totals += usage

    def _text(self, message: Message) -> dict[str, str]:
        return self._prefix(message.content) if message.role == "system" else {"content": message.content}

    def _prefix(self, text: str) -> dict[str, str]:
        digest = text_digest(text)
        return (
            {"sha256": digest} if self._journal.knows_prefix(digest) else {"sha256": digest, "content": text}
        )


def _shown(message: Message) -> dict[str, list[str]]:
    """Digests of the pictures of a message; nothing if it has none."""
    return {"pictures": [one.sha256 for one in message.pictures]} if message.pictures else {}


def token_fields(usage: Usage) -> dict[str, int | None]:
    """
    Tokens as a line of the executions log has them.

    >>> token_fields(Usage(3, 0, 2))["total"]
    5
    """
    prompt, output = usage.prompt, usage.output
    total = None if prompt is None or output is None else prompt + output
    return {"prompt": prompt, "reused": usage.reused, "output": output, "total": total}


def whose_turn(journal: Journal) -> dict[str, object]:
    """What a line of the executions log says of user, session and turn; no turn is null."""
    turn_id = turn_name(journal.turn) if journal.turn else None
    return {"user_id": journal.user_id, "session_id": journal.session_id, "turn_id": turn_id}


def text_digest(text: str) -> str:
    """
    sha256 of a text, hex.

    >>> text_digest("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def recipe_digest(text: str, prompts: Mapping[str, str]) -> str:
    """
    What a version of a recipe is known by: sha256 of its file and of every prompt that it names, hex.

    Args:
        text: The recipe file.
        prompts: Prompt file to its text.
    """
    return text_digest(json.dumps([text, sorted(prompts.items())], ensure_ascii=False))
