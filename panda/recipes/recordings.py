"""Answers that were given before: looked up by exactly what was asked, so that no call is made twice."""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.errors import HaltError
from panda.models.contract import Completion, GenerateParams, Message, ScoreCase, Usage

_SHOWN_LINES = 40
_TAIL = 400


@dataclass(frozen=True)
class Miss:
    """A call that no recording answers, because what it asks has changed."""

    recipe: str
    """The recipe."""
    kind: str
    """generate or choose."""
    difference: str
    """Unified diff from the nearest recorded prompt to the present one."""


class Recordings:
    """
    The answers in the lines of a calls.jsonl.

    Args:
        calls: The lines, in order; a prefix is spelt out where it first occurs.
    """

    def __init__(self, calls: Sequence[Mapping[str, Any]]) -> None:
        self._prefixes: dict[str, str] = {}
        self._scores: dict[tuple[str, str, str, str], tuple[float, int]] = {}
        self._completions: dict[str, Completion] = {}
        self._calls = list(calls)
        for call in calls:
            self._take(call)

    def score(self, recipe: str, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int] | None:
        """
        Log-probability and number of tokens of a continuation, if it was scored before.

        Args:
            recipe: Who asks.
            digest: Digest of the model.
            prefix: Text before the case.
            case: The case.
        """
        return self._scores.get((digest, prefix, case.context, case.continuation))

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the same call of a tool that reaches outside the store gave before; None: it is to be made."""
        return None

    def completion(
        self, recipe: str, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion | None:
        """The completion of the same messages with the same parameters, if one was made before."""
        said = [(m.role, m.content, *(one.sha256 for one in m.pictures)) for m in messages]
        return self._completions.get(_key(digest, said, _values(params)))

    def _take(self, call: Mapping[str, Any]) -> None:
        for part in [call.get("prefix"), *(call.get("messages") or ())]:
            if part and "sha256" in part and "content" in part:
                self._prefixes[part["sha256"]] = part["content"]
        digest = call["hashes"]["model"]
        if call["kind"] == "choose":
            prefix = self._text(call["prefix"])
            for option in call["options"]:
                key = (digest, prefix, option["context"], option["continuation"])
                self._scores[key] = (option["logprob"], option["tokens"])
        else:
            usage = Usage(**call["usage"])
            messages = [
                (part["role"], self._text(part), *part.get("pictures", ())) for part in call["messages"]
            ]
            self._completions[_key(digest, messages, call["parameters"])] = Completion(
                call["output"], call["finish_reason"], usage, call["seconds"], call.get("reasoning", "")
            )

    def _text(self, part: Mapping[str, str]) -> str:
        return part["content"] if "content" in part else self._prefixes.get(part["sha256"], "")


class LiveOnMiss(Recordings):
    """
    Recordings that note what they cannot answer, and leave it to the model or the tool.

    Args:
        calls: As for Recordings.
        steps: The tool calls of the turn, as its steps/ hold them.
    """

    def __init__(self, calls: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(calls)
        self.misses: list[Miss] = []
        self.restore: Callable[[Mapping[str, Any]], None] = lambda step: None
        """Told of a recorded step that answers, to bring back the files that it made."""
        self._steps = list(steps)

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """As for Recordings; each recorded step answers once."""
        for place, step in enumerate(self._steps):
            if (step["tool"], step["arguments"]) == (tool, arguments):
                self.restore(step)
                return self._steps.pop(place)
        self.misses.append(Miss(tool, "tool", f"+{json.dumps(arguments, ensure_ascii=False)}"))
        return None

    def score(self, recipe: str, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int] | None:
        """As for Recordings."""
        found = super().score(recipe, digest, prefix, case)
        if found is None:
            self.misses.append(Miss(recipe, "choose", f"+{prefix}{case.context}{case.continuation}"[-_TAIL:]))
        return found

    def completion(
        self, recipe: str, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion | None:
        """As for Recordings."""
        found = super().completion(recipe, digest, messages, params)
        if found is None:
            self.misses.append(Miss(recipe, "generate", f"+{messages[-1].content}"[-_TAIL:]))
        return found


class Replay(LiveOnMiss):
    """
    Recordings that answer everything: what was not asked before is a miss, answered by the nearest recording
    of the same recipe so that all misses of a turn come to light; a tool that was not called fails.

    Args:
        calls: As for Recordings.
        steps: As for LiveOnMiss.
    """

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """As for LiveOnMiss; a miss is a failure of the tool."""
        found = super().step(tool, arguments)
        return found if found is not None else {"status": "error", "error": "this call is not recorded"}

    def score(self, recipe: str, digest: str, prefix: str, case: ScoreCase) -> tuple[float, int]:
        """As for Recordings; a miss takes the value of the most similar case of the recipe."""
        found = Recordings.score(self, recipe, digest, prefix, case)
        if found is not None:
            return found
        asked = f"{prefix}{case.context}{case.continuation}"
        candidates = [
            (f"{self._text(call['prefix'])}{option['context']}{option['continuation']}", option)
            for call in self._calls
            if call["recipe"] == recipe and call["kind"] == "choose"
            for option in call["options"]
        ]
        option = self._nearest(recipe, "choose", asked, candidates)
        return option["logprob"], option["tokens"]

    def completion(
        self, recipe: str, digest: str, messages: Sequence[Message], params: GenerateParams
    ) -> Completion:
        """As for Recordings; a miss takes the most similar completion of the recipe."""
        found = Recordings.completion(self, recipe, digest, messages, params)
        if found is not None:
            return found
        candidates = [
            ("\n".join(self._text(part) for part in call["messages"]), call)
            for call in self._calls
            if call["recipe"] == recipe and call["kind"] == "generate"
        ]
        call = self._nearest(recipe, "generate", "\n".join(m.content for m in messages), candidates)
        return Completion(call["output"], call["finish_reason"], Usage(**call["usage"]), call["seconds"])

    def _nearest(
        self, recipe: str, kind: str, asked: str, candidates: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Any]:
        def likeness(candidate: tuple[str, Mapping[str, Any]]) -> float:
            return difflib.SequenceMatcher(None, candidate[0][-600:], asked[-600:], autojunk=False).ratio()

        text, answer = max(candidates, key=likeness, default=("", {}))
        lines = difflib.unified_diff(
            text.splitlines(), asked.splitlines(), "recorded", "now", lineterm="", n=1
        )
        shown = list(lines)
        more = [f"[…] {len(shown) - _SHOWN_LINES} more lines"] if len(shown) > _SHOWN_LINES else []
        self.misses.append(Miss(recipe, kind, "\n".join(shown[:_SHOWN_LINES] + more)))
        if not answer:
            raise HaltError(
                f"{recipe}: no call of this recipe is recorded",
                where=recipe,
                fix="the turn did not ask this recipe when it was recorded; record it anew",
            )
        return answer


def _key(digest: str, messages: Sequence[tuple[str, ...]], params: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in params.items() if name != "timeout_seconds"}
    return json.dumps([digest, list(messages), kept], sort_keys=True, ensure_ascii=False)


def _values(params: GenerateParams) -> dict[str, Any]:
    return vars(params)
