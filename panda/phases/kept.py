"""What is kept of what the user told, which of it a wish to forget means, and how that is answered."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msgspec import structs

from panda.documents.memory_file import is_statement
from panda.documents.safe_text import shorten
from panda.language.words import split_terms
from panda.memory.node import Node
from panda.memory.reader import NodeReader
from panda.memory.things import ToldThing
from panda.messages.forget_requests import ForgetRequest, clause_spans, forget_terms, read_forget_choice
from panda.messages.reading import Reading, ToldPlace
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import ClosestLines
from panda.retrieval.relevance import find_query_words
from panda.steps.options import Option
from panda.store.node_id import key_of
from panda.store.records import QueryAnalysis, find

_NEAR = 0.35
_SHARED = 0.3
_WITHIN = 0.1
"""What a kept thing needs to be meant; what shared words add to closeness; how far behind a second may be."""
_SHOWN_CHARS = 60
_MOST_SHOWN = 5
NOT_STORED = "Not stored, as you asked: what you told is taken out of this turn as well."


@dataclass(frozen=True)
class Kept:
    """Something that the user told, with all that was ever told of it."""

    ref: str  # its newest node
    text: str  # as the user told it, or key and value
    label: str  # what it is, without what it says; "" if no key says so
    turns: tuple[int, ...]  # where it was told, ascending
    thing: ToldThing
    place: ToldPlace | None  # where its newest clause stands; None of what is a key alone
    nodes: frozenset[str]  # ids of all that holds of it

    @property
    def words(self) -> str:
        return " ".join([self.label, *(clause.text for clause in self.thing.clauses), self.text])


def kept_things(reader: NodeReader) -> list[Kept]:
    """Return what still holds of what the user told, one entry a thing, the oldest first."""
    things = [_kept(thing, nodes) for thing, nodes in reader.told_things()]
    return sorted(things, key=lambda thing: (thing.turns[-1:], thing.ref))


def _kept(thing: ToldThing, nodes: Sequence[Node]) -> Kept:
    by_key = {key_of(node.id): node for node in nodes}
    ids = frozenset(node.id for node in nodes)
    source_turns = {clause.source_turn for clause in thing.clauses} | {node.source_turn for node in nodes}
    turns = tuple(sorted(turn for turn in source_turns if turn is not None))
    keys = [node for node in nodes if node.title not in {clause.subject.relation for clause in thing.clauses}]
    label = keys[-1].title.replace("_", " ") if keys else ""
    standing = [clause for clause in thing.clauses if clause.subject.relation in by_key]
    if not standing:
        text = nodes[-1].items[0].text.replace("_", " ")
        return Kept(nodes[-1].id, text, label, turns, thing, place=None, nodes=ids)
    clause = standing[-1]
    node = by_key[clause.subject.relation]
    place = ToldPlace(node.id, clause.start, len(clause.sentence))
    return Kept(node.id, clause.text, label, turns, thing, place=place, nodes=ids)


def newest_told(reader: NodeReader, limit: int) -> dict[str, str]:
    """
    The newest sentences that the user told, and keys that no sentence of the same turn gives, each with its
    text: by node id, the oldest first.
    """
    nodes = [*reader.facts(), *reader.preferences()]
    sentences = [node for node in nodes if is_statement(node.title)]
    told_in: dict[int | None, list[str]] = {}
    for node in sentences:
        told_in.setdefault(node.source_turn, []).append(node.items[0].text.casefold())
    texts = [(node.source_turn or 0, node.id, node.items[0].text) for node in sentences]
    for node in nodes:
        value = node.items[0].text.partition(": ")[2].casefold()
        is_told = any(value in sentence for sentence in told_in.get(node.source_turn, ()))
        if not is_statement(node.title) and not is_told:
            texts.append((node.source_turn or 0, node.id, node.items[0].text.replace("_", " ")))
    return {node_id: text for _, node_id, text in sorted(texts)[-limit:]}


def things_of_turns(reader: NodeReader, turn_ids: Collection[str]) -> list[Kept]:
    """Return what the user told in turns that a message names, the oldest first."""
    numbers = {int(key_of(turn_id)) for turn_id in turn_ids}
    return [thing for thing in kept_things(reader) if not numbers.isdisjoint(thing.turns)]


@dataclass(frozen=True)
class Meant:
    """What a message wants forgotten."""

    things: tuple[Kept, ...]  # what it is, or may be, the likeliest first
    is_sure: bool = False  # whether it is said in so many words, and of nothing else


def meant_to_go(turn: Turn, request: ForgetRequest, reader: NodeReader, closest: ClosestLines) -> Meant:
    """
    The kept things that a message may mean. It is sure of one alone: each content word of an order stands in
    it and in no other, but for one that names the value. What names nothing means what the turn before was
    told.
    """
    things = kept_things(reader)
    if not request.terms:
        last = turn.earlier[-1:]
        return Meant(tuple(thing for thing in things if set(thing.turns) & {*last})[:_MOST_SHOWN])
    exact = [thing for thing in things if thing.thing.is_meant_by(request.terms)]
    if not exact and len(request.parts) > 1:  # several things
        exact = [thing for thing in things if any(thing.thing.is_meant_by(part) for part in request.parts)]
        if exact:
            return Meant(tuple(exact)[:_MOST_SHOWN])
    if not exact:  # the words stand in several clauses of a sentence
        exact = [thing for thing in things if thing.place and _sentence_holds(thing, things, request.terms)]
        return Meant(tuple(exact) or _near(turn.query, request.terms, things, closest))
    if len(exact) == 1:
        return Meant(tuple(exact), is_sure=request.kind == "order" and request.is_alone)
    return Meant(tuple(reversed(exact))[:_MOST_SHOWN])


def _sentence_holds(thing: Kept, things: Sequence[Kept], terms: Collection[str]) -> bool:
    """Return whether the sentence that a thing stands in has all the terms, and its clauses one of them."""
    clauses = [clause for other in things for clause in other.thing.clauses if other.ref == thing.ref]
    words = {term for clause in clauses for term in forget_terms(clause.text)}
    own = {term for clause in thing.thing.clauses for term in forget_terms(clause.text)}
    return set(terms) <= words and not own.isdisjoint(terms)


def _near(
    query: str, terms: Collection[str], things: Sequence[Kept], closest: ClosestLines
) -> tuple[Kept, ...]:
    near = closest.rate(query, [Option(thing.ref, thing.text, (thing.ref,)) for thing in things])
    scores: dict[int, float] = {}
    for place, (thing, line) in enumerate(zip(things, near, strict=True)):
        shared = len(set(terms) & terms_of(thing.words)) / len(terms)
        if shared:
            scores[place] = line.prior + _SHARED * shared
    best = max(scores.values(), default=0.0)
    ranked = sorted(scores, key=lambda place: -scores[place])
    fitting = [place for place in ranked if scores[place] >= max(_NEAR, best - _WITHIN)]
    return tuple(things[place] for place in fitting[:_MOST_SHOWN])


def asked_to_forget(turn: Turn, reader: NodeReader) -> list[Kept]:
    """Return what the turn right before asked whether to forget, in the order listed; [] if it did not."""
    pending = turn.carry.pending_clarification
    if pending is None or pending.status != "open" or [pending.asked_turn] != [*turn.earlier[-1:]]:
        return []
    analysis = find(QueryAnalysis, turn.store.turn(pending.asked_turn).directory)
    if analysis is None or not analysis.reading.forgets:
        return []
    return listed_things(analysis.reading, reader)


def listed_things(reading: Reading, reader: NodeReader) -> list[Kept]:
    """The things that a reading means to be forgotten, in its order, as far as they are there."""
    things = kept_things(reader)
    placed = {place.node for place in reading.forget_places}
    return [
        thing
        for ref in reading.forget
        for thing in things
        if thing.ref == ref and (thing.place in reading.forget_places or ref not in placed)
    ]


def chosen_to_go(query: str, offered: Sequence[Kept]) -> tuple[Kept, ...]:
    """
    Of things that were asked about those that an answer names, by places, by words, or all of them; () where
    it declines, asks, tells something of its own, or names none.
    """
    choice = read_forget_choice(query)
    if choice is None:
        return ()
    if choice.places:
        named = tuple(offered[place - 1] for place in sorted(choice.places) if 0 < place <= len(offered))
        return named if len(named) == len(choice.places) else ()
    if choice.is_all or (choice.agrees and len(offered) == 1):
        return tuple(offered)
    fitting = [thing for thing in offered if choice.terms & forget_terms(thing.words)]
    is_named = len(fitting) == 1 and choice.terms <= forget_terms(fitting[0].words)
    return tuple(fitting) if is_named else ()


def with_things(reading: Reading, things: Sequence[Kept], *, asks: bool) -> Reading:
    """The reading of a message by which things are to be forgotten, once the user was asked or at once."""
    places = tuple(thing.place for thing in things if thing.place is not None)
    refs = tuple(dict.fromkeys(thing.ref for thing in things))
    return structs.replace(
        reading, forgets=True, forget=refs, forget_places=places, asks_to_forget=asks, exclusions=()
    )


def why_nothing_goes(turn: Turn) -> str | None:
    """Why a turn forgets nothing whatever it says; None if it may."""
    if turn.metadata.run is not None:
        return "Not forgotten: in a batch nothing is; say it in a turn of its own, or use panda forget."
    if turn.metadata.client is not None:
        return "Not forgotten: over MCP nothing is; say it in a turn at the shell, or use panda forget."
    return None


def forgets_now(turn: Turn) -> bool:
    """Return whether saving a turn removes something from memory, or from the turn itself."""
    reading = turn.reading
    if turn.ending != "approved" or turn.metadata.run is not None:
        return False
    is_order = bool(reading.forget) and not reading.asks_to_forget and why_nothing_goes(turn) is None
    return is_order or bool(reading.not_stored)


def forget_question(turn: Turn, reader: NodeReader) -> str | None:
    """The question that lists what a turn would forget; None if it asks nothing."""
    if not turn.reading.asks_to_forget or why_nothing_goes(turn):
        return None
    things = listed_things(turn.reading, reader)
    lines = [f"{n}. {_shown(thing)}" for n, thing in enumerate(things, 1)]
    if len(things) == 1:
        lead = "Is this to be forgotten, for good? Answer yes or no."
    else:
        lead = "Which of these is to be forgotten, for good? Answer with numbers, all, or none."
    after = ["", _how_turns_go(turn)] if turn.reading.turns else []
    return "\n".join([lead, "", *lines, *after])


def _how_turns_go(turn: Turn) -> str:
    """Say how a turn is forgotten as a whole, which a turn that runs beside it cannot do."""
    numbers = " ".join(key_of(turn_id) for turn_id in turn.reading.turns)
    return f"A turn is forgotten as a whole by a command: panda forget {numbers} --user {turn.store.user}"


def _shown(thing: Kept) -> str:
    others = len({clause.subject for clause in thing.thing.clauses}) - 1
    more = f" (and {others} older)" if others > 0 else ""
    return f"{shorten(thing.text, _SHOWN_CHARS)}{more}"


def answer_to_forgetting(turn: Turn, reader: NodeReader, left: Sequence[str]) -> str:
    """
    Return the text of a turn that forgets: what goes, what of its sentences stays, and where else the words
    stand; never what is forgotten.

    Args:
        left: Places that hold the same and stay as they are.
    """
    if (why := why_nothing_goes(turn)) and turn.reading.forget:
        return why
    things = listed_things(turn.reading, reader)
    if not things and asked_to_forget(turn, reader):
        return "Nothing is forgotten."
    if not things and turn.reading.turns:
        return f"Not forgotten: nothing that is kept was told there. {_how_turns_go(turn)}"
    if not things:
        return "Nothing of the kind is kept."
    lines = []
    for thing in things:
        numbers = ", ".join(map(str, thing.turns))
        source_note = f" (told in turn{'s' if len(thing.turns) > 1 else ''} {numbers})" if thing.turns else ""
        lines.append(f"Forgotten: {_name_of(thing, turn)}{source_note}.")
    for rest in dict.fromkeys(rest for thing in things for rest in _rests(thing, things)):
        lines.append(f"Still kept: {shorten(rest, _SHOWN_CHARS)}")
    lines += [f"Not forgotten: {place}" for place in left]
    return "\n".join(lines)


def _name_of(thing: Kept, turn: Turn) -> str:
    """Return a name for a thing, from its key or from words of the query, never all that was told."""
    if thing.label:
        return thing.label
    terms = forget_terms(thing.text)
    named = [word for word in find_query_words(turn.query) if word.isalpha() and forget_terms(word) & terms]
    is_description = named and forget_terms(" ".join(named)) < terms
    return " ".join(named) if is_description else "what you told"


def _rests(thing: Kept, things: Sequence[Kept]) -> list[str]:
    """The clauses of its newest sentence that stay."""
    going = {(clause.subject, clause.start) for other in things for clause in other.thing.clauses}
    return [
        clause.sentence[start:end]
        for clause in thing.thing.clauses
        for start, end in clause_spans(clause.sentence)
        if (clause.subject, start) not in going
    ]


def terms_of(text: str) -> set[str]:
    return {term for word in find_query_words(text) for term in split_terms(word)}
