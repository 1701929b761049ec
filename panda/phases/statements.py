"""What the user tells: what a turn notes of it, and what was told since of what an answer quotes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from panda.documents.evidence import find_claims
from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.documents.text import escape_quote
from panda.language.reading import Statement
from panda.language.statements import says_only, says_otherwise
from panda.language.text import count_kind, wanted_kind
from panda.language.words import is_ordinary, split_terms, split_words
from panda.memory.memory import Action, Plain, listed, normalise_entity, stage_value
from panda.memory.reader import Moment, NodeReader, find_node
from panda.models.contract import Encoder
from panda.phases.evidence import ClosestLines, score_of
from panda.phases.turn import Turn
from panda.retrieval.relevance import find_query_words, folded_names, measure_closeness
from panda.store.fact import Assertion, SaidKind, Subject, Value
from panda.store.records import GatheredItem, Line, Noted, Staged, StagedMemory

_CORRECTED, _BY_WORDS, _AHEAD = 0.7, 0.4, 0.15
"""How close what is corrected is to what corrects it, by words alone too; how much closer than all else."""
_OLDER = ("knowledge:", "memory:", "fact:", "turn:")
"""What a statement may be newer than; pages and research have dates of their own."""
_OF_ONE_THING, _ASKED_FOR = 0.5, 0.3
"""How close a statement is to the line that it outdates, and to the query."""
_OTHER_VALUE = 0.35  # how close it is to one of them where both give a value of one kind
_BEHIND = 0.15  # how much less close to the query than the line a statement is that outdates it
_SOON = 2  # how many statements further a correction stands at most
_MOST = 2


@dataclass(frozen=True)
class Noting:
    user: str  # whose turns
    moment: Moment  # the memory as the turn found it
    encoder: Encoder | None  # finds what a correction corrects; None leaves words to decide

    def of(self, turn: Turn) -> tuple[Noted, ...]:
        if not turn.reading.statements:
            return ()
        given = turn.folder.find(StagedMemory)
        if given is not None and given.noted is not UNSET:
            return given.noted
        noted, staged = _Staging(turn, self).stage_all()
        others = [one for one in given.staged if not one.told] if given else []
        turn.folder.save(StagedMemory(staged=(*others, *staged), noted=tuple(noted), applied=False))
        return tuple(noted)


class _Staging:
    def __init__(self, turn: Turn, noting: Noting) -> None:
        self._turn, self._user, self._encoder = turn, noting.user, noting.encoder
        self._log, self._now = noting.moment.memory.log, turn.context.front.created_at
        self._lists: dict[tuple[str, str], Plain] = {}
        self._staged: dict[tuple[str, str, Action], Staged] = {}

    def stage_all(self) -> tuple[list[Noted], list[Staged]]:
        statements = self._turn.reading.statements
        noted = []
        for n, text in enumerate(dict.fromkeys(one.text for one in statements), 1):
            key = statement_key(self._turn.turn, n)
            own = [one for one in statements if one.text == text]
            self._stage("statement", key, text, text)
            keyed = [made for one in own if one.key is not None and (made := self._keyed(one)) is not None]
            noted += keyed or [self._unkeyed(own[0], key)]
        return noted, list(self._staged.values())

    def _keyed(self, one: Statement) -> Noted | None:
        assert one.key is not None  # the caller looked
        key = self._key_in_full(one, one.key)
        if one.action == "removes":
            return self._removed(one)
        entity = self._entity(one)
        kind: SaidKind = "preference" if one.entity is None else "fact"
        replaces: str | None = None
        value: Plain = one.value
        if one.action == "adds":
            value = listed(self._held(entity, key), value, "adds")
            self._lists[entity, key] = value
            self._stage(kind, key, one.value, one.text, action="adds")
        else:
            held = self._held(entity, key)
            self._stage(kind, key, value, one.text, entity=one.entity)
            if held is not None and held != value:
                replaces = render_value(held)
                self._take_back(entity, key, replaces)
        prefix = "memory" if kind == "preference" else "fact"
        node_id = f"{prefix}:{Subject('local', entity, key).key(self._user)}"
        return Noted(one.text, node_id, key, value, replaces)

    def _key_in_full(self, one: Statement, key: str) -> str:
        entity, words = self._entity(one), {*key.split("_")}
        if one.action != "corrects" or self._held(entity, key) is not None:
            return key
        subjects = (subject for subject in self._log.subjects("local") if subject.entity == entity)
        longer = [subject.relation for subject in subjects if words < {*subject.relation.split("_")}]
        held = [name for name in longer if self._held(entity, name) is not None]
        return held[0] if len(held) == 1 else key

    def _removed(self, one: Statement) -> Noted | None:
        entity, words = self._entity(one), set(split_terms(str(one.value)))
        key = one.key or ""
        held = self._held(entity, key)
        for item in held if isinstance(held, tuple) else (held,):
            if words and words <= set(split_terms(str(item))):
                left = listed(held, item, "removes")
                self._lists[entity, key] = left
                self._stage("preference", key, (item,), one.text, action="removes")
                self._take_back(entity, key, str(item))
                node_id = f"memory:{Subject('local', entity, key).key(self._user)}"
                return Noted(one.text, node_id, key, left or None, str(item))
        return None

    def _unkeyed(self, one: Statement, key: str) -> Noted:
        corrected = self._corrected(one.text) if one.action in ("corrects", "removes") else None
        replaces = None
        if corrected is not None:
            replaces = str(corrected.value.v)
            self._stage("statement", corrected.relation, replaces, one.text, action="retracts")
        return Noted(one.text, f"fact:{key}", None, None, replaces)

    def _corrected(self, text: str) -> Assertion | None:
        standing = list(self._standing())
        near = measure_closeness(text, [str(one.value.v) for one in standing], self._encoder)
        ranked = sorted(zip(near, standing, strict=True), key=lambda pair: -pair[0])
        ahead = ranked[0][0] - (ranked[1][0] if len(ranked) > 1 else 0.0) if ranked else 0.0
        least = _BY_WORDS if self._encoder is None else _CORRECTED
        return ranked[0][1] if ranked and ranked[0][0] >= least and ahead >= _AHEAD else None

    def _take_back(self, entity: str, key: str, value: str) -> None:
        turns = {one.source_turn for one in self._log.of(Subject("local", entity, key))}
        for one in self._standing():
            said = str(one.value.v)
            if one.source_turn in turns and value.casefold() in said.casefold() and says_only(said, key):
                self._stage("statement", one.relation, said, said, action="retracts")

    def _standing(self) -> Iterator[Assertion]:
        for subject in self._log.subjects("local"):
            if is_statement(subject.relation):
                yield from self._log.contenders(subject, now=self._now)[:1]

    def _held(self, entity: str, key: str) -> Plain:
        if (entity, key) in self._lists:
            return self._lists[entity, key]
        winner = next(iter(self._log.contenders(Subject("local", entity, key), now=self._now)), None)
        return winner.value.v if winner is not None else None

    def _entity(self, one: Statement) -> str:
        return f"user:{self._user}" if one.entity is None else normalise_entity(one.entity)

    def _stage(
        self,
        kind: SaidKind,
        key: str,
        value: Plain,
        text: str,
        *,
        entity: str | None = None,
        action: Action = "sets",
    ) -> None:
        one = stage_value(
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
        before = self._staged.get((one.entity, key, action))
        if before is not None and action in ("adds", "removes"):
            both = listed(before.value.v, one.value.v, "adds")
            one = replace(one, value=Value("list", both))
        self._staged[one.entity, key, action] = one


def render_noted(noted: Sequence[Noted], mark: str = "") -> str:
    """
    The lines that say what was noted, with a mark behind each where a list of sources follows.

    >>> print(render_noted([Noted("I moved to Porto.", "memory:location", "location", "Porto", "Lisbon")]))
    Noted: I moved to Porto.
    - location: Porto, instead of: Lisbon
    """
    lines: dict[str, str] = {}
    for one in noted:
        lead = f"Noted: {escape_quote(one.text)}{mark}"
        said = f"{one.key}: {render_value(one.value)}" if one.key else ""
        replaced = f"instead of: {one.replaces}" if one.replaces else ""
        understood = ", ".join(filter(None, [said, replaced]))
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


def told_since(turn: Turn, lines: Sequence[Line], reader: NodeReader, closest: ClosestLines) -> Since:
    """
    The lines of an answer, and in front of each what the user told later and otherwise of the same. Of more
    than two lines none is taken for outdated. What he took back is left out, and where the present alone is
    asked for, all that is outdated.
    """
    told = {one.line.item: one for one in _statements(turn, reader, closest)}
    given = {line.item: line for line in lines}
    first, last = dict[GatheredItem, Line](), dict[GatheredItem, Line]()
    before, gone, lists = set[GatheredItem](), set[GatheredItem](), _lists(reader) if lines and told else []
    few, looked_at = len(lines) <= _MOST, list(lines if told else ())
    for line in looked_at:  # what is added may be outdated too
        item, later = line.item, _later_than(line, [*told.values()], reader)
        (own,) = closest.scored(turn.meant, [line])
        if few and (adds := _adding(turn.meant, line, later)) is not None:
            first[adds.line.item] = adds.line
        listed = next((known for known in lists if item in told and known.holds(line)), None)
        if listed and listed.line.item not in given:
            last[listed.line.item] = listed.line
        near = closest.scored(line.text, [one.line for one in later])
        for further, (one, close) in enumerate(zip(later, near, strict=True)):
            if listed and listed.holds(one.line):
                continue  # it adds to what was told before
            turns = item in told and further < _SOON and says_otherwise(one.line.text)
            corrects = turns and not _terms(one.line.text).isdisjoint(_terms(line.text))
            place = "before" if corrects else _place(turn.meant, own, one, score_of(close))
            if place == "behind" and few:
                last[one.line.item] = one.line
            elif place == "before" and few:
                before.add(item)
                gone |= {item} if corrects or turn.reading.now else set()
                first[one.line.item] = one.line
                looked_at += [one.line] if one.line not in looked_at else []
            elif place == "before" and one.line.item not in given:
                last[one.line.item] = one.line
    newest = sorted(first, key=lambda item: told[item].at, reverse=True)[:_MOST]
    shown = {**{item: first[item] for item in newest}, **given, **dict([*last.items()][:_MOST])}
    every = {item: line for item, line in shown.items() if item not in gone}
    quoted = [item for item in every if item in told]
    for item, line in list(every.items()):  # a key and value that a quoted statement gave is not said again
        value = line.text.partition(": ")[2].casefold()
        source = next((said for said in quoted if value and value in said.text.casefold()), None)
        if source is not None and item not in told and line.node.startswith(("memory:", "fact:")):
            every[source] = replace(every[source], also=(*every[source].also, line.node))
            del every[item]
    leads = {every[item].item: f"Told on {told[item].at:%Y-%m-%d}: " for item in quoted}
    outdated = [every[item].item for item in before if item in every]
    leads |= {item: f"Before: {leads.get(item, '')}" for item in outdated}
    return Since(tuple(every.values()), leads)


@dataclass(frozen=True)
class _List:
    line: Line  # its key and value
    parts: frozenset[str]  # the parts, in lower case
    terms: frozenset[str]  # the stems of its key

    def holds(self, said: Line) -> bool:
        text = said.text.casefold()
        return any(part in text for part in self.parts) and not self.terms.isdisjoint(_terms(said.text))


def _lists(reader: NodeReader) -> list[_List]:
    lists = []
    for node in (*reader.preferences(), *reader.facts()):
        key, _, value = node.items[0].text.partition(": ")
        parts = frozenset(value.casefold().split(", "))
        if len(parts) > 1 and not is_statement(node.title):
            lists.append(_List(node.items[0], parts, frozenset(_terms(key.replace("_", " ")))))
    return lists


def _later_than(line: Line, told: Sequence[_Told], reader: NodeReader) -> Sequence[_Told]:
    node = find_node(reader, line.node) if line.node.startswith(_OLDER) else None
    if node is None:
        return []
    own = next((place for place, one in enumerate(told) if one.line.item == line.item), None)
    if own is not None:
        return told[own + 1 :]
    return [one for one in told if all(one.at > at for at in (node.at, node.changed_at) if at is not None)]


def _adding(query: str, line: Line, later: Sequence[_Told]) -> _Told | None:
    kind = wanted_kind(query)
    if kind not in ("time", "number") or count_kind(line.text, kind):
        return None
    names = {word for word in split_words(line.text.lower()) if word.isalpha() and not is_ordinary(word)}
    for one in reversed(later):
        said = one.line.text
        if not (one.is_asked_on or names.isdisjoint(split_words(said.lower()))) and count_kind(said, kind):
            return one
    return None


def _place(query: str, line: Line, one: _Told, near: float) -> Literal["before", "behind"] | None:
    said, new = one.line.text, folded_names(f"… {one.line.text}") - folded_names(f"… {query}")
    names = folded_names(f"… {line.text}") & folded_names(f"… {said}")
    shared = _terms(f"{line.above} {line.text}") & _terms(said)
    mine, its = _values(line.text), _values(said)
    kinds = {kind for kind, _ in its}
    counts = "number" in kinds and not one.is_asked_on
    other = any(kind in kinds or counts for kind, _ in mine - its)
    differs = other and max(near, score_of(one.line)) >= _OTHER_VALUE
    instead = bool(mine & its) and any(kind in {kind for kind, _ in mine & its} for kind, _ in its - mine)
    is_close = score_of(one.line) >= max(_ASKED_FOR, score_of(line) - _BEHIND)
    answers = (bool(names & new) or is_close) and not one.is_asked_on
    if (shared or names) and (differs or instead or (near >= _OF_ONE_THING and answers)):
        return "before"
    return "behind" if not one.is_asked_on and names & new else None


def _terms(text: str) -> set[str]:
    return {term for word in find_query_words(text) if word.isalpha() for term in split_terms(word)}


def _values(text: str) -> set[tuple[str, str]]:
    return {(claim.kind, claim.value) for claim in find_claims(text)}


def _statements(turn: Turn, reader: NodeReader, closest: ClosestLines) -> list[_Told]:
    """What the user told in other turns, the oldest first."""
    reference = turn.analysis.content_reference
    is_on = reference and is_statement(reference.node_id.removeprefix("fact:"))
    on = reference.source_turn if reference and is_on else None  # the turn that told it
    nodes = [node for node in reader.statements() if node.source_turn != turn.turn and node.at is not None]
    scored = closest.scored(turn.meant, [replace(n.items[0], why=("told since",)) for n in nodes])
    told = []
    for node, line in zip(nodes, scored, strict=True):
        is_asked_on = node.source_turn == on
        if node.at is not None:
            told.append(_Told(replace(line, score=0.0) if is_asked_on else line, node.at, is_asked_on))
    return sorted(told, key=lambda one: one.at)
