"""The entities of a session: found in turns, meant by words of a query, kept or dropped by phase 1. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from typing import Literal, cast

from msgspec import Struct, structs

from panda.documents.memory_file import is_statement
from panda.language.claims import is_plural
from panda.language.names import find_names
from panda.language.patterns import lazy_pattern
from panda.language.words import split_terms, split_words
from panda.messages.list_items import label_of, listed_things
from panda.messages.mentions import (
    Mention,
    Thing,
    find_clearing,
    find_exclusions,
    find_mentions,
    find_pronouns,
    says_only,
    without_exclusions,
)
from panda.messages.reading import Action, Excluded, Reading
from panda.session.turn_files import TurnFiles
from panda.store.carry import (
    Carry,
    Curation,
    Entity,
    EntityDecision,
    Judged,
    ListedEntity,
    Listing,
    Registry,
    State,
    clip,
)
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import StepEntity

_MOST = 500
"""Entities of a session that are kept."""
_MOST_BYTES = 90_000
"""Bytes of all of them together."""
_LABEL_CHARS = 100
_REASON_CHARS = 160
_SAID_CHARS = 300
_TURNS = 4
"""Latest turns that are remembered of an entity."""
_LOG = 20
"""Latest decisions that are kept."""
_MENTIONED = 40
"""Entities that are remembered of a turn."""
CLEARED = "cleared"
"""How the reason begins where the user dropped everything at once, and not this entity by name."""
_SCANNED_CHARS = 20_000
_NAME = lazy_pattern(r"[A-Z0-9][\w'’+-]*(?: [\w'’+-]+){0,5}")
_ROW = lazy_pattern(r"[\w .]{1,40}: ([^;:]+); [\w .]{1,40}: ")
"""The beginning of a table row as evidence quotes it, "name: Doug; voice: bass"; the group names the row."""
_RECORD_BYTES = 160  # about what a record takes besides its texts
_MOST_OPTIONS = 12
_QUOTED_CHARS = 80


def curation_of(files: TurnFiles) -> Curation:
    """Return what phase 1 of a turn decided about the session's entities; empty if it decided nothing."""
    return (files.reflection and files.reflection.entity_curation) or Curation()


def apply_curation(registry: Registry, curation: Curation, turn: int) -> Registry:
    """The registry with a curation's decisions; refs that it does not know are passed over."""
    changes: dict[str, tuple[State, str]] = {}
    if curation.clear_all:
        reason = clip(f"{CLEARED}: {curation.reason}", _REASON_CHARS)
        changes = {entity.ref: ("dropped", reason) for entity in registry.records}
    for decided, some in curation.decided.items():
        state = cast(State, "active" if decided == "retained" else decided)
        changes |= {judged.ref: (state, clip(judged.reason, _REASON_CHARS)) for judged in some}
    records = []
    for entity in registry.records:
        if entity.ref in changes:
            state, reason = changes[entity.ref]
            turns = _touched(entity.turns, turn) if state == "active" else entity.turns
            entity = structs.replace(
                entity, state=state, retained=state == "active", reason=reason, turns=turns
            )
        records.append(entity)
    listing = Listing() if curation.clear_all else registry.listing
    return structs.replace(registry, records=tuple(records), listing=listing)


def carry_log(previous: Carry, curation: Curation, turn: int) -> tuple[EntityDecision, ...]:
    log = [*previous.decision_log]
    if curation.clear_all:
        log.append(EntityDecision(turn=turn, action="clear_all", ref=None, reason=curation.reason or ""))
    for judged in curation.retained:
        log.append(EntityDecision(turn=turn, action="retain", ref=judged.ref, reason=judged.reason))
    for judged in curation.demoted:
        log.append(EntityDecision(turn=turn, action="demote", ref=judged.ref, reason=judged.reason))
    for judged in curation.dropped:
        log.append(EntityDecision(turn=turn, action="drop", ref=judged.ref, reason=judged.reason))
    return tuple(log[-_LOG:])


