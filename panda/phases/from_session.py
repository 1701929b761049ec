"""What the session itself answers: what it was about turn by turn, and what is asked of a list it showed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from panda.documents.context import Phase
from panda.documents.safe_text import escape_marks, one_line, strip_citations
from panda.errors import FileFormatError, StoreError
from panda.memory.budget import is_usable
from panda.memory.node import Node
from panda.memory.reader import NodeReader, find_node
from panda.messages.list_items import (
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
from panda.messages.questions import asked_step
from panda.phases.answer_text import MOST_ITEMS
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import gathered_lines
from panda.retrieval.relevance import find_query_words
from panda.session.registry import uses_excluded
from panda.steps.options import Option
from panda.store.carry import clip
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.reason import Reason
from panda.store.records import GatheredContext, GatheredItem, Line
from panda.store.visit_records import TurnRecord, load_turn

_MOST_TURNS = 8
_ASKED_CHARS = 120
_SAID_CHARS = 240
_NOTED = (NodeKind.KNOWLEDGE, NodeKind.FACT)
_MOST_WHOLE = 3  # so many named turns are shown line by line
_LOOKED_AT = 4  # how many turns of the session are looked at for a list that was shown


@dataclass(frozen=True)
class SessionAnswer:
    lines: tuple[Line, ...]  # in order
    left_out: str = ""  # how many others are left out, and by what; "" if none is for what was told
    leads: Mapping[GatheredItem, str] = field(default_factory=dict)  # what is said in front of a line
    is_list: bool = False  # whether it is a list of a note as a whole, of which a table may say more


@dataclass(frozen=True)
class ShownList:
    node: Node
    name: str  # which of its lists
    about: str  # what it stands under
    lines: tuple[Line, ...]  # its lines that can be quoted, in order

    @property
    def is_numbered(self) -> bool:
        return all(line.number is not None for line in self.lines)

    @property
    def heads(self) -> list[Line]:
        return [line for line in self.node.items if line.heads == self.name and is_usable(line)]

    def asked_for(self, query: str) -> list[Line]:
        """The lines that say what a query tells apart; all of them if it tells nothing apart."""
        rows = [line.text.removeprefix(line.carried) for line in self.lines]
        return [self.lines[at] for at in rows_asked_for(query, rows, self.about)]


def recalled_turns(turn: Turn) -> tuple[int, ...]:
    """The first and the last turns of the session if the query asks for all that it was about; else ()."""
    numbers = turn.earlier if turn.reading.recap else ()
    return (*numbers[:1], *numbers[1:][1 - _MOST_TURNS :])


def recalled_options(turn: Turn) -> list[Option]:
    """Return the turns that answer a query for all that the session was about, as a prompt names them."""
    return [Option(NodeKind.TURN.id(number), f"Turn {number}", (), 1.0) for number in recalled_turns(turn)]


def session_answer(turn: Turn, reader: NodeReader) -> SessionAnswer | None:
    """
    Return what answers a query for turns that it names, for what the session was about, for a step of a list
    by its number or place, for what of a list still counts, or for a list as a whole; None for any other
    query.
    """
    reading = turn.reading
    is_shown = reading.mood == "asks" or (reading.mood == "orders" and turn.mode != "code")
    if reading.turns and is_shown and not turn.documents:
        return _named(turn, turn.reading.turns, reader)
    if reading.recap:
        recalled = tuple(_recalled(turn))
        return SessionAnswer(recalled) if recalled else None
    answers = (_step, _what_counts, _opened, _wanted)
    return next(filter(None, (answer(turn, reader) for answer in answers)), None)


def _named(turn: Turn, named: Sequence[str], reader: NodeReader) -> SessionAnswer | None:
    """
    Return what named turns answered: of each turn the lines that share words with the query, else all its
    lines; of many turns one line each with what was asked and answered.
    """
    quoted: list[Line] = []
    leads: dict[GatheredItem, str] = {}
    words = " ".join(find_query_words(_without_turns(turn)))
    nodes = [node for node_id in dict.fromkeys(named) if (node := find_node(reader, node_id))]
    for node in nodes:
        number = int(key_of(node.id))
        record = load_turn(turn.store.turn(number), number)
        answer = one_line(strip_citations(record.response)) if record.answered else ""
        lines = [
            line for line in node.items if escape_marks(line.text) in answer and len(nodes) <= _MOST_WHOLE
        ]
        lines = [line for line in lines if shared_terms(words, line.text)] or lines or [_exchange(record)]
        if len(nodes) > 1:
            leads[lines[0].item] = f"Turn {number}: "
        quoted += [replace(line, why=(Reason.OF_NAMED_TURN,)) for line in lines]
    if not quoted:
        return None
    rest = len(quoted) - MOST_ITEMS
    left_out = (
        f"{rest} further lines are left out; `panda show` with the number shows all." if rest > 0 else ""
    )
    return SessionAnswer(tuple(quoted[:MOST_ITEMS]), left_out, leads)


def _without_turns(turn: Turn) -> str:
    """The query without the words that name turns."""
    query = turn.query
    for reference in turn.reading.references:
        if set(reference.refs) & set(turn.reading.turns):
            query = query.replace(reference.words, " ")
    return query


def _recalled(turn: Turn) -> Iterator[Line]:
    for number in recalled_turns(turn):
        try:
            record = load_turn(turn.store.turn(number), number)
        except (FileFormatError, StoreError) as exc:
            turn.warn(exc.message)
            continue
        yield _exchange(record)


def _exchange(record: TurnRecord) -> Line:
    """Return one line with what was asked in a turn and what was answered."""
    reply = clip(one_line(strip_citations(record.response)), _SAID_CHARS) if record.answered else ""
    reply = f"“{reply}”" if reply.endswith("?") else reply
    asked = f"“{clip(record.query, _ASKED_CHARS)}” – {reply or 'no answer was found'}"
    return Line(asked, node=NodeKind.TURN.id(record.number), why=(Reason.SESSION_TOPIC,))


def name_of(line: Line) -> str:
    """Return the name of what a line is about: its label, or of a row the first cell without digits."""
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
            columns = [cell.partition(":")[0] for cell in row.split("; ")] if lines[0].form == "row" else []
            yield ShownList(node, name, " ".join([node.title, lines[0].heading, *heads, *columns]), lines)


def _step(turn: Turn, reader: NodeReader) -> SessionAnswer | None:
    wanted = asked_step(turn.query)
    last = turn.earlier[-1:]
    if wanted is None or not last:
        return None
    quoted = [
        line for line in _lines(reader, NodeKind.TURN.id(last[0])) if kind_of(line.origin or "") in _NOTED
    ]
    for node_id in dict.fromkeys(line.origin for line in quoted if line.origin):
        quoted_texts = {line.text for line in quoted if line.origin == node_id}
        numbered = [line for line in _lines(reader, node_id) if line.number is not None and is_usable(line)]
        quoted_numbers = [
            line.number for line in numbered if line.text in quoted_texts and line.number is not None
        ]
        number = wanted.number((quoted_numbers[-1:] or [0])[0], len(numbered))
        steps = [replace(line, why=(Reason.STEP_ASKED_FOR,)) for line in numbered if line.number == number]
        if steps:
            return SessionAnswer((steps[0],))
    return None


def _what_counts(turn: Turn, reader: NodeReader) -> SessionAnswer | None:
    query = turn.query
    fits = asks_what_fits(query)
    back = points_back(query)
    lists = _known_lists(turn, reader) if fits or back else []
    best = max(lists, key=lambda note_list: shared_terms(query, note_list.about), default=None)
    if best is not None and not shared_terms(query, best.about):
        best = lists[0] if back or names_only(query, lists[0].about) else None
    if best is None:
        return None
    asked = best.asked_for(query)
    others = [note_list for note_list in lists if note_list is not best]
    statements: list[tuple[int, str]] = []
    if fits or len(asked) == len(best.lines):
        statements = _told(turn, reader)
    statements = [
        (at, text)
        for at, text in statements
        if shared_terms(text, best.about)
        or not any(shared_terms(text, note_list.about) for note_list in others)
    ]
    out = ruled_out([(name_of(line), line.text) for line in best.lines], [text for _, text in statements])
    reasons = {
        best.lines[at].id: f"what was said in turn {statements[place][0]}" for at, place in out.items()
    }
    for line in best.lines:
        if uses_excluded([line.text], turn.present_carry):
            reasons.setdefault(line.id, "what you put aside")
    remaining = [replace(line, why=(Reason.STILL_COUNTS,)) for line in asked if line.id not in reasons]
    if not remaining or not (reasons or len(asked) < len(best.lines)):
        return None
    count = len(best.lines) - len(remaining)
    by = ", ".join(dict.fromkeys(reasons.values()))
    return SessionAnswer(tuple(remaining), f"{count} of {len(best.lines)} left out: {by}." if reasons else "")


def _opened(turn: Turn, reader: NodeReader) -> SessionAnswer | None:
    wanted = words_to_show(turn.query)
    lists = _known_lists(turn, reader) if wanted else []
    named = [note_list for note_list in lists if wanted <= terms_of(f"{note_list.about} {note_list.node.id}")]
    return _whole(named[0], named[0].lines) if len(named) == 1 else None


def _wanted(turn: Turn, reader: NodeReader) -> SessionAnswer | None:
    candidates = []
    gathered = _gathered(turn) if turn.reading.all else ()
    for line in gathered:
        node = find_node(reader, line.node) if kind_of(line.node) is NodeKind.KNOWLEDGE else None
        lists = lists_of(node) if node else ()
        for note_list in lists:
            is_quoted = line.text in {own.text for own in (*note_list.heads, *note_list.lines)}
            if is_quoted and len(note_list.lines) > 1:
                candidates.append(note_list)
    best = max(candidates, key=lambda note_list: shared_terms(turn.query, note_list.about), default=None)
    if best is None or not shared_terms(turn.query, best.about):
        return None
    return _whole(best, best.lines if best.is_numbered else best.asked_for(turn.query))


def _whole(note_list: ShownList, lines: Sequence[Line]) -> SessionAnswer:
    quoted = [*note_list.heads, *lines[:MOST_ITEMS]]
    return SessionAnswer(tuple(replace(line, why=(Reason.LIST_ASKED_FOR,)) for line in quoted), is_list=True)


def _known_lists(turn: Turn, reader: NodeReader) -> list[ShownList]:
    """The lists of notes that the last turns quoted, the newest first, then those that this one gathered."""
    quoted = {
        (line.origin, line.text): None
        for number in reversed(turn.earlier[-_LOOKED_AT:])
        for line in _lines(reader, NodeKind.TURN.id(number))
        if line.origin and kind_of(line.origin) in _NOTED
    }
    steps = turn.steps() if turn.phase > Phase.CONTEXT_GATHERER else ()
    claimed = [claim.node_id for step in steps for claim in step.claims if claim.node_id]
    gathered = [id_ for id_ in [*(line.node for line in _gathered(turn)), *claimed] if kind_of(id_) in _NOTED]
    lists = [
        note_list
        for node_id in dict.fromkeys([*(node_id for node_id, _ in quoted if node_id), *gathered])
        if (node := find_node(reader, node_id))
        for note_list in lists_of(node)
        if len(note_list.lines) > 1
    ]
    first = [
        note_list
        for note_list in lists
        if any((note_list.node.id, line.text) in quoted for line in note_list.lines)
    ]
    return first + [
        note_list for note_list in lists if note_list not in first and note_list.node.id in gathered
    ]


def _told(turn: Turn, reader: NodeReader) -> list[tuple[int, str]]:
    nodes = [node for node in reader.statements() if node.source_turn in turn.earlier]
    statements = [(node.source_turn, node.items[0].text) for node in nodes if node.source_turn is not None]
    noted = {at for at, _ in statements}
    statements += [
        (limit.turn, limit.text)
        for limit in turn.carry.constraints
        if limit.active and limit.turn not in noted
    ]
    return sorted(dict.fromkeys(statements))


def _gathered(turn: Turn) -> list[Line]:
    return (
        gathered_lines(turn)
        if turn.phase > Phase.CONTEXT_GATHERER and turn.folder.has(GatheredContext.FILE)
        else []
    )


def _lines(reader: NodeReader, node_id: str) -> Sequence[Line]:
    node = find_node(reader, node_id)
    return node.items if node else ()
