"""Phase 0: what the query is, what it refers to, what it means and needs (S1 §3.1, S3 §16.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from msgspec import structs

from panda.documents.context import Meta, Phase, Section, Text
from panda.documents.records import encode
from panda.errors import HaltError
from panda.language.dates import find_periods
from panda.language.forgetting import (
    ForgetRequest,
    declines_forgetting,
    declines_storing,
    find_forget_request,
    forget_terms,
    may_wish_to_forget,
    own_sentences,
)
from panda.language.reading import (
    Agreement,
    Clause,
    Days,
    Excluded,
    Mood,
    Reading,
    Referred,
    asks_again,
    asks_for,
    check_reading,
    find_limits,
    named_turns,
    overall_mood,
    plain_recap,
    wants_whole,
)
from panda.language.statements import (
    Moods,
    best_mood,
    find_statements,
    is_pasted,
    is_talk,
    read_clauses,
    says_otherwise,
    typed_sentences,
)
from panda.language.text import is_latin, is_question
from panda.language.things import Mention, find_pronouns, names_nothing
from panda.language.wording import content_stems, is_undecided, leaves_out, plain_agreement, plain_mood
from panda.language.words import FUNCTION_WORDS, is_english, split_terms, split_words, stem
from panda.memory.reader import NodeReader, find_node
from panda.phases.contract import Advance
from panda.phases.evidence import ClosestLines
from panda.phases.kept import (
    Kept,
    Meant,
    asked_to_forget,
    chosen_to_go,
    kept_things,
    meant_to_go,
    newest_told,
    things_of_turns,
    with_things,
)
from panda.phases.named_turns import check_named_turns
from panda.phases.request import ask
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.retrieval.relevance import find_entities, find_names, find_query_words
from panda.session.fold import kept_limits
from panda.session.pending import agreed_query, answer_of
from panda.session.registry import (
    find_decisions,
    find_references,
    follow_up,
    names,
    replace_references,
)
from panda.steps.options import Option
from panda.store.carry import Carry, Entity
from panda.store.layout import DOCUMENTS_JSON, IMAGE_JSON
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import (
    ContentReference,
    DataRequirements,
    Image,
    Intent,
    QueryAnalysis,
    ReferenceResolution,
)
from panda.store.turns import load_picture

_MOST_NODES = 6
_MOST_WORDS = 3  # how many telling words a query has whose pronoun says what it is about
_LEAST_LISTED = 2
_MOST_ENTITIES = 24
_MOST_KEPT = 40  # how many kept things, the newest, a model that writes may forget
_RECENT = 3
_SURELY = 0.5
"""Probability from which on a message asks or tells something, whatever else it sounds like."""


def describe_image(executor: RecipeExecutor, turn: Turn) -> None:
    """
    Write image.json, what the model of EYES says it sees; a description that is there already stays. An image
    that is not the one that was given raises HaltError.
    """
    if turn.image is None:
        return
    if turn.folder.has(IMAGE_JSON):
        turn.count_execution(executor.book.key_for("phase0_describe_image", turn.mode))
        return
    path = turn.folder.paths / turn.image
    picture = load_picture(path)
    if picture.file_name != path.name:
        raise HaltError(
            "the image of the turn has changed since it was given",
            where=str(path),
            fix="ask it as a new turn",
            expected=f"bytes with the digest in its name, {path.name}",
            received=picture.sha256,
        )
    reply = ask(executor, "phase0_describe_image", turn, pictures=(picture,))
    call = turn.calls[-1]
    turn.folder.save(
        Image(
            file=turn.image,
            sha256=picture.sha256,
            media_type=picture.media_type,
            bytes=len(picture.data),
            width=picture.width,
            height=picture.height,
            description=str(reply.values["text"]).strip(),
            recipe=reply.recipe.key,
            layer=reply.recipe.model_layer,
            model=str(call.model),
            model_digest=str(call.hashes["model"]),
        )
    )


@dataclass(frozen=True)
class References:
    found: tuple[Mention, ...]  # in order
    carry: Carry  # what the session carries

    @property
    def words(self) -> list[str]:
        return [one.words for one in self.found]

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ref for one in self.found for ref in one.refs))

    @property
    def entities(self) -> list[Entity]:
        known = {one.ref: one for one in self.carry.registry.records}
        return [known[ref] for ref in self.refs if ref in known]

    def options(self) -> list[Option]:
        """What the first reference that no rule resolves may mean; an ordinal is no matter of choice."""
        open_ = [one for one in self.found if not one.refs and one.how != "counted"]
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
        at = next(n for n, one in enumerate(self.found) if not one.refs and one.how != "counted")
        found = [replace(one, refs=(ref,)) if n == at else one for n, one in enumerate(self.found)]
        return replace(self, found=tuple(found))

    def resolved_query(self, query: str, written: str) -> str:
        """The query with names for the references, in a model's words if they have every name."""
        resolved = follow_up(query, self.found, self.carry)
        resolved = resolved or replace_references(query, self.found, self.carry)
        if resolved == query or all(names(written, one.label) for one in self.entities):
            return written or resolved
        return resolved


