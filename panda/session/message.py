"""What a message means beside its session: by rules, and by what classifiers say of its parts. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from msgspec import structs

from panda.language.words import FUNCTION_WORDS, split_words
from panda.messages.clauses import (
    Moods,
    best_mood,
    find_statements,
    is_foreign_talk,
    is_pasted,
    is_talk,
    read_clauses,
    typed_sentences,
)
from panda.messages.limits import find_limits
from panda.messages.matching import is_english, is_foreign, is_latin
from panda.messages.mentions import Mention
from panda.messages.periods import find_periods
from panda.messages.questions import asks_for, is_question, plain_recap, wants_whole
from panda.messages.reading import Agreement, Clause, Days, Excluded, Mood, Reading, Referred, overall_mood
from panda.messages.turn_numbers import named_turns
from panda.messages.wording import content_stems, foreign_mood, leaves_out, plain_agreement, plain_mood
from panda.retrieval.relevance import find_entities, find_query_words
from panda.session.pending import agreed_query, answer_of
from panda.session.registry import (
    find_decisions,
    follow_up,
    names,
    replace_references,
)
from panda.session.substitution import ask_anew, ask_in_turn, begins_as_follow_up
from panda.store.carry import Carry, Entity
from panda.store.node_id import NodeKind

_BETTER = 0.05
"""How much more likely answered a message must be, read otherwise than it seems to be meant."""
_MOST_JOINED = 2
"""Telling words that a message has at most which is also read together with the last question."""
_SURELY_TALK = 0.7
"""Probability from which on a message is small talk."""
_SURELY_TALK_FOREIGN = 0.8
"""The same of a message in German, French or Spanish: the classifiers know English alone."""
_RATHER = 0.5
"""Probability from which on a message is rather one thing than another."""
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e", "\u1367")
"""Of Latin, Chinese, Arabic, Greek, Armenian and Ethiopic; a Greek one is also typed as a semicolon."""
_MOST_ASKED_IN_TURN = 3
"""Messages that are read with each other where a short one asks anew of something else."""
_ENDS = (".", "!", "?", ";", "")
_BY_PLACE = ("counted", "rest", "which")
"""How words refer to things of a list by their place or number in it."""


@dataclass(frozen=True, kw_only=True)
class MessageSignals:
    """What classifiers say of a message."""

    moods: Mapping[str, float]  # probability of each mood of the whole
    clauses: Mapping[str, Mapping[Mood, float]]  # the same of each text that may be a clause
    agreement: Agreement
    is_recap: bool
    talk: float  # probability of small talk; 0 where it rather wants to be told what was said
    forgets: float  # probability that something is to be forgotten; 0 where it is not sure


@dataclass(frozen=True)
class References:
    """The references of a message to what was talked about."""

    mentions: tuple[Mention, ...]  # in order
    carry: Carry  # what the session carries

    @property
    def words(self) -> list[str]:
        return [mention.words for mention in self.mentions]

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ref for mention in self.mentions for ref in mention.refs))

    @property
    def entities(self) -> list[Entity]:
        records = {record.ref: record for record in self.carry.registry.records}
        return [records[ref] for ref in self.refs if ref in records]

    def candidates(self) -> list[tuple[str, str, float]]:
        """
        Return ref, text and likelihood by rank of what the first open reference may mean.

        Empty where a rule resolves one. What is meant by its place in a list ("the second") is never open.
        """
        open_ = [mention for mention in self.mentions if not mention.refs and mention.how != "counted"]
        if self.refs or not open_:
            return []
        labels = {record.ref: record.label for record in self.carry.registry.records}
        labels |= {item.ref: item.text for item in self.carry.registry.listing.items if item.ref in labels}
        size = max(1, len(open_[0].options))
        return [(ref, labels[ref], 1 - at / size) for at, ref in enumerate(open_[0].options) if ref in labels]

    def resolved_to(self, ref: str) -> "References":
        """Return the references with the first that was open resolved to an entity."""
        at = next(
            n for n, mention in enumerate(self.mentions) if not mention.refs and mention.how != "counted"
        )
        mentions = [
            replace(mention, refs=(ref,)) if n == at else mention for n, mention in enumerate(self.mentions)
        ]
        return replace(self, mentions=tuple(mentions))

    @property
    def are_pronouns(self) -> bool:
        """Return whether something is resolved, and all of it stands behind a pronoun."""
        resolved = [mention for mention in self.mentions if mention.refs]
        return bool(resolved) and all(mention.how in ("one", "several") for mention in resolved)

    @property
    def are_descriptions(self) -> bool:
        """Return whether something is resolved, and none of it by its place or number in a list."""
        resolved = [mention for mention in self.mentions if mention.refs]
        return bool(resolved) and not any(mention.how in _BY_PLACE for mention in resolved)

    @property
    def are_counted(self) -> bool:
        """Return whether things that were listed are meant by their number, as "both of them"."""
        return any(mention.how == "counted" and mention.refs for mention in self.mentions)

    def unresolved(self) -> "References":
        """Return the references with none resolved."""
        return replace(self, mentions=tuple(replace(mention, refs=()) for mention in self.mentions))

    def resolved_query(self, query: str, written: str) -> str:
        """The query with names for the references, in a model's words if they have every name."""
        resolved = follow_up(query, self.mentions, self.carry)
        resolved = resolved or replace_references(query, self.mentions, self.carry)
        if resolved == query or all(names(written, entity.label) for entity in self.entities):
            return written or resolved
        return resolved


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """What a short message ("for how long?") continues: a statement, list or question of the last turn."""

    option: str  # id of its option of content_reference
    resolved_query: str  # the message joined with what it continues
    stands_with_references: bool  # whether it counts even where a pronoun of the message means something else
    told_ids: frozenset[str] = frozenset()
    """Nodes of the statement that it continues; they hold no answer to it."""


