"""What the references of a query mean: by rule, and else by a choice among what the session has listed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from panda.choosing.decision import Option
from panda.errors import MemoryNodeError
from panda.language.conversation import asks_again
from panda.language.items import find_pronouns
from panda.language.narrowing import names_nothing
from panda.language.reading import Reading
from panda.memory.reader import NodeReader
from panda.phases.turn import Turn
from panda.retrieval.query_words import find_query_words
from panda.session.carry import Carry, Entity
from panda.session.references import Reference, find_references, follow_up, replace_references
from panda.session.registry import names

_MOST_NODES = 6
_MOST_WORDS = 3
"""How many telling words a query has whose pronoun says what it is about."""
_LEAST_LISTED = 2
_NODES = ("turn:", "memory:", "fact:", "research:", "visit:", "knowledge:")


@dataclass(frozen=True)
class References:
    """The references of one query."""

    found: tuple[Reference, ...]
    """In order."""
    carry: Carry
    """What the session carries."""

    @property
    def words(self) -> list[str]:
        """The words, in order."""
        return [one.words for one in self.found]

    @property
    def refs(self) -> tuple[str, ...]:
        """Everything that they mean."""
        return tuple(dict.fromkeys(ref for one in self.found for ref in one.refs))

    @property
    def entities(self) -> list[Entity]:
        """The same as entities."""
        known = {one.ref: one for one in self.carry.registry.records}
        return [known[ref] for ref in self.refs if ref in known]

    def options(self) -> list[Option]:
        """What the first reference that no rule resolves may mean; an ordinal is no matter of choice."""
        open_ = [one for one in self.found if not one.refs and not one.ordinal]
        if self.refs or not open_:
            return []
        told = {one.ref: one.label for one in self.carry.registry.records}
        told |= {one.ref: one.text for one in self.carry.registry.listing.items if one.ref in told}
        size = max(1, len(open_[0].options))
        return [
            Option(ref, told[ref], (), 1 - at / size)
            for at, ref in enumerate(open_[0].options)
            if ref in told
        ]

    def chosen(self, ref: str) -> "References":
        """The same with what a choice took for the first unresolved one."""
        at = next(n for n, one in enumerate(self.found) if not one.refs and not one.ordinal)
        found = [replace(one, refs=(ref,)) if n == at else one for n, one in enumerate(self.found)]
        return replace(self, found=tuple(found))

    def resolved_query(self, query: str, written: str) -> str:
        """
        The query with names for the references.

        Args:
            query: The raw query.
            written: What a model made of it; it counts if it has every name, or no rule resolves anything.
        """
        resolved = follow_up(query, self.found, self.carry)
        resolved = resolved or replace_references(query, self.found, self.carry)
        if resolved == query or all(names(written, one.label) for one in self.entities):
            return written or resolved
        return resolved


def references_of(turn: Turn) -> References:
    """The references of a turn's query."""
    return References(tuple(find_references(turn.query, turn.carry)), turn.carry)


def references_read(reading: Reading, turn: Turn) -> References:
    """The references of a reading that a model wrote, without turns that are named by number."""
    meant = (one for one in reading.references if not set(one.refs) & set(reading.turns))
    found = (Reference(one.words, turn.query.find(one.words), one.refs) for one in meant)
    return References(tuple(sorted(found, key=lambda one: one.start)), turn.carry)


def target_of(one: Entity, reader: NodeReader) -> tuple[str, int | None]:
    """
    The node that holds an entity, and the turn that it comes from.

    Args:
        one: The entity.
        reader: Knows whether its node is there; the turn stands in for a node that is not.
    """
    source = int((one.source or "t0").removeprefix("t").partition("_")[0])
    if one.target is not None and one.target.startswith(_NODES):
        try:
            reader.load(one.target)
        except MemoryNodeError:
            return f"turn:{source}", source
        return one.target, source
    return f"turn:{source}", source


def nodes_of(references: References, reader: NodeReader) -> list[str]:
    """The nodes that hold what a query refers to."""
    found = (target_of(one, reader)[0] for one in references.entities[:_MOST_NODES])
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Subject:
    """What the last turn was about as a whole, which a pronoun means where it names no single thing."""

    query: str
    """The query with it."""
    title: str
    """What it is."""
    node_id: str
    """The note that the last reply quoted a list of, or the statement that it noted."""
    turn: int
    """The last turn."""

    @property
    def content(self) -> dict[str, object]:
        """It as content_reference."""
        return {"title": self.title, "node_id": self.node_id, "source_turn": self.turn}


def subject_of(turn: Turn, reader: NodeReader) -> Subject | None:
    """
    What a pronoun of a short query means, or what one asks of that names nothing, if the last turn noted a
    statement or quoted a list of one note.

    Args:
        turn: The running turn.
        reader: Knows what the last turn noted and quoted.
    """
    query, last = turn.query, turn.earlier[-1:]
    pronoun = next((one for one in find_pronouns(query) if one.kind != "which"), None)
    is_asked_on = pronoun is not None or names_nothing(query)
    if not last or not is_asked_on or len(find_query_words(query)) > _MOST_WORDS:
        return None
    quoted = {one.origin for one in reader.load(f"turn:{last[0]}").items if one.origin}
    told = [node for node in reader.statements() if node.source_turn == last[0]]
    if told and quoted <= {node.id for node in told}:
        said = " ".join(node.items[0].text for node in told)
        return Subject(f"{query} {said}", said, told[-1].id, last[0])
    listing = turn.carry.registry.listing
    note = next(iter(quoted)) if len(quoted) == 1 else ""
    if not note.startswith("knowledge:") or listing.turn != last[0] or len(listing.items) < _LEAST_LISTED:
        return None
    title = reader.load(note).title
    if pronoun is None:
        return Subject(f"{query} {title}", title, note, last[0])
    end = pronoun.start + len(pronoun.words)
    return Subject(f"{query[: pronoun.start]}{title}{query[end:]}", title, note, last[0])


def kept_content(query: str, carry: Carry, words: Sequence[str]) -> str | None:
    """
    Key of the kept content that a query speaks of; None if it speaks of none.

    Args:
        query: The raw query.
        carry: What the session carries.
        words: Terms of the query that matter.
    """
    entries = carry.content_archive.entries
    named = [one.key for one in entries if one.is_draft and one.key in query]
    if named:
        return named[-1]
    wanted = set(words)
    scores = {one.key: len(wanted & set(one.description.lower().split())) for one in entries}
    found = [one for one in reversed(entries) if one.type.lower() in wanted or scores[one.key] > 1]
    if not found and asks_again(query):
        found = [one for one in reversed(entries) if one.is_draft][:1]
    return max(found, key=lambda one: scores[one.key]).key if found else None