def references_read(reading: Reading, turn: Turn) -> References:
    meant = (one for one in reading.references if not set(one.refs) & set(reading.turns))
    found = (Mention(one.words, turn.query.find(one.words), one.refs) for one in meant)
    return References(tuple(sorted(found, key=lambda one: one.start)), turn.carry)


def target_of(one: Entity, reader: NodeReader) -> tuple[str, int | None]:
    """The node that holds an entity, and the turn that it comes from, which stands in for a missing node."""
    source = int((one.source or "t0").removeprefix("t").partition("_")[0])
    is_node = one.target is not None and kind_of(one.target) is not None
    node = find_node(reader, one.target or "") if is_node else None
    return (node.id if node else NodeKind.TURN.id(source)), source


def subject_of(turn: Turn, reader: NodeReader, references: References) -> tuple[str, ContentReference] | None:
    """
    The query with what it goes on with where it is short and has a pronoun or names nothing, and what that
    is: what the last turn noted, the list of one note that it quoted, or what it was asked if it quoted one
    note.
    """
    query, last = turn.query, turn.earlier[-1:]
    pronoun = next((one for one in find_pronouns(query) if one.how != "which"), None)
    speaks_to = not {"you", "your", "u"}.isdisjoint(split_words(query.lower()))
    is_asked_on = pronoun is not None or names_nothing(query) or (leaves_out(query) and not speaks_to)
    if not last or not is_asked_on or len(find_query_words(query)) > _MOST_WORDS:
        return None
    quoted = {one.origin for one in reader.load(NodeKind.TURN.id(last[0])).items if one.origin}
    told = [node for node in reader.statements() if node.source_turn == last[0]]
    if told and quoted <= {node.id for node in told}:
        said = " ".join(node.items[0].text for node in told)
        return f"{query} {said}", ContentReference(said, told[-1].id, last[0])
    listing = turn.carry.registry.listing
    note = next(iter(quoted)) if len(quoted) == 1 else ""
    if kind_of(note) is not NodeKind.KNOWLEDGE:
        return None
    if listing.turn != last[0] or len(listing.items) < _LEAST_LISTED:
        before = " ".join(find_query_words(turn.carry.recent_turns[-1].user))
        asked = ContentReference(before, note, last[0])
        return None if references.refs else (f"{query} {before}", asked)
    if references.refs and pronoun is None and not names_nothing(query):
        return None
    if (node := find_node(reader, note)) is None:  # its owner has moved it since
        return None
    title = node.title
    content = ContentReference(title, note, last[0])
    if pronoun is None:
        return f"{query} {title}", content
    return f"{query[: pronoun.start]}{title}{query[pronoun.start + len(pronoun.words) :]}", content


def kept_content(query: str, carry: Carry, words: Sequence[str]) -> str | None:
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