@dataclass(frozen=True, kw_only=True)
class UserMessage:
    """A message and what is known when it is read."""

    query: str
    sent_at: datetime
    carry: Carry  # what the session carries
    references: References  # as rules find them
    pronouns: Sequence[str] = ()  # words that stand for something, where rules find no reference
    candidates: Sequence[str] = ()  # refs that the first open reference may mean
    follow_up: FollowUp | None = None
    names_kept: Callable[[], bool] = lambda: False  # whether each word of it stands in what is kept
    has_documents: bool = False  # whether documents were handed over with it
    measure_answer: Callable[[str, Collection[str]], float] = lambda text, excluded: 0.0
    """
    Return how likely what is saved, without some nodes, answers a text, and how well it covers the words of
    the message: the product of both, 0 to 1.
    """

    @property
    def is_open(self) -> bool:
        """Return whether a question to the user is open."""
        pending = self.carry.pending_clarification
        return pending is not None and pending.status == "open"


@dataclass(frozen=True, kw_only=True)
class Interpretation:
    reading: Reading
    references: References  # with the open one resolved, if it is
    follow_up: FollowUp | None  # what it goes on with, if it does
    resolved_query: (
        str  # with names for what it refers to; "" where a bare yes says it, or nothing is to be said
    )


def interpret(
    message: UserMessage,
    signals: MessageSignals | None,
    *,
    target: str | None = None,
    written: str = "",
) -> Interpretation:
    """
    Return what a message means and what it is about.

    Args:
        signals: None goes by rules and words alone.
        target: What the first open reference means, if it is one of the candidates.
        written: The resolved query in a model's words; it counts if it has every name.
    """
    query = message.query
    references = message.references
    if target in message.candidates:
        references = references.resolved_to(str(target))
    follow_up = None if referred_turns(query) else message.follow_up
    by_pronoun = references.are_pronouns
    goes_on_beside = by_pronoun or (follow_up is not None and follow_up.stands_with_references)
    if references.are_counted or (references.refs and not goes_on_beside):
        follow_up = None
    reading = _read_with(message, references, signals, follow_up)
    answered = answer_of(message.carry.pending_clarification, query, reading)
    if agreed_query(message.carry, answered, query) is not None:
        return Interpretation(reading=reading, references=references, follow_up=follow_up, resolved_query="")
    asked = query if references.refs else asked_part(query, reading)
    named = references.resolved_query(asked, written)
    resolved = follow_up.resolved_query if follow_up and not written else named
    if reading.mood == "asks" and not written and (references.are_descriptions or not references.refs):
        anew, joined = _asked_anew(message, references)
        ways = [way for way in (anew, resolved, named, asked, joined) if way is not None]
        resolved = _likeliest(message, ways)
        drops_follow_up = follow_up is not None and resolved != follow_up.resolved_query
        drops_references = bool(references.refs) and resolved != named
        if drops_follow_up:
            follow_up = None
        if drops_references:
            references = references.unresolved()
        if drops_follow_up or drops_references:
            reading = _read_with(message, references, signals, follow_up)
    return Interpretation(
        reading=reading, references=references, follow_up=follow_up, resolved_query=resolved
    )


