"""Replies of a model that writes, by step of the pipeline; nothing of the program is imported."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import yaml

PRICE = "Lenovo LOQ 15: price $697.00"
PRICE_NODE = "visit:visit_loq"
NATURAL = Path(__file__).parent / "cases" / "natural.yaml"


class Asked(Protocol):
    """One call that a model got."""

    @property
    def messages(self) -> Sequence[Any]:
        """Each with its `content`."""

    @property
    def text(self) -> str:
        """Everything that was said, in order."""

    @property
    def params(self) -> object:
        """Its `schema` is that of the reply, or None."""


@dataclass(frozen=True)
class Request:
    """One call as the body of an HTTP request tells it."""

    body: Mapping[str, Any]
    """As the server got it."""

    @property
    def messages(self) -> Sequence[Any]:
        """Each with its `content`."""
        return [SimpleNamespace(**message) for message in self.body["messages"]]

    @property
    def text(self) -> str:
        """Everything that was said, in order."""
        return "\n".join(message["content"] for message in self.body["messages"])

    @property
    def params(self) -> object:
        """The schema of the reply, or None; some servers are told it in words."""
        structure = self.body.get("response_format", {}).get("json_schema")
        if structure:
            return SimpleNamespace(schema=structure["schema"])
        words = self.body["messages"][-1]["content"].partition(_SCHEMA_IN_WORDS)[2]
        return SimpleNamespace(schema=json.JSONDecoder().raw_decode(words)[0] if words else None)


_SCHEMA_IN_WORDS = "of this schema, and nothing else:\n"

STEPS: Mapping[str, str] = {
    "resolved_query": "analyzer",
    "relevant": "retrieval",
    "guidance": "context",
    "tasks": "planner",
    "calls": "coordinator",
    "reason": "validator",
    "items": "answer",
    "summary": "summary",
    "question": "reflection",
    "reasoning": "retrieval",
    "kind": "strategy",
    "phrases": "phrases",
    "results": "worth_a_look",
    "sources": "sources",
    "pages": "about",
    "accepted": "read_well",
    "zones": "zones",
    "claims": "claims",
    "same": "conflicts",
    "action": "navigation",
    "lines": "synthesis",
}
"""Step of the pipeline by a property that it asks for; the first that fits counts."""

THOUGHT = "Okay, the user wants {something}. Let me look at what I was given, and reply in JSON."
STYLES: Mapping[str, str] = {
    "plain": "%s",
    "fenced": "```json\n%s\n```",
    "chatty": "Sure! Here is the JSON you asked for:\n\n```json\n%s\n```\n\nLet me know if you need more.",
    "thinking": f"<think>\n{THOUGHT}\n</think>\n\n%s",
}
"""What stands around a reply, by style."""


def step_of(asked: Asked) -> str:
    """The step of the pipeline that asks, by the schema of its reply; without one NERVES is to reword."""
    schema = getattr(asked.params, "schema", None)
    if schema is None:
        return "rewording"
    steps = (step for name, step in STEPS.items() if name in schema["properties"])
    return next(steps, "another program")


@dataclass(frozen=True)
class Pick:
    """Stands in a scripted reply for the ids of the offered options that hold one of these texts."""

    texts: tuple[str, ...]
    """Parts of the options' texts or ids."""


def pick(*texts: str) -> Pick:
    """The options that hold one of the texts."""
    return Pick(texts)