def carry_registry(
    previous: Carry, files: TurnFiles, curation: Curation, reply: str
) -> tuple[Registry, tuple[str, ...]]:
    """The registry after a turn, and the refs that its reply lists or names, in the reply's order."""
    before = apply_curation(previous.registry, curation, files.turn)
    entities = {entity.ref: entity for entity in before.records}
    for step in files.steps:
        if step.status == "success":
            for step_entity in step.entities:
                _add_found(entities, step_entity, files.turn, f"t{files.turn}_s{step.step}")
    own = (NodeKind.TURN.id(files.turn),)
    noted = {
        t
        for t, ids in files.statements
        if ids == own or (kind_of(ids[0]) is NodeKind.FACT and is_statement(key_of(ids[0])))
    }
    statements = [text for text, _ in files.statements if text not in noted]
    parts = [part for part in reply.split("\n\n") if part.strip() and not any(text in part for text in noted)]
    answer = "\n\n".join(parts)  # what was only noted lists nothing
    listed = listed_things(answer, statements or parts)
    labels = [label for label, _ in listed] or _subjects(statements)
    texts = [text for _, text in listed] or statements
    mentioned: list[str] = []
    for at, (label, text) in enumerate(zip(labels, texts, strict=False), 1):
        mentioned.append(_add_said(entities, label, text, files=files, at=at, before=mentioned))
    references = files.analysis.references if files.analysis else ()
    resolved = [ref for ref in references if ref in entities]
    mentioned = mentioned + resolved if listed else resolved + mentioned
    replied = split_terms(reply[:_SCANNED_CHARS])
    asked = split_terms(files.query)
    spoken = {*replied, *asked}
    for entity in list(entities.values()):
        if entity.ref not in mentioned and not spoken.issuperset(label_terms(entity.label)):
            continue
        if entity.ref not in mentioned and entity.state == "active" and says(replied, entity.label):
            mentioned.append(entity.ref)
        if entity.ref in mentioned or says(asked, entity.label):
            entities[entity.ref] = structs.replace(entity, turns=_touched(entity.turns, files.turn))
    refs = tuple(dict.fromkeys(mentioned))[:_MENTIONED]
    listing = before.listing
    if listed:  # ordinals count it from now on
        about = clip(f"{files.query} {answer}", _SAID_CHARS)
        pairs = zip(refs, listed, strict=False)
        items = tuple(ListedEntity(ref=ref, text=clip(text, _SAID_CHARS)) for ref, (_, text) in pairs)
        listing = Listing(turn=files.turn, about=about, items=items)
    return _limited(entities.values(), structs.replace(before, listing=listing)), refs


def names(text: str, label: str) -> bool:
    """Return whether a text has all the terms of a label, one after the other."""
    return says(split_terms(text), label)


def says(terms: Sequence[str], label: str) -> bool:
    """Return the same as `names`, of a text that is already split into terms."""
    wanted = label_terms(label)
    if not wanted:
        return False
    starts = (at for at, term in enumerate(terms) if term == wanted[0])
    return any(tuple(terms[at : at + len(wanted)]) == wanted for at in starts)


@lru_cache(maxsize=4096)
def label_terms(label: str) -> tuple[str, ...]:
    return tuple(split_terms(label))


def _subjects(statements: Sequence[str]) -> list[str]:
    rows = [_ROW.match(text) for text in statements]
    labels = dict.fromkeys(
        row[1] if row else label_of(text) for row, text in zip(rows, statements, strict=True)
    )
    named = [name.text for text in statements for name in find_names(text)]
    if len(labels) != 1:
        return []
    (label,) = labels
    if row_names := [row[1] for row in rows if row]:
        is_name = any(says(label_terms(label), name) for name in named)
        return [name for name in dict.fromkeys(row_names) if is_name and _NAME.fullmatch(name)]
    words = takewhile(lambda word: word[0].isupper() or word[0].isdigit(), label.split())
    name = " ".join(words)  # what follows may be a clause
    return [name] if name and any(says(label_terms(name), known_name) for known_name in named) else []


def _add_found(entities: dict[str, Entity], step_entity: StepEntity, turn: int, source: str) -> None:
    ref = clip(step_entity.ref, _LABEL_CHARS)
    before = entities.get(ref)
    state: State = "active"
    reason = None
    if step_entity.op == "delete":
        state = "dropped"
        reason = "deleted"
    elif before is not None:
        state = before.state
        reason = before.reason
    entities[ref] = Entity(
        ref=ref,
        type=clip(step_entity.type, 40),
        label=clip(step_entity.label, _LABEL_CHARS),
        target=ref if ":" in ref and not ref.startswith("name:") else None,
        state=state,
        turns=_touched(before.turns if before else (), turn),
        source=source,
        reason=reason,
        retained=bool(before and before.retained and step_entity.op != "delete"),
    )