def read_query(turn: Turn, references: References, reply: Reply, *, goes_on: bool) -> Reading:
    query = turn.query
    pending = turn.carry.pending_clarification
    is_open = pending is not None and pending.status == "open"
    clauses, told, mood = _clauses(query, reply)
    exclusions, clears = find_decisions(query, turn.carry, references.refs)
    signals = _signals(reply)
    agreement = cast(Agreement, signals["agreement"]) if signals else plain_agreement(query)
    is_recap = signals["is_recap"] if signals else plain_recap(query)
    periods = find_periods(query, turn.context.front.created_at)
    answers = is_open and agreement != "neither"
    is_talk = _is_only_talk(query, reply) and not answers and not goes_on and mood != "orders"
    is_recap &= not is_talk
    if turn.documents:  # a message beside a document is about that
        is_recap = False
        is_talk = False
        if mood == "tells" and not told:
            mood = "orders"
            clauses = [structs.replace(clause, mood=mood) for clause in clauses]
    named = _turns_named(turn)
    asks_for_turns = named and (_names_only_turns(query, named) or plain_mood(query) != "tells")
    is_talk = is_talk and not asks_for_turns
    if is_recap or is_talk or (asks_for_turns and told):  # whatever it looks like
        mood = "tells" if is_talk else "asks"
        clauses, told = [structs.replace(one, mood=mood) for one in clauses], []
    return Reading(
        mood=mood,
        clauses=tuple(clauses),
        references=(*(Referred(one.words, one.refs) for one in references.found), *named),
        exclusions=exclusions,
        clears=clears,
        periods=tuple(Days(str(one.start), str(one.end), query[slice(*one.words)]) for one in periods),
        limits=tuple(
            find_limits(query, {one.key: one.value for one in turn.carry.constraints if one.active})
        ),
        agreement=agreement if is_open else None,
        talk=is_talk,
        pasted=mood == "tells" and not is_talk and is_pasted(query),
        recap=is_recap,
        all=wants_whole(query),
        statements=tuple(find_statements(told)),
        details=asks_for("details", query),
        now=asks_for("now", query),
        address=asks_for("address", query),
    )


def written_reading(turn: Turn, reply: Reply, kept: Collection[str]) -> Reading | None:
    if not isinstance(reply.values.get("reading"), dict):
        return None
    pending = turn.carry.pending_clarification
    states = {one.ref: one.state for one in turn.carry.registry.records}
    reading, dropped = check_reading(
        reply.values["reading"],
        query=turn.query,
        refs=states,
        is_open=pending is not None and pending.status == "open",
        kept=kept,
    )
    for part in dropped:
        turn.warn(f"reading: dropped {part}")
    decided = {one.ref for one in reading.exclusions}
    spoken = dict.fromkeys(ref for one in reading.references for ref in one.refs)
    back = [Excluded(ref, "keep", "") for ref in spoken if states[ref] != "active" and ref not in decided]
    return structs.replace(
        reading,
        references=(*reading.references, *_turns_named(turn)),
        exclusions=(*reading.exclusions, *back),
        details=asks_for("details", turn.query),
        now=asks_for("now", turn.query),
        address=asks_for("address", turn.query),
    )


def entity_options(carry: Carry) -> list[Option]:
    place = {one.ref: n for n, one in enumerate(carry.registry.listing.items, 1)}
    newest = sorted(carry.registry.records, key=lambda one: one.turns[-1:], reverse=True)
    ordered = sorted(newest, key=lambda one: place.get(one.ref, len(place) + 1))
    listed = {ref: f"number {n} of the last list, " for ref, n in place.items()}
    return [
        Option(one.ref, f"{one.label} ({listed.get(one.ref, '')}{one.state})")
        for one in ordered[:_MOST_ENTITIES]
    ]


def _turns_named(turn: Turn) -> list[Referred]:
    named = named_turns(turn.query).items()
    return [
        Referred(words, tuple(NodeKind.TURN.id(number) for number in numbers)) for words, numbers in named
    ]


def _names_only_turns(query: str, named: Sequence[Referred]) -> bool:
    """Whether a query says nothing but which turns it is about, as "turns 3 and 5"."""
    for reference in named:
        query = query.replace(reference.words, " ")
    return FUNCTION_WORDS.issuperset(word.lower() for word in split_words(query))


def _is_only_talk(query: str, reply: Reply) -> bool:
    """
    Return whether a message is small talk and nothing else.

    One that has a question mark, a name, a number or a word of its own, or that surely asks or tells
    something, is not, whatever the fit says.
    """
    signals = _signals(reply)
    if not signals or not signals["is_talk"] or "?" in query:
        return False
    if is_talk(query):
        return True
    moods = signals["mood"]
    is_statement = max(moods.get("asks", 0.0), moods.get("tells", 0.0)) >= _SURELY
    return is_english(query) and not (is_statement or find_entities(query))