def _read_with(
    message: UserMessage, references: References, signals: MessageSignals | None, follow_up: FollowUp | None
) -> Reading:
    goes_on = (follow_up is not None and is_question(message.query)) or message.names_kept()
    return read_message(message, references, signals, goes_on=goes_on)


def _asked_anew(message: UserMessage, references: References) -> tuple[str | None, str | None]:
    """
    Return the last question asked of what a short message names, in the place of what is like it there, and
    the message joined with the words of that question; None where something else says what it refers to.
    """
    recent = [recent_turn.user for recent_turn in message.carry.recent_turns[-_MOST_ASKED_IN_TURN:]]
    if not recent or references.refs:
        return None, None
    last = ask_in_turn(recent)
    is_short = len(content_stems(message.query)) <= _MOST_JOINED
    joined = f"{message.query} {' '.join(find_query_words(last))}" if is_short else None
    return ask_anew(message.query, last), joined


def _likeliest(message: UserMessage, ways: Sequence[str]) -> str:
    """
    Return the way to read a message that what is saved most likely answers; the first, as which it seems to
    be meant, unless another is clearly better.
    """
    going_on = message.follow_up

    def measure(way: str) -> float:
        goes_on = going_on is not None and way == going_on.resolved_query
        return message.measure_answer(way, going_on.told_ids if going_on and goes_on else ())

    first, *others = dict.fromkeys(ways)
    if not others:
        return first
    measured = {first: measure(first) + _BETTER, **{way: measure(way) for way in others}}
    return max(measured, key=measured.__getitem__)


def read_message(
    message: UserMessage, references: References, signals: MessageSignals | None, *, goes_on: bool
) -> Reading:
    """
    Return what a message means.

    Args:
        signals: None goes by rules and words alone.
        goes_on: Whether it is about something that was told or shown before, so that it is no small talk.
    """
    query = message.query
    clauses, statements, mood = _clauses(query, signals)
    if mood == "tells" and _asks_on(message, references):
        mood = "asks"
        clauses = [structs.replace(clause, mood=mood) for clause in clauses]
        statements = []
    exclusions, clears = find_decisions(query, message.carry, references.refs)
    agreement = signals.agreement if signals else plain_agreement(query)
    is_recap = signals.is_recap if signals else plain_recap(query)
    periods = find_periods(query, message.sent_at)
    answers = message.is_open and agreement != "neither"
    talks = _is_only_talk(query, signals) and not answers and not goes_on
    is_recap &= not talks
    if message.has_documents:  # a message beside a document is about that
        is_recap = False
        talks = False
        if mood == "tells" and not statements:
            mood = "orders"
            clauses = [structs.replace(clause, mood=mood) for clause in clauses]
    turns = referred_turns(query)
    asks_for_turns = turns and (_names_only_turns(query, turns) or plain_mood(query) != "tells")
    talks = talks and not asks_for_turns
    if is_recap or talks or (asks_for_turns and statements):  # whatever it looks like
        mood = "tells" if talks else "asks"
        clauses = [structs.replace(clause, mood=mood) for clause in clauses]
        statements = []
    limits = {limit.key: limit.value for limit in message.carry.constraints if limit.active}
    return with_flags(
        query,
        Reading(
            mood=mood,
            clauses=tuple(clauses),
            references=(
                *(Referred(mention.words, mention.refs) for mention in references.mentions),
                *(Referred(words, ()) for words in message.pronouns if not references.mentions),
            ),
            exclusions=exclusions,
            clears=clears,
            periods=tuple(
                Days(str(period.start), str(period.end), query[slice(*period.words)]) for period in periods
            ),
            limits=tuple(find_limits(query, limits)),
            agreement=agreement if message.is_open else None,
            talk=talks,
            recap=is_recap,
            all=wants_whole(query),
            statements=tuple(find_statements(statements)),
        ),
    )


def with_flags(query: str, reading: Reading) -> Reading:
    """Return a reading with what words alone say, whoever read the message."""
    return structs.replace(
        reading,
        references=(*reading.references, *referred_turns(query)),
        pasted=is_pasted(query) and not (reading.talk or _asks(reading)),
        details=asks_for("details", query),
        now=asks_for("now", query),
        address=asks_for("address", query),
    )