def _add_said(
    entities: dict[str, Entity], label: str, text: str, *, files: TurnFiles, at: int, before: Sequence[str]
) -> str:
    label = clip(label, _LABEL_CHARS)
    others = [entity for entity in entities.values() if entity.ref not in before]
    for entity in sorted(others, key=lambda entity: entity.label != label):
        short, long = sorted((entity.label, label), key=lambda name: len(label_terms(name)))
        is_part = len(label_terms(short)) > 1 or len(label_terms(long)) == 1
        if entity.label == label or (is_part and says(label_terms(long), short)):
            return entity.ref
    cited = (
        ids for statement, ids in files.statements if statement and (statement in text or text in statement)
    )
    ref = f"t{files.turn}_item_{at}"
    source = f"t{files.turn}"
    target = [*next(cited, ()), NodeKind.TURN.id(files.turn)][0]
    turns = (files.turn,)
    entities[ref] = Entity(
        ref=ref, type="item", label=label, target=target, state="active", turns=turns, source=source
    )
    return ref


def _touched(turns: tuple[int, ...], turn: int) -> tuple[int, ...]:
    return (*(earlier for earlier in turns if earlier != turn), turn)[-_TURNS:]


def _limited(records: Iterable[Entity], before: Registry) -> Registry:
    """At most 500 records of 90,000 bytes; what goes first was touched longest ago and is not excluded."""
    listed = set(before.listing.refs)
    room = _MOST_BYTES
    held = sorted(
        every := list(records),
        key=lambda entity: (
            entity.ref in listed,
            entity.retained,
            entity.state != "active",
            entity.turns[-1:] or (0,),
        ),
        reverse=True,
    )
    gone: set[str] = set()
    for count, entity in enumerate(held, 1):
        room -= _size(entity.ref, entity.label, entity.reason or "")
        if count > _MOST or room < 0:
            gone.add(entity.ref)
    remaining = tuple(entity for entity in every if entity.ref not in gone)
    return structs.replace(before, records=remaining, evicted=before.evicted + len(gone))


@lru_cache(maxsize=4096)
def _size(ref: str, label: str, reason: str) -> int:
    return _RECORD_BYTES + len("".join((ref * 2, label, reason)).encode())


def is_active(entity: Entity, carry: Carry) -> bool:
    """
    Return whether an entity counts now: retained, or touched in one of the last two turns or the running one.
    """
    window = [recent.turn for recent in carry.recent_turns[-2:]]
    return entity.state == "active" and (entity.retained or not window or entity.turns[-1:] >= (window[0],))


def items_of(carry: Carry) -> tuple[list[Thing], list[Thing]]:
    things = {
        entity.ref: Thing(entity.ref, entity.label, "", "" if entity.type == "item" else entity.type)
        for entity in carry.registry.records
    }
    listing_items = carry.registry.listing.items
    listed = [
        replace(things.pop(item.ref, Thing(item.ref, "", "", "")), text=item.text) for item in listing_items
    ]
    return listed, list(things.values())


def mentions_of(query: str, carry: Carry) -> list[Mention]:
    """The words of a query that mean things of its session by place, description or name, dropped or not."""
    items, others = items_of(carry)
    nouns = {
        term
        for word in split_words(carry.registry.listing.about)
        if is_plural(word.lower())
        for term in split_terms(word)
    }
    aside = [entity.ref for entity in carry.registry.records if entity.state != "active"]
    return find_mentions(query, items, others, nouns=nouns, aside=aside)


