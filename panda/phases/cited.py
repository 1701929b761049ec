"""What the nodes that an answer cites say: everything that its items may claim, and the lines beside each."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from panda.documents.evidence import Figure, FigureCheck, check_figures
from panda.documents.safe_text import one_line
from panda.documents.times import last_seen, parse_time, without_last_seen
from panda.memory.gathered import line_heading, node_caption, numbered_text
from panda.memory.node import Node, trace
from panda.memory.reader import NodeLoader, find_node
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import line_of
from panda.retrieval.relevance import share_of_words
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import Computed, Evidence, GatheredContext, GatheredItem, Line, Step

_MOST_JUDGED_BY = 8  # lines of one node beside an item that is judged


class Cited:
    """What the items of an answer cite: whole nodes, or of what a model wrote by lines these lines alone."""

    def __init__(
        self,
        reader: NodeLoader,
        turn: Turn,
        *,
        answer_lines: Sequence[Line] | None = None,
        read_lines: Sequence[Line] = (),
    ) -> None:
        """
        Take what a turn has recorded, or what it is about to record.

        Args:
            answer_lines: Those of an answer that evidence.json does not have yet; None takes those it has.
            read_lines: What that answer was made from.
        """
        self._turn = turn
        self._steps = turn.steps()
        self._nodes = cache(partial(find_node, reader))
        gathered = turn.folder.find(GatheredContext)
        record = turn.folder.find(Evidence)
        self._at = parse_time(gathered.gathered_at) if gathered else None
        offered = record.offered if record else ()
        if answer_lines is not None:
            offered = (*answer_lines, *read_lines)
        self._lines = {line.id: line for line in offered}
        self._answer = {line.item: line for line in offered}
        self._whole = cache(self._whole_text)

    def line(self, item: GatheredItem) -> Line:
        """An item as the line that phase 5 answered with."""
        return self._answer.get(item) or line_of(item)

    def texts(self, item: GatheredItem) -> list[str]:
        """
        Everything that an item may claim, a text for each node that it cites: title, address, lines with what
        they stand below, time, its age as §2 shows it, and what the tools of this turn told of it.
        """
        texts = []
        for node_id in item.node_ids:
            node = self._nodes(node_id)
            lines = self._lines_of(item, node_id)
            if node is None or not lines:
                texts.append(self._whole(node_id, item.text))
            else:
                claimed = step_texts(self._steps, node_id).splitlines()
                held = [*(_shown(line) for line in lines if _is_held(line, node, claimed))]
                texts.append("\n".join((node.title, node.url or "", *held, *self._times(node))))
        return texts

    def computed(self, item: GatheredItem) -> tuple[list[str], list[str]]:
        """The figures of an item that hold, and how much it cites; what is wrong with the others."""
        figures = self._figures(item)
        lists = self._lists_of(item)
        counts = {len(item.node_ids), len(self._named(item)), *map(len, lists.values())}
        return [*figures.values, *(str(count) for count in counts if count > 1)], [*figures.faults]

    def with_true_figures(self, line: Line) -> Line:
        """
        Return a line of the answer with the computed figures that hold, and those that code has worked out;
        unchanged where a figure that it needs is wrong, which the check then tells.
        """
        check = self._figures(line.item)
        if check.faults:
            return line
        held = [figure for figure, is_held in zip(line.computed, check.are_held, strict=True) if is_held]
        added = [Computed(value, expression, line.rests_on) for value, expression in check.worked_out]
        return replace(line, computed=(*held, *added))

    def _figures(self, item: GatheredItem) -> FigureCheck:
        """Return which computed figures of an item hold, and what of its text can be worked out."""
        lists = self._lists_of(item)
        lines = {line.text for line in self._named(item)}
        cited = {
            title: listed for title, listed in lists.items() if not lines or not lines.isdisjoint(listed)
        }
        texts = self.texts(item)
        figures = []
        today = f"{self._turn.context.front.created_at:%Y-%m-%d}"
        for part in item.computed:
            mine = [self._lines[id_] for id_ in part.lines if id_ in self._lines]
            sources = texts
            if mine and all(line.place > 0 for line in mine):
                sources = [_shown(line) for line in mine if self._holds(line)]
            figures.append(Figure(part.value, part.expression, [*sources, self._turn.query, today]))
        about = [self._turn.query, *item.node_ids]
        return check_figures(item.text, figures, texts, lists=lists, whole_lists=cited, about=about)

    def _lists_of(self, item: GatheredItem) -> dict[str, list[str]]:
        return _lists([node for id_ in item.node_ids if (node := self._nodes(id_))])

    def _holds(self, line: Line) -> bool:
        node = self._nodes(line.node)
        return node is not None and _is_held(line, node, step_texts(self._steps, line.node).splitlines())

    def _nearest(self, item: GatheredItem, node_id: str) -> list[str]:
        """Return the lines nearest to an item of a node that it cites as a whole."""
        node = self._nodes(node_id)
        texts = [_shown(line) for line in node.items] if node else []
        texts += (step_texts(self._steps, node_id) if node else self._whole(node_id, "")).splitlines()
        shares = {text: share_of_words(item.text, text) for text in texts if text.strip()}
        nearest = sorted(shares, key=lambda text: -shares[text])[:_MOST_JUDGED_BY]
        return [text for text in shares if text in nearest]

    def render(self, items: Sequence[GatheredItem]) -> str:
        """Each item with its number, and below it the lines that it cites."""
        lines = list[str]()
        for n, item in enumerate(items, 1):
            lines.append(f"{n}. {one_line(item.text)}")
            for node_id in item.node_ids:
                lines += [f"   {one_line(line)}" for line in self._render_node(item, node_id)]
            lines += [f"   = {figure.value} = {figure.expression}" for figure in item.computed]
        return "\n".join(lines)

    def _render_node(self, item: GatheredItem, node_id: str) -> Iterator[str]:
        """Yield a node that an item cites, and those of its lines that support the item, by headings."""
        node = self._nodes(node_id)
        title = node.title if node else ""
        seen = last_seen(node.at) if node and node.at else ""
        cited_lines = self._lines_of(item, node_id)
        for heading, group in groupby(cited_lines, key=lambda line: line_heading(line, line.above)):
            yield f"[{node_id}] {heading or title} {seen}".rstrip()
            yield from (f"- {numbered_text(line)}" for line in group)
        if not cited_lines:
            yield f"[{node_id}] {title} {seen}".rstrip()
            yield from (f"- {line}" for line in self._nearest(item, node_id))

    def rests_on(self, line: Line, items: Sequence[GatheredItem]) -> bool:
        """Return whether one of some items is a line, cites it, or cites its node as a whole."""
        return any(
            line.id in (self.line(item).id, *self.line(item).rests_on)
            or (line.node in item.node_ids and not self._named(item))
            for item in items
        )

    def _lines_of(self, item: GatheredItem, node_id: str) -> list[Line]:
        """The lines of a node that an item names; none where it names one that a model worded."""
        mine = [line for line in self._named(item) if node_id in line.node_ids]
        return [] if any(Reason.WORDED_BY_MODEL in line.why for line in mine) else mine

    def _named(self, item: GatheredItem) -> list[Line]:
        return [self._lines[id_] for id_ in self.line(item).rests_on if id_ in self._lines]

    def _times(self, node: Node) -> Iterator[str]:
        yield last_seen(node.at) if node.at else ""
        yield node_caption(node, self._at) if self._at else ""

    def _whole_text(self, node_id: str, near: str) -> str:
        """All that a node says; of a long one what is near to a text."""
        if node_id == NodeKind.TURN.id(self._turn.turn):
            return self._turn.query
        claimed_text = step_texts(self._steps, node_id)
        if kind_of(node_id) is NodeKind.STEP:
            return f"{node_id.replace(':', ' ')}\n{claimed_text}" if claimed_text else ""
        node = self._nodes(node_id)
        if node is None:
            return claimed_text
        node_text = node.text_near(near)
        return "\n".join((node.title, node.url or "", node_text, *self._times(node), claimed_text))


def _lists(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """The lists of nodes by what they stand under."""
    lists: dict[str, list[str]] = {}
    for node in nodes:
        heads: dict[str, list[str]] = {}
        for line in node.items:
            if line.heads:
                heads.setdefault(line.heads, []).append(line.text)
        for line in node.items:
            if line.list_id:
                lists.setdefault(" ".join([line.above, *heads.get(line.list_id, ())]), []).append(line.text)
    return lists


def _shown(line: Line) -> str:
    return f"{line.above}: {line.text}" if line.above else line.text


def _is_held(line: Line, node: Node, claimed_lines: Sequence[str]) -> bool:
    """Return whether the node still has the line, or a tool claimed it."""
    plain = replace(line, text=without_last_seen(line.text))
    return trace(plain, node) in ("same", "moved") or line.text in claimed_lines


def step_texts(steps: Sequence[Step], node_id: str) -> str:
    """
    Return what the tools of this turn claimed of a node; of a step, such as "step:2", all that it returned.
    """
    texts: list[str] = []
    for step in steps:
        own = node_id == NodeKind.STEP.id(step.step) and step.status == "success"
        texts += [claim.text for claim in step.claims if own or claim.node_id == node_id]
        if own:
            texts += [step.text, *_strings(step.data)]
    return "\n".join(texts)


def _strings(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in _strings(part)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
