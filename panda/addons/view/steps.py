"""The tool calls of a turn: as a list, and as nodes that an answer can cite: step:1, step:2 and so on."""

from collections.abc import Iterator

from panda.addons.view.turn_reader import TurnReader
from panda.errors import MemoryNodeError
from panda.memory.node import Node
from panda.memory.reader import PastReader
from panda.store.layout import step_name
from panda.store.records import Line, Step

_STEP = "step:"
_MOST_STEPS = 99


def read_steps(reader: TurnReader) -> Iterator[tuple[str, Step | None]]:
    """The calls of a turn in order, each with its file; None for a damaged one."""
    for number in range(1, _MOST_STEPS + 1):
        name = step_name(number)
        if not reader.folder.has(name):
            return
        yield name, reader.record(Step, name)


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
        step = self._reader.record(Step, name)
        if step is None:
            message = self._reader.problems.get(name, "there is no such file")
            raise MemoryNodeError(f"{node_id}: {name}: {message}", where=name)
        title = f"{step.tool}: {step.status}"
        return Node(
            node_id, "research_cache", title=title, provenance=name, at=self._past.at, items=_items(step)
        )


def _items(step: Step) -> tuple[Line, ...]:
    claims: list[tuple[str, float | None]] = [(claim.text, claim.confidence) for claim in step.claims]
    claim_texts = {text for text, _ in claims}
    lines = [(line, None) for line in step.text.splitlines() if line.strip() and line not in claim_texts]
    return tuple(Line(text, "default", sure or 0.0, None) for text, sure in [*claims, *lines])