def find_references(query: str, carry: Carry) -> list[Mention]:
    """The references of a query to what was talked about; a name that stands there in full is none."""
    labels = {entity.ref: entity.label for entity in carry.registry.records}
    settled = [_settled(mention, carry) for mention in mentions_of(query, carry)]
    references = [
        mention
        for mention in settled
        if mention.how != "named"
        or not any(names(query, labels.get(ref, "")) for ref in (*mention.refs, *mention.options))
    ]
    spoken = (f"{recent.user} {recent.assistant}"[:_SCANNED_CHARS] for recent in carry.recent_turns)
    for pronoun in find_pronouns(query, {term for text in spoken for term in split_terms(text)}):
        refs, options = _meant_by(pronoun.how, pronoun.words, carry)
        is_open = refs or options or pronoun.how != "which"
        if is_open and all(pronoun.end <= other.start or pronoun.start >= other.end for other in references):
            references.append(replace(pronoun, refs=refs, options=options))
    return sorted(references, key=lambda mention: mention.start)


def _settled(mention: Mention, carry: Carry) -> Mention:
    """Return a mention with the entities that the session's last list and turns give it."""
    if mention.refs:
        return mention
    listing = carry.registry.listing
    if mention.how == "counted":
        spoken = (recent.entities_mentioned for recent in reversed(carry.recent_turns))
        pair = next((refs for refs in spoken if len(refs) == 2), ())
        if mention.words[:4].lower() != "both":
            return mention
        return replace(mention, refs=pair, options=listing.refs)
    if mention.how == "named":
        entities = {entity.ref: entity for entity in carry.registry.records}
        active = [ref for ref in mention.options if ref in entities and is_active(entities[ref], carry)]
        order = sorted(active or mention.options, key=lambda ref: entities[ref].turns[-1:], reverse=True)
        refs = tuple(order) if len(order) == 1 else ()
        return replace(mention, refs=refs, options=tuple(order[:_MOST_OPTIONS]))
    left = mention.options
    if mention.how == "rest":
        later = [recent for recent in carry.recent_turns if recent.turn > (listing.turn or 0)]
        alone = [{*recent.entities_mentioned} & {*listing.refs} for recent in later]
        left = tuple(ref for ref in mention.options if {ref} not in alone) or mention.options
    return replace(mention, refs=left if len(left) == 1 else (), options=left)