def _clauses(query: str, reply: Reply) -> tuple[list[Clause], list[str], Mood]:
    sentences = list(typed_sentences(query))
    moods: Moods = {one: {plain_mood(one): 1.0} for one in sentences}
    if not is_latin(query):  # the encoder does not know its script
        is_asked = any(mark in query for mark in _QUESTION_MARKS) or query.rstrip().endswith(";")
        clauses = [Clause(text, "asks") for text in sentences]
        return clauses, [] if is_asked or is_pasted(query) else sentences, "asks"
    if signals := _signals(reply):
        moods = dict(signals["clauses"])
    for text in moods:
        if text.endswith("?") and not is_english(text):  # the fit has seen no other language
            moods = {**moods, text: {"asks": 1.0}}
    clauses, told = read_clauses(query, moods)
    overall = overall_mood(best_mood(moods[one]) for one in sentences if one in moods)
    if overall == "tells" and any(clause.mood == "asks" for clause in clauses):
        overall = "asks"
    return clauses, told, overall


_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e", "\u1367")
"""Of Latin, Chinese, Arabic, Greek, Armenian and Ethiopic; a Greek one is also typed as a semicolon."""
_ENDS = (".", "!", "?", ";", "")


def _asked(query: str, reading: Reading) -> str:
    told = [one.text for one in reading.clauses if one.mood == "tells"]
    if reading.mood == "tells" or not told:
        return query
    asked = query
    for text in told:  # what a comma joins to a question is part of it
        behind = query.partition(text)[2].lstrip()
        if text[-1:] in _ENDS or behind[:1] in _ENDS:
            asked = asked.replace(text, "", 1)
    asked = asked.strip(" ,;:–—-.!")
    return query if leaves_out(asked) else asked


def _is_beside_forgetting(statement: str, meant: Meant) -> bool:
    """Whether a statement of a message that forgets tells something of its own, to be kept."""
    terms = {term for one in meant.things for term in forget_terms(one.words)}
    return find_forget_request(statement) is None and terms.isdisjoint(forget_terms(statement))


def _signals(reply: Reply) -> Mapping[str, Any]:
    """Return what heads say of the message, as in panda/offline/query_analysis.py; empty without any."""
    return reply.signals