APPROVED: Mapping[str, Any] = {
    "analyzer": {
        "query_type": "informational",
        "intent": "commerce",
        "needs_current_prices": True,
        "needs_live_data": False,
        "resolved_query": "",
    },
    "reflection": {"decision": "PROCEED", "question": ""},
    "retrieval": {"relevant": pick(PRICE_NODE)},
    "synthesis": {"lines": pick("price $697.00")},
    "context": {"verdict": "pass"},
    "planner": {"tools": [], "next_step": "synthesis"},
    "coordinator": {"tool": "done"},
    "answer": {"items": [{"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}]},
    "validator": {"verdict": "APPROVE"},
    "summary": {
        "summary": "Told the price of the Lenovo LOQ 15.",
        "topics": [],
        "history": "Earlier turns told prices.",
        "engagement": "Laptops for games.",
    },
    "strategy": {"kind": "prices"},
    "phrases": {"phrases": pick("s1 ")},
    "worth_a_look": {"results": pick("")},
    "sources": {"sources": pick("")},
    "about": {"pages": pick("")},
    "read_well": {"accepted": pick("")},
    "zones": {"zones": pick("")},
    "claims": {"claims": pick(": price ")},
    "conflicts": {"same": pick("")},
    "navigation": {"lines": [], "action": "stop"},
    "rewording": "",  # no wording: the extract stays
}
"""What a model that writes replies at each step of a turn that is approved without tools."""


class Script:
    """
    Replies by step, for a model that writes.

    Args:
        replies: By step: an object, raw text, an error to raise, or a list of these whose last one stays.
            Steps that are not given reply as in APPROVED. {"tool": name} is one call without arguments.
    """

    cites_nodes = False
    """Whether items of an answer cite whole nodes, and not their lines."""

    def __init__(self, **replies: Any) -> None:
        self._replies = {**APPROVED, **replies}
        self._used: dict[str, int] = {}

    def __call__(self, asked: Asked) -> str | Exception:
        step = step_of(asked)
        used = self._used.get(step, 0)
        self._used[step] = used + 1
        reply = self._replies[step]
        if isinstance(reply, list):
            reply = reply[min(used, len(reply) - 1)]
        if isinstance(reply, str | Exception):
            return reply
        properties = getattr(asked.params, "schema", {})["properties"]
        if step == "synthesis":
            reply = {"lines": chosen_lines(asked, reply["lines"])}
        if "tool" in reply and "calls" in properties:
            reply = {**reply, "calls": [{"tool": reply["tool"]}]}
        return json.dumps(
            {
                name: value if self.cites_nodes and name == "items" else _filled(value, name, asked)
                for name, value in reply.items()
                if name in properties
            }
        )


def loaded_lines(asked: Asked) -> dict[str, str]:
    """Return the lines of the loaded documents that 2.2 was shown, by their ids."""
    return dict(re.findall(r"(?m)^(L\d+): (.*)$", asked.messages[-1].content))


def loaded_documents(asked: Asked) -> dict[str, list[str]]:
    """Return the lines of each loaded document that 2.2 was shown, by its id, in order."""
    documents: dict[str, list[str]] = {}
    node_id = ""
    for line in asked.messages[-1].content.split("\n"):
        if match := re.match(r"\[(\w+:[^\]]+)\] ", line):
            node_id = match[1]
        elif match := re.match(r"L\d+: (.*)", line):
            documents.setdefault(node_id, []).append(match[1])
    return documents


def chosen_lines(asked: Asked, wanted: Any) -> Any:
    """Return the ids of the lines that hold one of the picked texts; of what is no pick itself."""
    if not isinstance(wanted, Pick):
        return wanted
    lines = loaded_lines(asked).items()
    return [own_id for own_id, line in lines if any(text in line for text in wanted.texts)]


def offered(asked: Asked, name: str) -> dict[str, str]:
    """Return the options of that name that the model was shown, by id, each behind the label above it."""
    part = asked.text.partition(f"===== Options: {name} =====\n")[2].partition("\n\n")[0]
    options: dict[str, str] = {}
    label = ""
    for line in part.split("\n"):
        if match := re.match(r"- (\S.*?) \| (.*)$", line):
            options[match[1]] = f"{label} {match[2]}".lstrip()
        elif not line.startswith("- "):
            label = line
    return options


def cited(items: Any, asked: Asked) -> Any:
    """Items of an answer with the lines of the nodes that a script names, for what they compute too."""
    heads = {id_: shown.partition("]")[0] for id_, shown in offered(asked, "lines").items()}

    def named(item: Any) -> Any:
        if not isinstance(item, dict) or "node_ids" not in item:
            return item
        own = {name: value for name, value in item.items() if name != "node_ids"}
        wanted = set(item["node_ids"] if isinstance(item["node_ids"], list | tuple) else ())
        own["lines"] = [id_ for id_, head in heads.items() if wanted & set(_NODES.findall(head))]
        if "computed" in own:
            own["computed"] = [{"lines": own["lines"], **figure} for figure in own["computed"]]
        return own

    return [named(item) for item in items] if isinstance(items, list) else items


_NODES = re.compile(r"(?:\[|, )([a-z]+:[^,]+)")


def _filled(value: Any, name: str, asked: Asked) -> Any:
    if name == "items" and '"computed"' in json.dumps(getattr(asked.params, "schema", {})):
        return cited(value, asked)
    if not isinstance(value, Pick):
        return value
    shown = offered(asked, name)
    ids = [id_ for id_, said in shown.items() if any(text in f"{id_} {said}" for text in value.texts)]
    is_one = getattr(asked.params, "schema", {})["properties"].get(name, {}).get("type") == "string"
    return ids[0] if is_one else ids


@dataclass(frozen=True)
class NaturalTurn:
    """What a model writes in one turn, and what is to come of it."""

    query: str
    """What the user asks."""
    style: str
    """One of STYLES."""
    status: str
    """How the turn ends."""
    replies: Mapping[str, Any]
    """By step: an object, raw text, or a list of these whose last one stays."""
    says: tuple[str, ...]
    """What the answer or the question holds."""
    asks: Mapping[str, int]
    """How often a step is asked, by step."""


@cache
def natural_turns() -> Mapping[str, NaturalTurn]:
    """The turns of natural.yaml by name."""
    cases = yaml.safe_load(NATURAL.read_text(encoding="utf-8"))
    usual: Mapping[str, Any] = cases["usual"]
    return {
        name: NaturalTurn(
            turn["query"],
            turn["style"],
            turn["status"],
            {**usual, **turn.get("replies", {})},
            tuple(turn.get("says", ())),
            turn.get("asks", {}),
        )
        for name, turn in cases["turns"].items()
    }


class NaturalWriter:
    """
    Writes a turn's replies, for a scripted model.

    Args:
        turn: What it says; of an object the properties that it is asked for.
    """

    def __init__(self, turn: NaturalTurn) -> None:
        self._turn = turn
        self.used: dict[str, int] = {}
        """How often each step was asked."""

    def __call__(self, asked: Asked) -> str:
        step = step_of(asked)
        used = self.used.get(step, 0)
        self.used[step] = used + 1
        reply = self._turn.replies[step]
        if isinstance(reply, list):
            reply = reply[min(used, len(reply) - 1)]
        if isinstance(reply, str):
            return reply
        properties = getattr(asked.params, "schema", {})["properties"]
        if step == "synthesis":
            reply = {"lines": chosen_lines(asked, pick(*reply["lines"]))}
        said = {name: _filled(value, name, asked) for name, value in reply.items() if name in properties}
        return STYLES[self._turn.style] % json.dumps(said, ensure_ascii=False, indent=2)
