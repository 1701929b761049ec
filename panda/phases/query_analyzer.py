"""Phase 0: what the query is, what it refers to, what it means and needs (S1 §3.1, S3 §16.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast, get_args

from msgspec import structs

from panda.documents.context import Meta, Phase, Section, Text
from panda.documents.record_codec import encode
from panda.documents.safe_text import shorten
from panda.errors import HaltError
from panda.language.words import FUNCTION_WORDS, split_terms, split_words, stem
from panda.memory.reader import NodeReader, find_node
from panda.messages.clauses import (
    is_talk,
)
from panda.messages.forget_requests import (
    ForgetRequest,
    declines_forgetting,
    declines_storing,
    find_forget_request,
    forget_terms,
    may_wish_to_forget,
    own_sentences,
)
from panda.messages.mentions import find_pronouns, names_nothing
from panda.messages.questions import asks_again, is_question
from panda.messages.reading import Mood, Reading, check_reading
from panda.messages.wording import content_stems, is_undecided, leaves_out
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
from panda.phases.phase_contract import PhaseResult
from panda.phases.recipe_request import ask, describe_turns
from panda.phases.running_turn import Turn
from panda.phases.saved_answers import SavedAnswers
from panda.phases.turn_evidence import ClosestLines
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.relevance import find_entities, find_names, find_query_words
from panda.session.fold import kept_limits
from panda.session.message import (
    FollowUp,
    References,
    UserMessage,
    interpret,
    references_of,
    with_entities_back,
    with_flags,
)
from panda.session.pending import agreed_query, answer_of
from panda.session.registry import (
    find_references,
)
from panda.steps.all_steps import IMAGE_DESCRIPTION, QUERY_ANALYSIS
from panda.steps.inputs import QueryInputs
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
    QueryType,
    ReferenceResolution,
)
from panda.store.turns import load_picture

_MOST_NODES = 6
_MOST_WORDS = 3  # how many telling words a query has whose pronoun says what it is about
_LEAST_LISTED = 2
_MOST_ENTITIES = 24
_MOST_KEPT = 40  # how many kept things, the newest, a prompt offers to be forgotten
_RECENT = 3


def describe_image(executor: RecipeExecutor, turn: Turn) -> None:
    """
    Write image.json, what the model of EYES says it sees; a description that is there already stays. An image
    that is not the one that was given raises HaltError.
    """
    if turn.image is None:
        return
    if turn.folder.has(IMAGE_JSON):
        turn.count_execution(executor.book.key_for(IMAGE_DESCRIPTION.name, turn.mode))
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
    reply = ask(executor, IMAGE_DESCRIPTION, turn, pictures=(picture,))
    call = turn.calls[-1]
    turn.folder.save(
        Image(
            file=turn.image,
            sha256=picture.sha256,
            media_type=picture.media_type,
            bytes=len(picture.data),
            width=picture.width,
            height=picture.height,
            description=reply.content.text.strip(),
            recipe=reply.recipe.key,
            layer=reply.recipe.model_layer,
            model=str(call.model),
            model_digest=str(call.hashes["model"]),
        )
    )


def target_of(entity: Entity, reader: NodeReader) -> tuple[str, int | None]:
    """The node that holds an entity, and the turn that it comes from, which stands in for a missing node."""
    source = int((entity.source or "t0").removeprefix("t").partition("_")[0])
    is_node = entity.target is not None and kind_of(entity.target) is not None
    node = find_node(reader, entity.target or "") if is_node else None
    return (node.id if node else NodeKind.TURN.id(source)), source


_ANSWERED_CHARS = 160
"""How much of the last answer a query that goes on with it is read with."""
_LAST = "last_answer"
"""Id of the option for what a short message goes on with."""


def find_follow_up(turn: Turn, reader: NodeReader) -> tuple[FollowUp, ContentReference] | None:
    """
    Return what a query goes on with that is short and has a pronoun or names nothing: what the last turn
    noted, the list of one note that it quoted, or what it was asked.
    """
    query = turn.query
    last = turn.earlier[-1:]
    pronoun = next((candidate for candidate in find_pronouns(query) if candidate.how != "which"), None)
    speaks_to = not {"you", "your", "u"}.isdisjoint(split_words(query.lower()))
    is_asked_on = pronoun is not None or names_nothing(query) or (leaves_out(query) and not speaks_to)
    if not last or not is_asked_on or len(content_stems(query)) > _MOST_WORDS:
        return None

    def follow_up(
        resolved_query: str, reference: ContentReference, *, stands: bool, told_ids: Collection[str] = ()
    ) -> tuple[FollowUp, ContentReference]:
        going_on = FollowUp(
            option=_LAST,
            resolved_query=resolved_query,
            stands_with_references=stands,
            told_ids=frozenset(told_ids),
        )
        return going_on, reference

    node = reader.load(NodeKind.TURN.id(last[0]))
    quoted = {item.origin for item in node.items if item.origin}
    statements = [statement for statement in reader.statements() if statement.source_turn == last[0]]
    if statements and quoted <= {statement.id for statement in statements}:
        statement_text = " ".join(statement.items[0].text for statement in statements)
        ids = [statement.id for statement in statements]
        reference = ContentReference(statement_text, statements[-1].id, last[0])
        return follow_up(f"{query} {statement_text}", reference, stands=True, told_ids=ids)
    listing = turn.carry.registry.listing
    note = next(iter(quoted)) if len(quoted) == 1 else ""
    is_of_note = kind_of(note) is NodeKind.KNOWLEDGE
    if not is_of_note or listing.turn != last[0] or len(listing.items) < _LEAST_LISTED:
        asked = turn.carry.recent_turns[-1].user
        if not is_of_note and not is_question(asked):
            return None
        before = " ".join(find_query_words(asked))
        answered = next((item for item in node.items if item.origin in quoted), None)
        about = f"{before} {shorten(answered.text, _ANSWERED_CHARS)}" if answered else before
        source = (answered and answered.origin) or node.id
        return follow_up(f"{query} {about}", ContentReference(before, source, last[0]), stands=False)
    if (owner := find_node(reader, note)) is None:  # it was moved since
        return None
    content = ContentReference(owner.title, note, last[0])
    if pronoun is None:
        return follow_up(f"{query} {owner.title}", content, stands=names_nothing(query))
    behind = query[pronoun.start + len(pronoun.words) :]
    return follow_up(f"{query[: pronoun.start]}{owner.title}{behind}", content, stands=True)


def kept_content(query: str, carry: Carry, words: Sequence[str]) -> str | None:
    entries = carry.content_archive.entries
    named = [entry.key for entry in entries if entry.is_draft and entry.key in query]
    if named:
        return named[-1]
    wanted = set(words)
    scores = {entry.key: len(wanted & set(entry.description.lower().split())) for entry in entries}
    matching = [entry for entry in reversed(entries) if entry.type.lower() in wanted or scores[entry.key] > 1]
    if not matching and asks_again(query):
        matching = [entry for entry in reversed(entries) if entry.is_draft][:1]
    return max(matching, key=lambda entry: scores[entry.key]).key if matching else None


def entity_options(carry: Carry) -> list[Option]:
    place = {item.ref: n for n, item in enumerate(carry.registry.listing.items, 1)}
    newest = sorted(carry.registry.records, key=lambda entity: entity.turns[-1:], reverse=True)
    ordered = sorted(newest, key=lambda entity: place.get(entity.ref, len(place) + 1))
    listed = {ref: f"number {n} of the last list, " for ref, n in place.items()}
    return [
        Option(entity.ref, f"{entity.label} ({listed.get(entity.ref, '')}{entity.state})")
        for entity in ordered[:_MOST_ENTITIES]
    ]


def _is_beside_forgetting(statement: str, meant: Meant) -> bool:
    """Return whether a statement of a message that forgets tells something of its own, to be kept."""
    terms = {term for thing in meant.things for term in forget_terms(thing.words)}
    return find_forget_request(statement) is None and terms.isdisjoint(forget_terms(statement))


def _wish_to_forget(values: Mapping[str, Any]) -> bool | None:
    """Return whether a reading says that something is to be forgotten; None if it says nothing of it."""
    wish = values.get("forgets")
    if isinstance(wish, bool):
        return wish
    return False if "forget" in values and not values["forget"] else None


def _resolution_status(
    references: Sequence[str], content: ContentReference | None
) -> Literal["not_needed", "resolved", "failed"]:
    """Return whether what a query refers to was found; "not_needed" if it refers to nothing."""
    if not references:
        return "not_needed"
    return "failed" if content is None else "resolved"


@dataclass(frozen=True)
class QueryAnalyzer:
    """Writes §0, image.json and query_analysis.json."""

    number = Phase.QUERY_ANALYZER
    layer = "REFLEX"

    executor: RecipeExecutor  # asks the recipes
    reader: NodeReader  # loads the nodes that a reference may mean
    closest: ClosestLines  # finds what a wish to forget means
    saved: SavedAnswers  # says which way to read a reference is answered

    def run(self, turn: Turn) -> PhaseResult:
        self.reader.check_memory()
        describe_image(self.executor, turn)
        recent = turn.recent(_RECENT)
        references = References(tuple(find_references(turn.query, turn.carry)), turn.carry)
        recent_stems = {stem(word.lower()) for _, summary in recent for word in split_words(summary)}
        pronouns: list[str] = []
        if not references.words:
            pronouns = [pronoun.words for pronoun in find_pronouns(turn.query, recent_stems)]
        candidates = references.candidates()
        targets: list[Option] = []
        if (references.words or pronouns) and not references.refs:
            targets = [Option(ref, text, (), share) for ref, text, share in candidates]
            targets += self._targets(recent)
        going_on = find_follow_up(turn, self.reader)
        if going_on:
            targets.append(Option(_LAST, str(going_on[1].title)))
        message = UserMessage(
            query=turn.query,
            sent_at=turn.context.front.created_at,
            carry=turn.carry,
            references=references,
            pronouns=pronouns,
            candidates=[ref for ref, _, _ in candidates],
            follow_up=going_on[0] if going_on else None,
            names_kept=partial(self._names_kept, turn.query),
            has_documents=bool(turn.documents),
            measure_answer=partial(self.saved.measure, turn),
        )
        kept_options = [
            Option(node_id, text, (node_id,))
            for node_id, text in newest_told(self.reader, _MOST_KEPT).items()
        ]
        pending = turn.carry.pending_clarification
        recipe = self.executor.book.recipe_for(QUERY_ANALYSIS.name, turn.mode, turn.intent)
        reply = ask(
            self.executor,
            QUERY_ANALYSIS,
            turn,
            options={
                "content_reference": targets,
                "entities": entity_options(turn.carry),
                "kept": kept_options,
            },
            variables={
                "names": ", ".join(find_names(turn.query)),
                "today": turn.today,
                "open_question": pending.message if pending and pending.status == "open" else "",
            },
            extra={
                "raw_query": turn.query,
                "turn_summaries": describe_turns(turn, recipe, _RECENT),
            },
            inputs=QueryInputs(message=message),
        )
        analysis_reply = reply.content
        target = next((option for option in targets if option.id == analysis_reply.content_reference), None)
        written = analysis_reply.reading
        resolved = analysis_reply.resolved_query.strip()
        if written is not None:
            reading = self._checked(turn, written, [option.id for option in kept_options])
            references = references_of(reading, turn.query, turn.carry)
        else:  # a recipe that does not ask for it: rules read the message
            chosen = target.id if target else None
            meaning = interpret(message, None, target=chosen, written=resolved)
            reading = meaning.reading
            references = meaning.references
            if meaning.follow_up:
                target = next(option for option in targets if option.id == _LAST)
            resolved = meaning.resolved_query
            written = {}
        goes_on = going_on[1] if going_on and target and target.id == _LAST else None
        content = goes_on or self._content(references, target)
        words = references.words
        if not words and goes_on:
            words = [turn.query]
        elif not words and target:
            words = [target.text]
        if content is None and words and turn.documents:  # "this" is what was handed over
            title = ", ".join(document.name for document in turn.documents)
            content = ContentReference(title, turn.document_nodes[0], None)
        reading = self._with_memory(turn, reading, _wish_to_forget(written))
        if turn.documents and turn.mode == "chat" and not reading.statements:
            is_own = is_question(turn.query) and bool(content_stems(turn.query))
            reading = structs.replace(reading, of_documents=not is_own)
        pending_answer = answer_of(pending, turn.query, reading)
        if resolved in ("", turn.query.strip()):
            resolved = agreed_query(turn.carry, pending_answer, turn.query) or turn.query
        prices = analysis_reply.needs_current_prices
        intent = analysis_reply.intent if analysis_reply.intent in get_args(Intent) else "query"
        query_type = (
            analysis_reply.query_type if analysis_reply.query_type in get_args(QueryType) else "informational"
        )
        live = analysis_reply.needs_live_data
        ages = None  # as content types age
        if prices:
            ages = "price"
        elif live:
            ages = "availability"
        terms = [word.lower() for word in find_query_words(turn.query)]
        nodes = (target_of(entity, self.reader)[0] for entity in references.entities[:_MOST_NODES])
        analysis = QueryAnalysis(
            original_query=turn.query,
            resolved_query=resolved,
            reference_resolution=ReferenceResolution(
                status=_resolution_status(words, content),
                original_references=tuple(words),
                resolved_to=content.title if content else None,
            ),
            query_type=cast(QueryType, query_type),
            intent=cast(Intent, intent),
            entities=analysis_reply.entities or tuple(find_entities(turn.query)),
            user_purpose=analysis_reply.user_purpose,
            data_requirements=DataRequirements(prices, live, analysis_reply.freshness or ages),
            content_reference=content,
            reasoning=analysis_reply.reasoning,
            references=references.refs,
            reference_nodes=tuple(dict.fromkeys(nodes)),
            constraints=kept_limits(reading.limits),
            pending=pending_answer,
            kept_content=kept_content(turn.query, turn.carry, terms) or None,
            reading=reading,
        )
        meta = encode(analysis)
        del meta["original_query"], meta["reading"]
        if analysis.resolved_query == turn.query:
            meta["resolved_query"] = None  # §0 holds a long query once
        places = ["§0.raw_query"]
        if turn.image:
            places.append(IMAGE_JSON)
        if turn.documents:
            places.append(DOCUMENTS_JSON)
            meta["documents"] = [document.name for document in turn.documents]
        provenance = {"source_type": "user_query", "node_ids": [], "provenance": places}
        section = Section(Phase.QUERY_ANALYZER, (Text(turn.query), Meta({**provenance, **meta})))
        return PhaseResult(section, (analysis,))

    def _names_kept(self, query: str) -> bool:
        terms = set(split_terms(query))
        words = {word.lower() for word in split_words(query)}
        return FUNCTION_WORDS.isdisjoint(words) and not is_talk(query) and self.reader.holds_words(terms)

    def _checked(self, turn: Turn, values: Mapping[str, Any], kept_ids: Collection[str]) -> Reading:
        """Return a reading as far as it can be so, with what words alone say."""
        pending = turn.carry.pending_clarification
        reading, dropped = check_reading(
            values,
            query=turn.query,
            refs={record.ref for record in turn.carry.registry.records},
            is_open=pending is not None and pending.status == "open",
            kept=kept_ids,
        )
        for part in dropped:
            turn.warn(f"reading: dropped {part}")
        return with_flags(turn.query, with_entities_back(reading, turn.carry))

    def _with_memory(self, turn: Turn, reading: Reading, wish: bool | None) -> Reading:
        """
        Return the reading with what is to be forgotten, and what is not to be stored.

        Args:
            wish: Whether the reply says that something is to be forgotten; None if it says nothing of it.
        """
        if declines_storing(turn.query) and forget_terms(turn.query):
            stated = [clause.text for clause in reading.clauses if not is_question(clause.text)]
            not_stored = tuple(stated or [turn.query])
            mood: Mood = "asks" if any(is_question(clause.text) for clause in reading.clauses) else "tells"
            clauses = tuple(
                structs.replace(clause, mood="asks" if is_question(clause.text) else "tells")
                for clause in reading.clauses
            )
            return structs.replace(
                reading, mood=mood, clauses=clauses, statements=(), exclusions=(), not_stored=not_stored
            )
        meant, asks = self._meant_to_go(turn, reading, wish)
        if meant is not None:
            clauses = tuple(structs.replace(clause, mood="orders") for clause in reading.clauses)
            statements = [
                statement for statement in reading.statements if _is_beside_forgetting(statement.text, meant)
            ]
            changed = structs.replace(reading, mood="orders", clauses=clauses, statements=tuple(statements))
            return with_things(changed, meant.things, asks=asks)
        if reading.forgets:
            return structs.replace(reading, forgets=False, forget=())
        return reading

    def _meant_to_go(self, turn: Turn, reading: Reading, wish: bool | None) -> tuple[Meant | None, bool]:
        """
        Return what is to be forgotten, None if nothing is, and whether the user is asked first. An order in
        the user's own words that means one thing word for word is carried out, and so is an answer to the
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
        if reading.forget:
            named = [
                thing for thing in kept_things(self.reader) if not thing.nodes.isdisjoint(reading.forget)
            ]
            return self._of_named(request, named)
        if wish is False:
            return None, False
        is_wished = wish is True
        if request is None:
            if not is_wished or not may_wish_to_forget(turn.query):
                return None, False
            request = ForgetRequest("wish", forget_terms(" ".join(own_sentences(turn.query))))
        is_sure = is_wished or request.is_forget
        if not is_wished and reading.exclusions:
            return None, False
        meant = meant_to_go(turn, request, self.reader, self.closest)
        if not is_wished and not (meant.is_sure if not request.is_forget else meant.things):
            return None, False
        return meant, bool(meant.things) and not (meant.is_sure and is_sure)

    def _of_named(self, request: ForgetRequest | None, named: Sequence[Kept]) -> tuple[Meant | None, bool]:
        """Return what a reply names to be forgotten: it is asked about unless code reads the same order."""
        if request is None or request.kind == "wish" or not request.is_alone:
            return Meant(tuple(named)), True
        exact = [thing for thing in kept_things(self.reader) if thing.thing.is_meant_by(request.terms)]
        is_sure = len(exact) == 1 and exact[0] in named
        return Meant(tuple(exact if is_sure else named), is_sure=is_sure), not is_sure

    def _content(self, references: References, target: Option | None) -> ContentReference | None:
        entities = references.entities
        if entities:
            node_id, source = target_of(entities[0], self.reader)
            title = ", ".join(entity.label for entity in entities)
            return ContentReference(title, node_id, source)
        return ContentReference(target.text, target.id, None) if target else None

    def _targets(self, recent: Sequence[tuple[int, str]]) -> list[Option]:
        targets: dict[str, Option] = {}
        for number, _ in reversed(recent):
            waiting = list(self.reader.load(NodeKind.TURN.id(number)).links)
            while waiting:
                node_id = waiting.pop(0)
                node = self.reader.load(node_id)
                waiting += [link for link in node.links if link not in targets]
                if kind_of(node_id) is NodeKind.VISIT:
                    targets.setdefault(node_id, Option(node_id, node.title, (node_id,)))
        return list(targets.values())