@dataclass(frozen=True)
class QueryAnalyzer:
    """Writes §0, image.json and query_analysis.json."""

    number = Phase.QUERY_ANALYZER
    layer = "REFLEX"

    executor: RecipeExecutor  # asks the recipes
    reader: NodeReader  # loads the nodes that a reference may mean
    closest: ClosestLines  # finds what a wish to forget means

    def run(self, turn: Turn) -> Advance:
        self.reader.check_memory()
        describe_image(self.executor, turn)
        recent = turn.recent(_RECENT)
        recipe = self.executor.book.recipe_for("phase0_query_analyzer", turn.mode)
        references = References(tuple(find_references(turn.query, turn.carry)), turn.carry)
        known = {stem(word.lower()) for _, said in recent for word in split_words(said)}
        words = references.words or [one.words for one in find_pronouns(turn.query, known)]
        named = references.options()
        targets = [*named, *self._targets(recent)] if words and not references.refs else []
        told = newest_told(self.reader, _MOST_KEPT) if self.executor.writes(recipe.key) else {}
        kept = [Option(node_id, text, (node_id,)) for node_id, text in told.items()]
        reply = ask(
            self.executor,
            "phase0_query_analyzer",
            turn,
            options={
                "content_reference": targets,
                "entities": entity_options(turn.carry) if self.executor.writes(recipe.key) else [],
                "kept": kept,
            },
            variables={
                "names": ", ".join(find_names(turn.query)),
                "today": turn.today,
            },
            extra={
                "raw_query": turn.query,
                "turn_summaries": "\n".join(f"Turn {n}: {said}" for n, said in recent),
            },
        )
        values = reply.values
        target = next((option for option in targets if option.id == values.get("content_reference")), None)
        written = written_reading(turn, reply, [one.id for one in kept])
        if written is not None:
            references = references_read(written, turn)
            words = references.words or ([target.text] if target else [])
        elif target in named and target is not None:
            references = references.chosen(target.id)
        is_own = written is not None or bool(_turns_named(turn))  # what it is about does not come from before
        subject = None if is_own else subject_of(turn, self.reader, references)
        words = words or ([turn.query] if subject else [])
        content = subject[1] if subject else self._content(references, target)
        if content is None and words and turn.documents:  # "this" is what was handed over
            title = ", ".join(document.name for document in turn.documents)
            content = ContentReference(title, turn.document_nodes[0], None)
        goes_on = (subject is not None and is_question(turn.query)) or self._names_kept(turn.query)
        reading = written or read_query(turn, references, reply, goes_on=goes_on)
        reading = self._with_memory(turn, reading, reply, is_written=written is not None)
        if turn.documents and turn.mode == "chat" and not reading.statements:
            is_own = is_question(turn.query) and bool(content_stems(turn.query))
            reading = structs.replace(reading, of_documents=not is_own)
        asked = turn.query if written or references.refs else _asked(turn.query, reading)
        pending = answer_of(turn.carry.pending_clarification, turn.query, reading)
        resolved = agreed_query(turn.carry, pending, turn.query)
        if written is not None:
            said = values["resolved_query"].strip()
            resolved = said if said not in ("", turn.query.strip()) else resolved or turn.query
        elif subject is not None:
            resolved = resolved or subject[0]
        prices = values["needs_current_prices"]
        intent: Intent = values["intent"] if values["intent"] in get_args(Intent) else "query"
        is_decided = bool(_signals(reply)) or bool(turn.documents)
        if intent == "greeting" and not reading.talk and is_decided:
            intent = "query"
        live = values["needs_live_data"] and (written is not None or prices or not reading.details)
        ages = "price" if prices else "availability" if live else None  # as content types age
        terms = [word.lower() for word in find_query_words(turn.query)]
        nodes = (target_of(one, self.reader)[0] for one in references.entities[:_MOST_NODES])
        analysis = QueryAnalysis(
            original_query=turn.query,
            resolved_query=resolved or references.resolved_query(asked, values["resolved_query"]),
            reference_resolution=ReferenceResolution(
                status="not_needed" if not words else "resolved" if content else "failed",
                original_references=tuple(words),
                resolved_to=content.title if content else None,
            ),
            query_type=values["query_type"],
            intent=intent,
            entities=tuple(values.get("entities") or find_entities(turn.query)),
            user_purpose=values.get("user_purpose"),
            data_requirements=DataRequirements(prices, live, values.get("freshness") or ages),
            content_reference=content,
            reasoning=values.get("reasoning"),
            references=references.refs,
            reference_nodes=tuple(dict.fromkeys(nodes)),
            constraints=kept_limits(reading.limits),
            pending=pending,
            kept_content=kept_content(turn.query, turn.carry, terms) or None,
            reading=reading,
        )
        meta = encode(analysis)
        del meta["original_query"], meta["reading"]
        if analysis.resolved_query == turn.query:
            meta["resolved_query"] = None  # §0 holds a long query once
        places = ["§0.raw_query", *([IMAGE_JSON] if turn.image else [])]
        if turn.documents:
            places.append(DOCUMENTS_JSON)
            meta["documents"] = [document.name for document in turn.documents]
        provenance = {"source_type": "user_query", "node_ids": [], "provenance": places}
        section = Section(Phase.QUERY_ANALYZER, (Text(turn.query), Meta({**provenance, **meta})))
        return Advance(section, (analysis,))

    def _names_kept(self, query: str) -> bool:
        terms, words = set(split_terms(query)), {word.lower() for word in split_words(query)}
        return FUNCTION_WORDS.isdisjoint(words) and not is_talk(query) and self.reader.holds_words(terms)

    def _with_memory(self, turn: Turn, reading: Reading, reply: Reply, *, is_written: bool) -> Reading:
        """The reading with what is to be forgotten, and what is not to be stored."""
        if declines_storing(turn.query) and forget_terms(turn.query):
            told = tuple(one.text for one in reading.clauses if not is_question(one.text)) or (turn.query,)
            mood: Mood = "asks" if any(is_question(one.text) for one in reading.clauses) else "tells"
            clauses = tuple(
                structs.replace(one, mood="asks" if is_question(one.text) else "tells")
                for one in reading.clauses
            )
            return structs.replace(
                reading, mood=mood, clauses=clauses, statements=(), exclusions=(), not_stored=told
            )
        meant, asks = self._meant_to_go(turn, reading, reply, is_written=is_written)
        if meant is not None:
            clauses = tuple(structs.replace(one, mood="orders") for one in reading.clauses)
            statements = [one for one in reading.statements if _is_beside_forgetting(one.text, meant)]
            changed = structs.replace(reading, mood="orders", clauses=clauses, statements=tuple(statements))
            return with_things(changed, meant.things, asks=asks)
        if reading.forgets:
            return structs.replace(reading, forgets=False, forget=())
        return reading

    def _meant_to_go(
        self, turn: Turn, reading: Reading, reply: Reply, *, is_written: bool
    ) -> tuple[Meant | None, bool]:
        """
        What is to be forgotten, None if nothing is, and whether the user is asked first: an order in the
        user's own words that means one thing word for word is carried out, and so is what answers the
        question of the turn before; all else is asked about.
        """
        offered = asked_to_forget(turn, self.reader)
        if chosen := chosen_to_go(turn.query, offered):
            return Meant(chosen, is_sure=True), False
        if offered and (declines_forgetting(turn.query) or is_undecided(turn.query)):
            return Meant(()), False
        request = find_forget_request(turn.query)
        if request is None and declines_storing(turn.query):
            request = ForgetRequest("wish", frozenset())
        if request is not None and request.is_forget and reading.turns:
            saved = [turn_id for turn_id in reading.turns if turn.store.has(int(key_of(turn_id)))]
            check_named_turns(reading, saved, turn.store)
            things = things_of_turns(self.reader, reading.turns)
            return Meant(tuple(things)), bool(things)
        if is_written:
            if not reading.forget:
                return None, False
            named = [one for one in kept_things(self.reader) if not one.nodes.isdisjoint(reading.forget)]
            return self._of_writer(request, named)
        signals = _signals(reply)
        wish = signals["forgets"] if signals else 0.0
        is_wished = wish > 0
        if request is None:
            if not is_wished or not may_wish_to_forget(turn.query):
                return None, False
            request = ForgetRequest("wish", forget_terms(" ".join(own_sentences(turn.query))))
            tells = signals["mood"]["tells"] > wish
            if tells and says_otherwise(turn.query):  # it corrects
                return None, False
        is_sure = is_wished or request.is_forget
        if not is_wished and reading.exclusions:
            return None, False
        meant = meant_to_go(turn, request, self.reader, self.closest)
        if not is_wished and not (meant.is_sure if not request.is_forget else meant.things):
            return None, False
        return meant, bool(meant.things) and not (meant.is_sure and is_sure)

    def _of_writer(self, request: ForgetRequest | None, named: Sequence[Kept]) -> tuple[Meant | None, bool]:
        """What a model that writes wants forgotten: it is asked about unless code reads the same order."""
        if request is None or request.kind == "wish" or not request.is_alone:
            return Meant(tuple(named)), True
        exact = [one for one in kept_things(self.reader) if one.thing.holds(request.terms)]
        is_sure = len(exact) == 1 and exact[0] in named
        return Meant(tuple(exact if is_sure else named), is_sure=is_sure), not is_sure

    def _content(self, references: References, target: Option | None) -> ContentReference | None:
        entities = references.entities
        if entities:
            node_id, source = target_of(entities[0], self.reader)
            title = ", ".join(one.label for one in entities)
            return ContentReference(title, node_id, source)
        return ContentReference(target.text, target.id, None) if target else None

    def _targets(self, recent: Sequence[tuple[int, str]]) -> list[Option]:
        found: dict[str, Option] = {}
        for number, _ in reversed(recent):
            waiting = list(self.reader.load(NodeKind.TURN.id(number)).links)
            while waiting:
                node_id = waiting.pop(0)
                node = self.reader.load(node_id)
                waiting += [link for link in node.links if link not in found]
                if kind_of(node_id) is NodeKind.VISIT:
                    found.setdefault(node_id, Option(node_id, node.title, (node_id,)))
        return list(found.values())
