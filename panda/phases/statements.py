"""What the user tells: what a turn notes of it, and what was told since of what an answer quotes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from msgspec import UNSET
from msgspec.structs import replace

from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.documents.safe_text import escape_quote
from panda.language.words import is_ordinary, split_terms, split_words
from panda.memory.node import is_statement_id
from panda.memory.reader import Moment, NodeReader, find_node
from panda.memory.user_memory import Action, Plain, listed, normalise_entity, stage_value
from panda.messages.clauses import says_only
from panda.messages.forget_requests import denied_terms, refers_back
from panda.messages.matching import count_kind, wanted_kind
from panda.messages.reading import Statement
from panda.models.kept_encoder import KeptEncoder
from panda.phases.kept import terms_of
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import ClosestLines, score_of
from panda.retrieval.relevance import folded_names, measure_closeness
from panda.retrieval.updates import (
    LEAST_UPDATE,
    asks_for_past,
    begins_with_pronoun,
    is_of_another,
    measure_update,
)
from panda.store.fact_records import Assertion, SaidKind, Subject, Value
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import GatheredItem, Line, Noted, Staged, StagedMemory

_CORRECTED = 0.7
"""Least closeness of a statement to the message that corrects it, by the encoder."""
_BY_WORDS = 0.4
"""The least closeness of both where words alone are compared."""
_AHEAD = 0.15
"""How much closer the corrected statement must be than any other."""
_OLDER = (NodeKind.KNOWLEDGE, NodeKind.MEMORY, NodeKind.FACT, NodeKind.TURN)
"""What a statement may be newer than; pages and research have dates of their own."""
_OF_ONE_THING = 0.5
"""Least closeness of a newer statement to the line that it outdates."""
_REFERS_BACK = 0.35
"""The same of one that begins with a pronoun."""
_OF_QUERY = 0.45
"""Least closeness of a newer statement to the query where it is farther from the line."""
_ASKED_FOR = 0.3
"""Least closeness to the query of a newer statement that adds to a line."""
_SURELY = 0.8
"""Probability from which on a newer statement is shown instead of the one that it outdates."""
_MOST_TURNS_BETWEEN = 3
"""Turns within which what refers to something means what was told right before."""
_Place = Literal["instead", "before", "behind"]
_BEHIND = 0.15
"""How much less close to the query than the outdated line a newer statement may be."""
_MOST = 2
"""Most lines of an answer that can be outdated, and most newer statements that are shown with them."""


@dataclass(frozen=True)
class Noting:
    user: str  # whose turns
    moment: Moment  # the memory as the turn found it
    encoder: KeptEncoder | None  # finds what a correction corrects; None leaves words to decide

    def of(self, turn: Turn) -> tuple[Noted, ...]:
        if not turn.reading.statements:
            return ()
        saved_memory = turn.folder.find(StagedMemory)
        if saved_memory is not None and saved_memory.noted is not UNSET:
            return saved_memory.noted
        noted, staged = _Staging(turn, self).stage_all()
        others = [record for record in saved_memory.staged if not record.told] if saved_memory else []
        turn.folder.save(StagedMemory(staged=(*others, *staged), noted=tuple(noted), applied=False))
        return tuple(noted)


class _Staging:
    def __init__(self, turn: Turn, noting: Noting) -> None:
        self._turn = turn
        self._user = noting.user
        self._encoder = noting.encoder
        self._log = noting.moment.memory.log
        self._now = turn.context.front.created_at
        self._values: dict[Subject, Plain] = {}  # as the statements so far leave them
        self._staged: dict[tuple[str, str, Action], Staged] = {}

    def stage_all(self) -> tuple[list[Noted], list[Staged]]:
        statements = self._turn.reading.statements
        noted = []
        for n, text in enumerate(dict.fromkeys(statement.text for statement in statements), 1):
            key = statement_key(self._turn.turn, n)
            own = [statement for statement in statements if statement.text == text]
            self._stage("statement", key, text, text=text, action="sets")
            keyed = [
                keyed_note
                for statement in own
                if statement.key is not None and (keyed_note := self._keyed(statement)) is not None
            ]
            noted += keyed or [self._unkeyed(own[0], key)]
        return noted, list(self._staged.values())

    def _keyed(self, statement: Statement) -> Noted | None:
        subject = self._subject(statement)
        action: Action = "sets"
        held = self._held(subject)
        value = cast(Plain, statement.value)
        after = value
        gone = held if held != value else None
        if statement.action == "adds":
            action = "adds"
            after = listed(held, value, "adds")
            gone = None
        elif statement.action == "removes":
            words = set(split_terms(str(value)))
            items = held if isinstance(held, tuple) else (held,)
            gone = next((item for item in items if words and words <= set(split_terms(str(item)))), None)
            if gone is None:
                return None
            action = "removes"
            value = (gone,)
            after = listed(held, gone, "removes")
        self._values[subject] = after
        kind: SaidKind = "preference" if statement.entity is None else "fact"
        self._stage(
            kind, subject.relation, value, text=statement.text, action=action, entity=statement.entity
        )
        replaces = None if gone is None else render_value(gone)
        if replaces is not None:
            self._take_back(subject, replaces)
        node_id = f"{'memory' if kind == 'preference' else 'fact'}:{subject.key(self._user)}"
        return Noted(statement.text, node_id, subject.relation, after or None, replaces)

    def _subject(self, statement: Statement) -> Subject:
        """
        Return the subject of a statement; a correction by a part of the key means the only subject that has
        it.
        """
        entity = f"user:{self._user}" if statement.entity is None else normalise_entity(statement.entity)
        subject = Subject("local", entity, statement.key or "")
        if statement.action != "corrects" or self._held(subject) is not None:
            return subject
        others = (other for other in self._log.subjects("local") if other.entity == entity)
        longer = [other for other in others if {*subject.relation.split("_")} < {*other.relation.split("_")}]
        held = [other for other in longer if self._held(other) is not None]
        return held[0] if len(held) == 1 else subject

    def _unkeyed(self, statement: Statement, key: str) -> Noted:
        corrected = self._corrected(statement.text) if statement.action in ("corrects", "removes") else None
        replaces = None
        if corrected is not None:
            replaces = str(corrected.value.v)
            self._stage("statement", corrected.relation, replaces, text=statement.text, action="retracts")
        return Noted(statement.text, NodeKind.FACT.id(key), None, None, replaces)

    def _corrected(self, text: str) -> Assertion | None:
        standing = list(self._standing())
        near = measure_closeness(text, [str(assertion.value.v) for assertion in standing], self._encoder)
        ranked = sorted(zip(near, standing, strict=True), key=lambda pair: -pair[0])
        ahead = ranked[0][0] - (ranked[1][0] if len(ranked) > 1 else 0.0) if ranked else 0.0
        least = _BY_WORDS if self._encoder is None else _CORRECTED
        return ranked[0][1] if ranked and ranked[0][0] >= least and ahead >= _AHEAD else None

    def _take_back(self, subject: Subject, value: str) -> None:
        turns = {assertion.source_turn for assertion in self._log.of(subject)}
        for assertion in self._standing():
            statement_text = str(assertion.value.v)
            is_meant = value.casefold() in statement_text.casefold() and says_only(
                statement_text, subject.relation
            )
            if assertion.source_turn in turns and is_meant:
                self._stage(
                    "statement", assertion.relation, statement_text, text=statement_text, action="retracts"
                )

    def _standing(self) -> Iterator[Assertion]:
        for subject in self._log.subjects("local"):
            if is_statement(subject.relation):
                yield from self._log.contenders(subject, now=self._now)[:1]

    def _held(self, subject: Subject) -> Plain:
        winner = next(iter(self._log.contenders(subject, now=self._now)), None)
        return self._values.get(subject, winner.value.v if winner is not None else None)

    def _stage(
        self, kind: SaidKind, key: str, value: Plain, *, text: str, action: Action, entity: str | None = None
    ) -> None:
        staged = stage_value(
            user=self._user,
            kind=kind,
            relation=key,
            value=value,
            text=text,
            source_turn=self._turn.turn,
            entity=entity,
            action=action,
            told=True,
        )
        before = self._staged.get((staged.entity, key, action))
        if before is not None and action in ("adds", "removes"):
            staged = replace(staged, value=Value("list", listed(before.value.v, staged.value.v, "adds")))
        self._staged[staged.entity, key, action] = staged


def render_noted(noted: Sequence[Noted], mark: str = "") -> str:
    """
    The lines that say what was noted, with a mark behind each where a list of sources follows.

    >>> print(render_noted([Noted("I moved to Porto.", "memory:location", "location", "Porto", "Lisbon")]))
    Noted: I moved to Porto.
    - location: Porto, instead of: Lisbon
    """
    lines: dict[str, str] = {}
    for note in noted:
        lead = f"Noted: {escape_quote(note.text)}{mark}"
        keyed_value = f"{note.key}: {render_value(note.value)}" if note.key else ""
        replaced = f"instead of: {note.replaces}" if note.replaces else ""
        understood = ", ".join(filter(None, [keyed_value, replaced]))
        lines[lead] = lines.get(lead, "") + (f"\n- {understood}" if understood else "")
    return "\n\n".join(lead + rest for lead, rest in lines.items())


@dataclass(frozen=True)
class Since:
    lines: tuple[Line, ...]  # the newest first, then what was said before
    leads: Mapping[GatheredItem, str]  # what is said in front of one: when it was told, or that it was before


@dataclass(frozen=True)
class _Told:
    line: Line  # its score is how close it is to the query
    at: datetime  # when it was told
    is_asked_on: bool
    """Whether the query goes on from it, so that it is no answer unless it gives a value of the same kind."""
    source_turn: int | None

    def goes_on_from(self, earlier: "_Told") -> bool:
        """
        Return whether it says what has become of what was told right before, a few turns ago at most ("they
        moved it to the 9th").
        """
        if self.source_turn is None or earlier.source_turn is None:
            return False
        turns = self.source_turn - earlier.source_turn
        return 0 < turns <= _MOST_TURNS_BETWEEN and refers_back(self.line.text)


def told_since(turn: Turn, lines: Sequence[Line], reader: NodeReader, closest: ClosestLines) -> Since:
    """
    Return the lines of an answer, and in front of each the newer statement of the user that outdates it.

    Of more than two lines, none counts as outdated. Lines that the user has surely corrected are left out
    unless the question asks for the past, and so are all outdated lines where it asks only for the present,
    and statements about another thing than one that answers.
    """
    lines = _of_one_thing(turn, lines)
    statements = {statement.line.item: statement for statement in _statements(turn, reader, closest)}
    quoted = {line.item: line for line in lines}
    few = len(lines) <= _MOST
    kind = wanted_kind(turn.meant)
    asks_past = asks_for_past(turn.meant)
    first = dict[GatheredItem, Line]()
    last = dict[GatheredItem, Line]()
    before = set[GatheredItem]()
    gone = set[GatheredItem]()
    changeable = quoted if statements else {}
    for item, line in changeable.items():
        later = _later_than(line, [*statements.values()], reader)
        (own,) = closest.scored(turn.meant, [line])
        lacks = kind in ("time", "number") and not count_kind(line.text, kind)
        names = {word for word in split_words(line.text.lower()) if not is_ordinary(word)}
        adds = dict[GatheredItem, Line]()
        for later_statement, near in zip(
            later, closest.scored(line.text, [statement.line for statement in later]), strict=True
        ):
            later_line = later_statement.line
            earlier = statements.get(item)
            is_next = earlier is not None and later_statement is later[0]
            goes_on = is_next and earlier is not None and later_statement.goes_on_from(earlier)
            place = (
                "instead" if goes_on else _place(turn.meant, own, later_statement, score_of(near), is_next)
            )
            is_near = later_statement.is_asked_on or not names.isdisjoint(
                split_words(later_line.text.lower())
            )
            if lacks and few and is_near and count_kind(later_line.text, str(kind)):
                adds = {later_line.item: later_line}  # the newest
            if place == "instead" or (place == "before" and (few or earlier is not None)):
                before.add(item)
                is_replaced = place == "instead" and earlier is not None and not asks_past
                if turn.reading.now or is_replaced:
                    gone.add(item)
                first[later_line.item] = later_line
            elif place and later_line.item not in quoted:
                last[later_line.item] = later_line
        first |= adds
    combined = {**_newest_first(first, quoted, statements), **quoted, **dict([*last.items()][:_MOST])}
    standing = {item: line for item, line in combined.items() if item not in gone}
    every = _with_keys_joined(standing, statements)
    leads = {
        line.item: f"Told on {statements[item].at:%Y-%m-%d}: "
        for item, line in every.items()
        if item in statements
    }
    leads |= {
        every[item].item: f"Before: {leads.get(every[item].item, '')}" for item in before if item in every
    }
    return Since(tuple(every.values()), leads)


def _newest_first(
    newer_lines: Mapping[GatheredItem, Line],
    quoted_lines: Mapping[GatheredItem, Line],
    told_by_item: Mapping[GatheredItem, _Told],
) -> dict[GatheredItem, Line]:
    """Return the newest of the statements that outdate something, with the quoted ones, newest first."""

    def told_at(item: GatheredItem) -> datetime:
        return told_by_item[item].at

    newest = sorted(newer_lines, key=told_at, reverse=True)[:_MOST]
    if not newest:
        return {}
    in_front = {item: newer_lines[item] for item in newest}
    in_front |= {item: line for item, line in quoted_lines.items() if item in told_by_item}
    return {item: in_front[item] for item in sorted(in_front, key=told_at, reverse=True)}


def _with_keys_joined(
    lines_by_item: Mapping[GatheredItem, Line], told_by_item: Mapping[GatheredItem, _Told]
) -> dict[GatheredItem, Line]:
    """Return lines without keys whose value a statement among them gives; it names their node as well."""
    joined = dict(lines_by_item)
    for item, line in lines_by_item.items():
        value = item.text.partition(": ")[2].casefold()
        if item in told_by_item or not value or kind_of(line.node) not in (NodeKind.MEMORY, NodeKind.FACT):
            continue
        giving = (other for other in joined if other in told_by_item and value in other.text.casefold())
        source = next(giving, None)
        if source is not None:
            joined[source] = replace(joined[source], also=(*joined[source].also, line.node))
            del joined[item]
    return joined


def _of_one_thing(turn: Turn, lines: Sequence[Line]) -> Sequence[Line]:
    """Return lines without statements of the user that are about another thing than one of them."""
    told_lines = [line for line in lines if is_statement_id(line.node)]
    if turn.reading.all or len(told_lines) < 2:
        return lines
    beside = [
        line
        for line in told_lines
        if any(
            is_of_another(turn.meant, answer.text, line.text)
            and not is_of_another(turn.meant, line.text, answer.text)
            for answer in told_lines
        )
    ]
    return [line for line in lines if line not in beside]


def _later_than(line: Line, statements: Sequence[_Told], reader: NodeReader) -> Sequence[_Told]:
    places = [place for place, statement in enumerate(statements, 1) if statement.line.item == line.item]
    node = find_node(reader, line.node) if kind_of(line.node) in _OLDER else None
    if places or node is None:
        return statements[places[0] :] if places else []
    return [
        statement
        for statement in statements
        if all(statement.at > at for at in (node.at, node.changed_at) if at is not None)
    ]


def _place(query: str, line: Line, statement: _Told, near: float, is_next: bool) -> _Place | None:
    """
    Return where a newer statement is shown beside a line: instead of a line that it surely outdates, before
    one that it rather outdates, behind one that it adds to; None if it is about another thing or is far from
    the query.

    Args:
        near: How close the statement is to the line.
        is_next: Whether the line is the statement that was told right before.
    """
    earlier_text = f"{line.above} {line.text}"
    later_text = statement.line.text
    names = folded_names(f"… {line.text}") & folded_names(f"… {later_text}")
    shares = bool(names) or not terms_of(earlier_text).isdisjoint(terms_of(later_text))
    if not shares or is_of_another(query, earlier_text, later_text):
        return None
    denies = not denied_terms(later_text).isdisjoint(terms_of(earlier_text))
    refers_to_earlier = begins_with_pronoun(later_text)
    least = _REFERS_BACK if refers_to_earlier else _OF_ONE_THING
    is_near = near >= least or score_of(statement.line) >= _OF_QUERY
    is_near |= denies or statement.is_asked_on or (is_next and refers_to_earlier)
    probability = measure_update(query, earlier_text, later_text) if is_near else 0.0
    if probability >= LEAST_UPDATE:
        return "instead" if probability >= _SURELY else "before"
    is_close = score_of(statement.line) >= max(_ASKED_FOR, score_of(line) - _BEHIND)
    new = folded_names(f"… {later_text}") - folded_names(f"… {query}")
    return "behind" if names & new and (is_close or statement.is_asked_on) else None


def _statements(turn: Turn, reader: NodeReader, closest: ClosestLines) -> list[_Told]:
    """Return what the user told in other turns, the oldest first."""
    reference = turn.analysis.content_reference
    is_on = reference and is_statement_id(reference.node_id)
    on = reference.source_turn if reference and is_on else None  # the turn that told it
    nodes = [node for node in reader.statements() if node.source_turn != turn.turn and node.at is not None]
    scored = closest.scored(turn.meant, [replace(n.items[0], why=(Reason.TOLD_SINCE,)) for n in nodes])
    statements = []
    for node, line in zip(nodes, scored, strict=True):
        is_asked_on = node.source_turn == on
        if node.at is not None:
            scored_line = replace(line, score=0.0) if is_asked_on else line
            statements.append(_Told(scored_line, node.at, is_asked_on, node.source_turn))
    return sorted(statements, key=lambda statement: statement.at)