def _meant_by(kind: str, words: str, carry: Carry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the refs that a pronoun means, and those that it may mean where that is open."""
    listing = carry.registry.listing
    entities = {entity.ref: entity for entity in carry.registry.records if entity.state != "dropped"}
    if kind == "which":
        recent = any(recent_turn.turn == listing.turn for recent_turn in carry.recent_turns)
        return (listing.refs, ()) if recent and listing.is_list else ((), ())
    salient = tuple(_salient(carry, entities))
    if kind == "one":
        return (salient if len(salient) == 1 else ()), salient
    whole = bool(listing.items) and listing.turn == carry.head and words[:3].lower() != "one"
    return (listing.refs if whole else ()), listing.refs or salient


def replace_references(query: str, references: Sequence[Mention], carry: Carry) -> str:
    labels = {entity.ref: entity.label for entity in carry.registry.records}
    for mention in reversed(references):
        meant_labels = [labels[ref] for ref in mention.refs if ref in labels]
        if meant_labels:
            text = meant_labels[0]
            if len(meant_labels) > 1:
                text = f"{', '.join(meant_labels[:-1])} and {meant_labels[-1]}"
            text = f"{mention.words[:5]} of {text}" if mention.how == "which" else text
            query = query[: mention.start] + text + query[mention.end :]
    return query


def follow_up(query: str, references: Sequence[Mention], carry: Carry) -> str | None:
    """
    Return what a query that only names another thing ("And the last one?") asks: the last query that asked
    something of a thing, with the names of the new one; None if there is none.
    """
    if not any(mention.refs for mention in references) or not _is_bare(query, references):
        return None
    for recent in reversed(carry.recent_turns):
        before = find_references(recent.user, carry)
        if not _is_bare(recent.user, before):
            meant = [mention for mention in before if mention.refs]
            refs = tuple(dict.fromkeys(ref for mention in references for ref in mention.refs))
            asked = [replace(meant[0], refs=refs)] if len(meant) == 1 else []
            return replace_references(recent.user, asked, carry) if asked else None
    return None


def _is_bare(query: str, references: Sequence[Mention]) -> bool:
    return says_only(query, [(mention.start, mention.end) for mention in references])


def _salient(carry: Carry, entities: Mapping[str, Entity]) -> list[str]:
    """Return the refs that the newest turn with any asked about, or else mentioned."""
    for recent in reversed(carry.recent_turns):
        asked = [ref for ref in recent.asked_about if ref in entities]
        mentioned = [ref for ref in recent.entities_mentioned if ref in entities]
        if asked or mentioned:
            return asked or mentioned[:_MOST_OPTIONS]
    return []


def find_decisions(
    query: str, carry: Carry, mentioned: Sequence[str] = ()
) -> tuple[tuple[Excluded, ...], str | None]:
    """
    Return what a query decides on the entities of its session, each with the user's words: kept, or back
    because it is named, then without words; of a kind that is not wanted ("no cod"); removed ("forget the
    HP"). The second value is the words that drop everything; None if none do.
    """
    cleared = find_clearing(query)
    if cleared:
        return (), cleared
    states = {entity.ref: entity.state for entity in carry.registry.records}
    items, others = items_of(carry)
    mentions = mentions_of(query, carry)
    decided = find_exclusions(query, [*items, *others], mentions, meant=mentioned)
    exclusions = [
        Excluded(exclusion.ref, exclusion.action, clip(exclusion.words, _QUOTED_CHARS))
        for exclusion in decided
        if exclusion.ref in states and (exclusion.action != "demote" or states[exclusion.ref] == "active")
    ]
    spoken = {*mentioned, *(ref for mention in mentions for ref in mention.refs)} - {
        exclusion.ref for exclusion in decided
    }
    exclusions += [
        Excluded(ref, "keep", "") for ref, at in states.items() if at != "active" and ref in spoken
    ]
    exclusions.sort(key=lambda exclusion: ("keep", "demote", "drop").index(exclusion.action))
    return tuple(exclusions), None


def curation_of_reading(reading: Reading) -> Curation:
    def reason(words: str) -> str:
        return f"the user said “{words}”" if words else "the user names it again"

    def judged(action: Action) -> tuple[Judged, ...]:
        decided = (exclusion for exclusion in reading.exclusions if exclusion.action == action)
        return tuple(Judged(ref=exclusion.ref, reason=reason(exclusion.words)) for exclusion in decided)

    return Curation(
        retained=judged("keep"),
        demoted=judged("demote"),
        dropped=judged("drop"),
        clear_all=reading.clears is not None,
        reason=None if reading.clears is None else reason(reading.clears),
    )


class CurationChange(Struct, frozen=True, kw_only=True):
    """What a model decides on one entity of the session."""

    ref: str
    action: Literal["retain", "demote", "drop", "clear_all"]
    reason: str


def with_written(rules: Curation, changes: Iterable[CurationChange], carry: Carry, query: str) -> Curation:
    """
    Return the decisions by rule with those that a model added for other entities. A rule always wins, and a
    demoted entity comes back only if the user names it.
    """
    entities = {entity.ref: entity for entity in carry.registry.records}
    decided = {judged.ref for judged in (*rules.retained, *rules.demoted, *rules.dropped)}
    added: dict[str, list[Judged]] = {"retain": [], "demote": [], "drop": []}
    cleared: str | None = None
    for change in changes:
        ref = change.ref
        action = change.action
        if action == "clear_all":
            cleared = change.reason
        elif ref in entities and ref not in decided:
            if (
                action == "retain"
                and entities[ref].state != "active"
                and not names(query, entities[ref].label)
            ):
                continue
            decided.add(ref)
            added[action].append(Judged(ref=ref, reason=clip(change.reason, _REASON_CHARS)))
    return structs.replace(
        rules,
        retained=(*rules.retained, *added["retain"]),
        demoted=(*rules.demoted, *added["demote"]),
        dropped=(*rules.dropped, *added["drop"]),
        clear_all=rules.clear_all or cleared is not None,
        reason=rules.reason or (clip(cleared, _REASON_CHARS) if cleared else None),
    )


def uses_excluded(texts: Iterable[str], carry: Carry) -> list[Entity]:
    out = [entity for entity in carry.registry.records if entity.state != "active"]
    excluded = [entity for entity in out if entity.reason and CLEARED not in entity.reason]
    spoken = "\n".join(without_exclusions(text) for text in texts)

    def is_used(entity: Entity) -> bool:
        return re.search(rf"(?<!\w){re.escape(entity.ref)}(?!\w)", spoken) is not None or names(
            spoken, entity.label
        )

    return list(filter(is_used, excluded))
