"""What is kept of what the user told, which of it a wish to forget means, and how that is answered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from panda.choosing.decision import Option
from panda.documents.memory_file import is_statement
from panda.documents.text import shorten
from panda.language.numbers import ORDINAL_WORDS
from panda.language.words import read_words, split_terms
from panda.memory.reader import NodeReader
from panda.phases.evidence import ClosestLines
from panda.phases.turn import Turn
from panda.retrieval.relevance import find_query_words
from panda.store.records import QueryAnalysis, find

_NEAR, _SHARED, _WITHIN = 0.35, 0.3, 0.1
"""What a kept thing needs to be meant; what shared words add to closeness; how far behind a second may be."""
_SHOWN_CHARS, _MOST_SHOWN, _ANSWER_WORDS = 60, 5, 8
_WISH = frozenset(
    term for word in read_words("conversation_words.txt", "forgets") for term in split_terms(word)
)


@dataclass(frozen=True)
class Kept:
    ref: str  # its node
    text: str  # as the user told it, or key and value
    label: str  # what it is, without what it says
    turn: int | None  # where it was told


def kept_things(reader: NodeReader) -> list[Kept]:
    """The user's sentences, each with the keys that it gave, then the keys that no sentence tells."""
    nodes = [*reader.facts(), *reader.preferences()]
    said = [node for node in nodes if is_statement(node.title)]
    found = {node.id: Kept(node.id, node.items[0].text, "", node.source_turn) for node in said}
    for node in (node for node in nodes if node not in said):
        name, _, value = node.items[0].text.partition(": ")
        own = [one for one in said if value.casefold() in one.items[0].text.casefold()]
        own = [one for one in own if one.source_turn == node.source_turn]
        kept = Kept(node.id, node.items[0].text.replace("_", " "), name.replace("_", " "), node.source_turn)
        found |= {one.id: replace(found[one.id], label=kept.label) for one in own} or {node.id: kept}
    return sorted(found.values(), key=lambda one: (one.turn or 0, one.ref))


def meant_to_go(turn: Turn, reader: NodeReader, closest: ClosestLines) -> tuple[str, ...]:
    """
    The kept things that a wish to forget may mean, the likeliest first: of several none is surely it. One
    that names nothing means what the turn before was told.
    """
    things, words = kept_things(reader), terms_of(turn.query) - _WISH
    if not words:
        last = turn.earlier[-1:]
        return tuple(one.ref for one in things if one.turn in last)
    near = closest.rate(turn.query, [Option(one.ref, one.text, (one.ref,)) for one in things])
    scores = {}
    for one, line in zip(things, near, strict=True):
        shared = len(words & terms_of(f"{one.text} {one.label}")) / len(words)
        if shared:
            scores[one.ref] = line.prior + _SHARED * shared
    best = max(scores.values(), default=0.0)
    ranked = sorted(scores, key=lambda ref: -scores[ref])
    return tuple(ref for ref in ranked if scores[ref] >= max(_NEAR, best - _WITHIN))[:_MOST_SHOWN]


def asked_to_forget(turn: Turn) -> tuple[str, ...]:
    pending = turn.carry.pending_clarification
    if pending is None or pending.status != "open" or [pending.asked_turn] != [*turn.earlier[-1:]]:
        return ()
    analysis = find(QueryAnalysis, turn.store.turn(pending.asked_turn).directory)
    return analysis.reading.forget if analysis else ()


def chosen_to_go(query: str, refs: Sequence[str], reader: NodeReader) -> tuple[str, ...]:
    """Of several that were asked about the one that an answer names, by place or words; () for none."""
    words = query.lower().replace(".", " ").split()
    if len(words) > _ANSWER_WORDS or query.rstrip().endswith("?"):  # a question of its own removes nothing
        return ()
    named = {ORDINAL_WORDS[word] for word in words if word in ORDINAL_WORDS}
    named |= {int(word) for word in words if word.isdecimal()}
    if len(named) == 1 and 0 < (place := named.pop()) <= len(refs):
        return (refs[place - 1],)
    things = [one for one in kept_things(reader) if one.ref in refs]
    terms = terms_of(query)
    fitting = [one.ref for one in things if terms & terms_of(f"{one.text} {one.label}")]
    return tuple(fitting) if len(fitting) == 1 else ()


def said_of_forgetting(turn: Turn, reader: NodeReader) -> str:
    refs = turn.reading.forget
    if refs and turn.folder.read_metadata().run is not None:
        return "Not forgotten: in a batch nothing is; say it in a turn of its own."
    things = {one.ref: one for one in kept_things(reader)}
    if not refs:
        return "Nothing of the kind is kept."
    if len(refs) > 1:
        lines = [f"{n}. {shorten(things[ref].text, _SHOWN_CHARS)}" for n, ref in enumerate(refs, 1)]
        return "\n".join(["Which of these is to be forgotten?", "", *lines])
    one = things.get(refs[0])
    said = terms_of(one.text) if one else set()
    named = [word for word in find_query_words(turn.query) if word.isalpha() and terms_of(word) & said]
    where = f"what you told in turn {one.turn}" if one and one.turn else "it"
    return f"Forgotten: {(one and one.label) or ' '.join(named) or where}."


def terms_of(text: str) -> set[str]:
    return {term for word in find_query_words(text) for term in split_terms(word)}
