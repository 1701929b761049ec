"""What the session itself answers: what it was about turn by turn, and what is asked of a list it showed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from panda.choosing.decision import Option
from panda.documents.text import one_line, strip_citations
from panda.errors import FileFormatError, StoreError
from panda.language.lists import (
    asks_what_fits,
    label_of,
    names_only,
    points_back,
    rows_asked_for,
    ruled_out,
    shared_terms,
    terms_of,
    words_to_show,
)
from panda.language.reading import asked_step
from panda.memory.budget import is_usable
from panda.memory.node import Line, Node
from panda.memory.reader import NodeReader, find_node
from panda.phases.answer_text import MOST_ITEMS
from panda.phases.turn import Turn
from panda.session.registry import uses_excluded
from panda.store.carry import clip
from panda.store.records import GatheredContext, GatheredItem
from panda.store.visits import load_turn

_MOST_TURNS = 8
_ASKED_CHARS, _SAID_CHARS = 120, 240
_NOTED = ("knowledge:", "fact:")
_LOOKED_AT = 4  # how many turns of the session are looked at for a list that was shown


def recalled_turns(turn: Turn) -> tuple[int, ...]:
    """The first and the last turns of the session if the query asks for all that it was about; else ()."""
    numbers = turn.earlier if turn.reading.recap else ()
    return (*numbers[:1], *numbers[1:][1 - _MOST_TURNS :])


def recalled_items(turn: Turn) -> list[GatheredItem]:
    """What was asked and answered in each of these turns, clipped; one that cannot be read is a warning."""
    found = []
    for number in recalled_turns(turn):
        try:
            record = load_turn(turn.store.turn(number), number)
        except (FileFormatError, StoreError) as exc:
            turn.warn(exc.message)
            continue
        said = clip(one_line(strip_citations(record.response)), _SAID_CHARS) if record.answered else ""
        said = f"“{said}”" if said.endswith("?") else said
        asked = clip(record.query, _ASKED_CHARS)
        found.append(GatheredItem(f"“{asked}” – {said or 'no answer was found'}", (f"turn:{number}",)))
    return found


@dataclass(frozen=True)
class FollowUp:
    items: tuple[GatheredItem, ...]  # its lines, in order
    left_out: str = ""  # how many others are left out, and by what; "" if none is for what was told


@dataclass(frozen=True)
class ShownList:
    node: Node
    name: str  # which of its lists
    about: str  # what it stands under
    lines: tuple[Line, ...]  # its lines that can be quoted, in order

    @property
    def is_numbered(self) -> bool:
        return all(line.number is not None for line in self.lines)

    def asked_for(self, query: str) -> list[int]:
        """Places of the lines that say what a query tells apart; all of them if it tells nothing apart."""
        return rows_asked_for(
            query, [line.text.removeprefix(line.carried) for line in self.lines], self.about
        )

    def whole(self, lines: Sequence[Line]) -> FollowUp:
        heads = [line for line in self.node.items if line.heads == self.name and is_usable(line)]
        return FollowUp(
            tuple(GatheredItem(one.text, (self.node.id,)) for one in [*heads, *lines[:MOST_ITEMS]])
        )


def follow_up(turn: Turn, reader: NodeReader) -> FollowUp | None:
    """The answer to a query for a step by number or place, or for the items of a list that still count."""
    if turn.reading.recap:
        return None
    return _step(turn, reader) or _what_counts(turn, reader) or _opened(turn, reader) or _wanted(turn, reader)


def recalled(turn: Turn, reader: NodeReader, writes: bool) -> list[Option]:
    """
    What the session itself answers a query with: turns, if that is what it asks for, or the list that it goes
    on with, unless the model *writes*.
    """
    turns = [Option(f"turn:{number}", f"Turn {number}", (), 1.0) for number in recalled_turns(turn)]
    followed = None if turns or writes else follow_up(turn, reader)
    lines = followed.items if followed else ()
    return turns or [Option(f"l{n}", one.text, one.node_ids, 1.0) for n, one in enumerate(lines, 1)]


def name_of(line: Line) -> str:
    """What people call what a line is about: its label, or of a row the first cell that is no number."""
    text = line.text.removeprefix(line.carried)
    if line.form != "row":
        return label_of(text)
    cells = [cell.partition(": ")[2] or cell for cell in text.split("; ")]
    return next((cell for cell in cells if not any(map(str.isdigit, cell))), cells[0])


def lists_of(node: Node) -> Iterator[ShownList]:
    for name in dict.fromkeys(line.list_id for line in node.items if line.list_id):
        lines = tuple(line for line in node.items if line.list_id == name and is_usable(line))
        heads = [line.text for line in node.items if line.heads == name]
        if lines:
            row = lines[0].text.removeprefix(lines[0].carried)
            cells = row.split("; ") if lines[0].form == "row" else []
            columns = [cell.partition(":")[0] for cell in cells]
            yield ShownList(node, name, " ".join([node.title, lines[0].heading, *heads, *columns]), lines)


def lines_asked_for(
    query: str, line: Line, node: Node, whole: Sequence[Line], *, several: bool
) -> list[Line] | None:
    """
    What is quoted of a list in the place of one of its lines: the step that is asked for by its place; of a
    list that is wanted (*whole*), or of which several lines are quoted, those that say what the query tells
    apart.
    """
    shown = next((one for one in lists_of(node) if line in one.lines or line.heads == one.name), None)
    if shown is None:
        return None
    step = asked_step(query)
    if step is not None and not step.is_relative and shown.is_numbered:
        wanted = step.number(0, len(shown.lines))
        return [one for one in shown.lines if one.number == wanted] or None
    asked = [shown.lines[at] for at in shown.asked_for(query)]
    if shown.is_numbered or len(asked) == len(shown.lines) or not (whole or (several and line in asked)):
        return None
    return [one for one in whole if one.heads is not None] + asked


def tells_none_apart(query: str, lines: Sequence[Line], node: Node) -> bool:
    said = {line: terms_of(line.text.removeprefix(line.carried)) for line in node.items if line.list_id}
    listed = [terms for line, terms in said.items() if line.list_id == lines[0].list_id]
    everywhere = set.intersection(*listed) if listed else set()
    return not any(terms_of(query) & said.get(line, set()) - everywhere for line in lines)


def _step(turn: Turn, reader: NodeReader) -> FollowUp | None:
    wanted, last = asked_step(turn.query), turn.earlier[-1:]
    if wanted is None or not last:
        return None
    lines = _lines(reader, f"turn:{last[0]}")
    for node_id in dict.fromkeys(one.origin for one in lines if one.origin and one.origin.startswith(_NOTED)):
        said = {one.text for one in lines if one.origin == node_id}
        numbered = [one for one in _lines(reader, node_id) if one.number is not None and is_usable(one)]
        quoted = [one.number for one in numbered if one.text in said and one.number is not None]
        number = wanted.number((quoted[-1:] or [0])[0], len(numbered))
        found = [one for one in numbered if one.number == number]
        if found:
            return FollowUp((GatheredItem(found[0].text, (node_id,)),))
    return None


def _what_counts(turn: Turn, reader: NodeReader) -> FollowUp | None:
    query = turn.query
    fits, back = asks_what_fits(query), points_back(query)
    known = _known_lists(turn, reader) if fits or back else []
    chosen = _meant(query, known, back)
    if chosen is None:
        return None
    asked = chosen.asked_for(query)
    others = [one for one in known if one is not chosen]
    told = [
        (at, text)
        for at, text in (_told(turn, reader) if fits or (back and len(asked) == len(chosen.lines)) else ())
        if shared_terms(text, chosen.about) or not any(shared_terms(text, one.about) for one in others)
    ]
    rows = [(name_of(line), line.text) for line in chosen.lines]
    out = ruled_out(rows, [text for _, text in told])
    reasons = {at: f"what was said in turn {told[place][0]}" for at, place in out.items()}
    aside = [at for at, (_, text) in enumerate(rows) if uses_excluded([text], turn.present_carry)]
    reasons |= dict.fromkeys(set(aside) - set(reasons), "what you put aside")
    kept = [chosen.lines[at] for at in asked if at not in reasons]
    if not kept or not (reasons or len(asked) < len(chosen.lines)):
        return None
    count, by = len(chosen.lines) - len(kept), ", ".join(dict.fromkeys(reasons.values()))
    left_out = f"{count} of {len(chosen.lines)} left out: {by}." if reasons else ""
    return FollowUp(tuple(GatheredItem(line.text, (chosen.node.id,)) for line in kept), left_out)


def _opened(turn: Turn, reader: NodeReader) -> FollowUp | None:
    wanted = words_to_show(turn.query)
    known = _known_lists(turn, reader) if wanted else []
    named = [one for one in known if wanted <= terms_of(f"{one.about} {one.node.id}")]
    return named[0].whole(named[0].lines) if len(named) == 1 else None


def _wanted(turn: Turn, reader: NodeReader) -> FollowUp | None:
    known = []
    for text, node_ids in _gathered_lines(turn) if turn.reading.all else ():
        is_note = bool(node_ids) and node_ids[0].startswith("knowledge:")
        node = find_node(reader, node_ids[0]) if is_note else None
        for one in lists_of(node) if node else ():
            heads = {line.heads for line in one.node.items if line.text == text}
            is_quoted = one.name in heads or any(line.text == text for line in one.lines)
            known += [one] if is_quoted and len(one.lines) > 1 else []
    best = max(known, key=lambda one: shared_terms(turn.query, one.about), default=None)
    if best is None or not shared_terms(turn.query, best.about):
        return None
    asked = best.asked_for(turn.query)
    return best.whole(best.lines if best.is_numbered else [best.lines[at] for at in asked])


def _known_lists(turn: Turn, reader: NodeReader) -> list[ShownList]:
    quoted = {
        (line.origin, line.text): None
        for number in reversed(turn.earlier[-_LOOKED_AT:])
        for line in _lines(reader, f"turn:{number}")
        if line.origin and line.origin.startswith(_NOTED)
    }
    found = [node_id for _, node_ids in _gathered_lines(turn) for node_id in node_ids]
    steps = turn.steps() if turn.phase > 2 else ()
    found += [claim.node_id for step in steps for claim in step.claims if claim.node_id]
    gathered = [node_id for node_id in dict.fromkeys(found) if node_id.startswith(_NOTED)]
    known = [
        one
        for node_id in dict.fromkeys([*(node_id for node_id, _ in quoted), *gathered])
        if (node := find_node(reader, node_id))
        for one in lists_of(node)
        if len(one.lines) > 1
    ]
    shown = [one for one in known if any((one.node.id, line.text) in quoted for line in one.lines)]
    return shown + [one for one in known if one not in shown and one.node.id in gathered]


def _meant(query: str, known: Sequence[ShownList], back: bool) -> ShownList | None:
    best = max(known, key=lambda one: shared_terms(query, one.about), default=None)
    if best is None or shared_terms(query, best.about):
        return best
    return known[0] if back or names_only(query, known[0].about) else None


def _told(turn: Turn, reader: NodeReader) -> list[tuple[int, str]]:
    own = set(turn.earlier)
    nodes = [node for node in reader.statements() if node.source_turn in own]
    told = [(node.source_turn, node.items[0].text) for node in nodes if node.source_turn is not None]
    noted = {at for at, _ in told}
    told += [(o.turn, o.text) for o in turn.carry.constraints if o.active and o.turn not in noted]
    return sorted(dict.fromkeys(told))


def _gathered_lines(turn: Turn) -> list[tuple[str, tuple[str, ...]]]:
    sections = turn.gathered if turn.phase > 2 and turn.folder.has(GatheredContext.FILE) else ()
    return [(item.text, item.node_ids) for section in sections for item in section.items]


def _lines(reader: NodeReader, node_id: str) -> Sequence[Line]:
    node = find_node(reader, node_id)
    return node.items if node else ()
