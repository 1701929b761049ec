"""The tool calls of a turn: as a list, and as nodes that an answer can cite: step:1, step:2 and so on."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from panda.errors import MemoryNodeError
from panda.memory.node import Line, Node
from panda.memory.reader import PastReader
from panda.store.layout import step_name
from panda.view.turn_reader import TurnReader

_STEP = "step:"
_MOST_STEPS = 99
_TEXT_CHARS = 6_000


@dataclass(frozen=True)
class StepRow:
    """One call of a tool."""

    number: int
    name: str  # its file
    tool: str = ""  # as "web.fetch"; "" if the file is damaged
    status: str = ""  # started, success, error or blocked
    arguments: str = ""  # as JSON
    seconds: float | None = None
    error: str = ""
    claims: tuple[tuple[str, float | None], ...] = ()  # what it found out, each with its confidence
    text: str = ""  # what it gave to read, as far as it is shown
    cut_chars: int = 0  # how much of that is left out
    diff: str = ""  # what it changed in a file of the project; "" if nothing
    problem: str | None = None  # what is wrong with the file


def read_steps(reader: TurnReader) -> Iterator[StepRow]:
    """The calls of a turn in order; a damaged one says so."""
    for number in range(1, _MOST_STEPS + 1):
        name = step_name(number)
        if not reader.folder.has(name):
            return
        value = reader.json(name)
        if value is None:
            yield StepRow(number, name, problem=reader.problems[name])
            continue
        data = value["data"] if isinstance(value["data"], Mapping) else {}
        text = value["text"]
        yield StepRow(
            number=number,
            name=name,
            tool=value["tool"],
            status=value["status"],
            arguments=json.dumps(value["arguments"], ensure_ascii=False, indent=2)[:_TEXT_CHARS],
            seconds=value["seconds"],
            error=value["error"] or "",
            claims=tuple((one["text"], one["confidence"]) for one in value["claims"]),
            text=text[:_TEXT_CHARS],
            cut_chars=max(0, len(text) - _TEXT_CHARS),
            diff=str(data.get("diff") or "")[:_TEXT_CHARS],
        )


class StepNodes:
    """The nodes that a turn could cite: the results of its own tools, and what was known when it began."""

    def __init__(self, reader: TurnReader, past: PastReader) -> None:
        self._reader = reader
        self._past = past

    def load(self, node_id: str) -> Node:
        """A node. Raises MemoryNodeError: there is none of that id, or it is damaged."""
        number = node_id.removeprefix(_STEP)
        is_step = number != node_id and number.isascii() and number.isdigit() and len(number) < 6
        return self._step(node_id, step_name(int(number))) if is_step else self._past.load(node_id)

    def _step(self, node_id: str, name: str) -> Node:
        value = self._reader.json(name)
        if value is None:
            message = self._reader.problems.get(name, "there is no such file")
            raise MemoryNodeError(f"{node_id}: {name}: {message}", where=name)
        title = f"{value['tool']}: {value['status']}"
        return Node(node_id, "research_cache", title, name, self._past.at, _items(value))


def _items(step: dict[str, Any]) -> tuple[Line, ...]:
    claims = [(one["text"], one["confidence"]) for one in step["claims"]]
    known = {text for text, _ in claims}
    lines = [(line, None) for line in step["text"].splitlines() if line.strip() and line not in known]
    return tuple(Line(text, "default", sure or 0.0, None) for text, sure in [*claims, *lines])