def _asks_on(message: UserMessage, references: References) -> bool:
    """Return whether a message only names another thing to ask the last question of: "and my brother's"."""
    recent = message.carry.recent_turns
    if not recent or not is_question(recent[-1].user) or not begins_as_follow_up(message.query):
        return False
    anew, _ = _asked_anew(message, references)
    return anew is not None


def _asks(reading: Reading) -> bool:
    return any(is_question(clause.text) for clause in reading.clauses)


def with_entities_back(reading: Reading, carry: Carry) -> Reading:
    """Return a reading that keeps what was ruled out before and is spoken of again."""
    states = {record.ref: record.state for record in carry.registry.records}
    decided = {excluded.ref for excluded in reading.exclusions}
    spoken = dict.fromkeys(ref for reference in reading.references for ref in reference.refs)
    back = [
        Excluded(ref, "keep", "")
        for ref in spoken
        if states.get(ref, "active") != "active" and ref not in decided
    ]
    return structs.replace(reading, exclusions=(*reading.exclusions, *back))


def references_of(reading: Reading, query: str, carry: Carry) -> References:
    """Return the references of a reading to what was talked about, in their order in the query."""
    turns = set(reading.turns)
    meant = (reference for reference in reading.references if not turns.intersection(reference.refs))
    mentions = (Mention(reference.words, query.find(reference.words), reference.refs) for reference in meant)
    return References(tuple(sorted(mentions, key=lambda mention: mention.start)), carry)


def referred_turns(query: str) -> list[Referred]:
    """Return the turns that a query names by number, each with its words."""
    return [
        Referred(words, tuple(NodeKind.TURN.id(number) for number in numbers))
        for words, numbers in named_turns(query).items()
    ]


def asked_part(query: str, reading: Reading) -> str:
    """Return a query without what it tells."""
    statements = [clause.text for clause in reading.clauses if clause.mood == "tells"]
    if reading.mood == "tells" or not statements:
        return query
    asked = query
    for text in statements:  # what a comma joins to a question is part of it
        behind = query.partition(text)[2].lstrip()
        if text[-1:] in _ENDS or behind[:1] in _ENDS:
            asked = asked.replace(text, "", 1)
    asked = asked.strip(" ,;:–—-.!")
    return query if leaves_out(asked) else asked


def _names_only_turns(query: str, referred: Sequence[Referred]) -> bool:
    """Return whether a query says nothing but which turns it is about, as "turns 3 and 5"."""
    for reference in referred:
        query = query.replace(reference.words, " ")
    return FUNCTION_WORDS.issuperset(word.lower() for word in split_words(query))


def _is_only_talk(query: str, signals: MessageSignals | None) -> bool:
    """
    Return whether a message is small talk and nothing else; one that has a question mark, a name or a number
    is not, whatever the classifier says.
    """
    if signals is None or "?" in query:
        return False
    if is_foreign_talk(query):
        return True
    if signals.talk <= _RATHER:
        return False
    if is_talk(query):
        return True
    least = _SURELY_TALK_FOREIGN if is_foreign(query) else _SURELY_TALK
    return signals.talk >= least and all(word.isalpha() and word.islower() for word in find_entities(query))


def _clauses(query: str, signals: MessageSignals | None) -> tuple[list[Clause], list[str], Mood]:
    sentences = list(typed_sentences(query))
    moods: Moods = {sentence: {plain_mood(sentence): 1.0} for sentence in sentences}
    if not is_latin(query):  # the encoder does not know its script
        is_asked = any(mark in query for mark in _QUESTION_MARKS) or query.rstrip().endswith(";")
        clauses = [Clause(text, "asks") for text in sentences]
        return clauses, [] if is_asked or is_pasted(query) else sentences, "asks"
    if signals is not None:
        moods = {text: dict(moods_) for text, moods_ in signals.clauses.items()}
    if is_foreign(query) or is_foreign_talk(query):  # the classifiers know English alone
        moods = {text: {foreign_mood(text): 1.0} for text in moods}
    for text in moods:
        if text.endswith("?") and not is_english(text):
            moods = {**moods, text: {"asks": 1.0}}
    clauses, statements = read_clauses(query, moods)
    overall = overall_mood(best_mood(moods[sentence]) for sentence in sentences if sentence in moods)
    if overall == "tells" and any(clause.mood == "asks" for clause in clauses):
        overall = "asks"
    return clauses, statements, overall
