"""The entities of a session: what its turns speak of, and what phase 1 decides on them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from panda.documents.memory_file import is_statement
from panda.documents.records import decode
from panda.language.listings import ListedItem, label_of, listed_items
from panda.language.words import split_terms
from panda.session.carry import (
    Carry,
    Curation,
    Decision,
    Entity,
    Judged,
    Listed,
    Listing,
    Registry,
    State,
    clip,
)
from panda.session.turn_files import TurnFiles

_MOST, _MOST_BYTES = 500, 90_000
_LABEL_CHARS, _REASON_CHARS, _SAID_CHARS, _TURNS, _LOG, _MENTIONED = 100, 160, 300, 4, 20, 40
CLEARED = "cleared"
"""How the reason of an entity begins that went with everything else, not by itself."""
_SCANNED_CHARS = 20_000
_NAME = re.compile(r"[A-Z0-9][\w'’+-]*(?: [\w'’+-]+){0,5}")
_RECORD_BYTES = 160
"""About what a record takes besides its texts."""


def curation_of(files: TurnFiles) -> Curation:
    """What phase 1 of a turn decided; nothing for turns that did not pass it."""
    raw = (files.reflection or {}).get("entity_curation")
    return decode(Curation, raw, where="reflection.json", key="entity_curation") if raw else Curation()


def apply_curation(registry: Registry, curation: Curation, turn: int) -> Registry:
    """
    The registry with a curation's decisions.

    Args:
        curation: Refs that it does not know are passed over.
    """
    records = list(registry.records)
    if curation.clear_all:
        reason = clip(f"{CLEARED}: {curation.reason}", _REASON_CHARS)
        records = [replace(one, state="dropped", retained=False, reason=reason) for one in records]
        registry = replace(registry, listing=Listing())
    changes: dict[str, tuple[State, str]] = {}
    decided: tuple[tuple[State, tuple[Judged, ...]], ...] = (
        ("demoted", curation.demoted),
        ("dropped", curation.dropped),
        ("active", curation.retained),
    )
    for state, judged in decided:
        changes |= {one.ref: (state, one.reason) for one in judged}
    for at, one in enumerate(records):
        if one.ref in changes:
            state, reason = changes[one.ref]
            kept = state == "active"
            turns = _touched(one.turns, turn) if kept else one.turns
            records[at] = replace(
                one, state=state, retained=kept, reason=clip(reason, _REASON_CHARS), turns=turns
            )
    return replace(registry, records=tuple(records))


def carry_log(previous: Carry, curation: Curation, turn: int) -> tuple[Decision, ...]:
    """The last 20 decisions."""
    log = list(previous.decision_log)
    if curation.clear_all:
        log.append(Decision(turn=turn, action="clear_all", ref=None, reason=curation.reason or ""))
    log += [Decision(turn=turn, action="retain", ref=one.ref, reason=one.reason) for one in curation.retained]
    log += [Decision(turn=turn, action="demote", ref=one.ref, reason=one.reason) for one in curation.demoted]
    log += [Decision(turn=turn, action="drop", ref=one.ref, reason=one.reason) for one in curation.dropped]
    return tuple(log[-_LOG:])


def carry_registry(
    previous: Carry, files: TurnFiles, curation: Curation, reply: str
) -> tuple[Registry, tuple[str, ...]]:
    """
    The registry after a turn, and the refs that its reply lists or names, in the reply's order.

    Args:
        curation: What its phase 1 decided.
        reply: What it said, without marks.
    """
    before = apply_curation(previous.registry, curation, files.turn)
    known = {one.ref: one for one in before.records}
    for number, call in files.calls():
        if call["status"] == "success":
            for raw in call.get("entities", ()):
                _add_found(known, raw, files.turn, f"t{files.turn}_s{number}")
    noted = {
        text
        for text, nodes in files.statements
        if nodes == (f"turn:{files.turn}",) or is_statement(nodes[0].removeprefix("fact:"))
    }
    statements = [text for text, _ in files.statements if text not in noted]
    told = [part for part in paragraphs(reply) if not any(text in part for text in noted)]
    answer = "\n\n".join(told)  # what was only noted lists nothing
    listed = listed_items(answer, statements or told)
    labels = [item.label for item in listed] or _subjects(statements)
    texts = [item.text for item in listed] or statements
    mentioned: list[str] = []
    for at, (label, text) in enumerate(zip(labels, texts, strict=False), 1):
        mentioned.append(_add_said(known, label, text, files, at, mentioned))
    resolved = [ref for ref in (files.analysis or {}).get("references") or () if ref in known]
    mentioned = mentioned + resolved if listed else resolved + mentioned
    replied, asked = split_terms(reply[:_SCANNED_CHARS]), split_terms(files.query)
    spoken = {*replied, *asked}
    for one in list(known.values()):
        if one.ref not in mentioned and not spoken.issuperset(label_terms(one.label)):
            continue
        if one.ref not in mentioned and one.state == "active" and says(replied, one.label):
            mentioned.append(one.ref)
        if one.ref in mentioned or says(asked, one.label):
            known[one.ref] = replace(one, turns=_touched(one.turns, files.turn))
    refs = tuple(dict.fromkeys(mentioned))[:_MENTIONED]
    listing = _listing(before.listing, previous, files, refs, answer, listed, known)
    return _limited(known.values(), replace(before, listing=listing)), refs


def _listing(
    before: Listing,
    previous: Carry,
    files: TurnFiles,
    mentioned: tuple[str, ...],
    reply: str,
    listed: Sequence[ListedItem],
    known: Mapping[str, Entity],
) -> Listing:
    """What ordinals count from now on: a list; several things of one kind, where no list stands for long."""
    about = clip(f"{files.query} {reply}", _SAID_CHARS)
    if listed:
        items = [
            Listed(ref=ref, text=clip(one.text, _SAID_CHARS))
            for ref, one in zip(mentioned, listed, strict=False)
        ]
        return Listing(turn=files.turn, about=about, items=tuple(items))
    recent = [one.turn for one in previous.recent_turns]
    if before.is_list and before.turn in recent:
        return before
    said = [known[ref] for ref in mentioned]
    said = [one for one in said if not any(_is_part(one, other) for other in said)]
    if len(said) < 2 or len({one.type for one in said}) > 1:
        return before
    items = [Listed(ref=one.ref, text=one.label) for one in said]
    return Listing(turn=files.turn, about=about, items=tuple(items), is_list=False)


def _is_part(one: Entity, other: Entity) -> bool:
    """Whether the name of one thing is part of another's, as "Lenovo" of "Lenovo LOQ 15"."""
    return one.label != other.label and names(other.label, one.label)


def paragraphs(text: str) -> list[str]:
    """
    The paragraphs of a text.

    >>> paragraphs("The LOQ is cheap.\\n\\nThe TUF is not.")
    ['The LOQ is cheap.', 'The TUF is not.']
    """
    return [part for part in text.split("\n\n") if part.strip()]


def names(text: str, label: str) -> bool:
    """
    Whether a text names an entity: all the terms of its label, one after the other.

    >>> names("and the lenovo loq 15?", "Lenovo LOQ 15"), names("no problem", "LOQ 15")
    (True, False)
    """
    return says(split_terms(text), label)


def says(terms: Sequence[str], label: str) -> bool:
    """The same for a text whose terms are known."""
    wanted = label_terms(label)
    if not wanted or not terms:
        return False
    first, size = wanted[0], len(wanted)
    at = -1
    while (at := _index(terms, first, at + 1)) >= 0:
        if tuple(terms[at : at + size]) == wanted:
            return True
    return False


def _index(terms: Sequence[str], term: str, start: int) -> int:
    try:
        return terms.index(term, start)
    except ValueError:
        return -1


@lru_cache(maxsize=4096)
def label_terms(label: str) -> tuple[str, ...]:
    """The terms of a name; names are looked at again and again."""
    return tuple(split_terms(label))


def _subjects(statements: Sequence[str]) -> list[str]:
    """The name that the only subject of a reply has, if it is one."""
    labels = dict.fromkeys(label_of(text) for text in statements)
    return [label for label in labels if _NAME.fullmatch(label)] if len(labels) == 1 else []


def _add_found(known: dict[str, Entity], raw: str | Mapping[str, str], turn: int, source: str) -> None:
    """An entity that a tool found, made, changed or deleted."""
    if isinstance(raw, str):
        raw = {"ref": f"name:{raw.lower()}", "type": "record", "label": raw}
    ref, op = clip(raw["ref"], _LABEL_CHARS), raw.get("op", "read")
    before = known.get(ref)
    known[ref] = Entity(
        ref=ref,
        type=clip(raw["type"], 40),
        label=clip(raw["label"], _LABEL_CHARS),
        target=ref if ":" in ref and not ref.startswith("name:") else None,
        state="dropped" if op == "delete" else before.state if before else "active",
        turns=_touched(before.turns if before else (), turn),
        source=source,
        reason="deleted" if op == "delete" else before.reason if before else None,
        retained=bool(before and before.retained and op != "delete"),
    )


def _add_said(
    known: dict[str, Entity], label: str, text: str, files: TurnFiles, at: int, before: Sequence[str]
) -> str:
    """An entity that the reply lists; one with the same name is the same, unless it was listed before."""
    label = clip(label, _LABEL_CHARS)
    terms = set(label_terms(label))
    others = [one for one in known.values() if one.ref not in before]
    for one in sorted(others, key=lambda one: one.label != label):
        if one.label == label or (
            not terms.isdisjoint(label_terms(one.label)) and _same(label_terms(one.label), label_terms(label))
        ):
            return one.ref
    nodes = next(
        (node_ids for said, node_ids in files.statements if said and (said in text or text in said)), ()
    )
    ref = f"t{files.turn}_item_{at}"
    target = nodes[0] if nodes else f"turn:{files.turn}"
    known[ref] = Entity(
        ref=ref, type="item", label=label, target=target, state="active", turns=(files.turn,),
        source=f"t{files.turn}",
    )  # fmt: skip
    return ref


def _same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether of two names, the shorter one of several words, one stands in the other."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    starts = range(len(long) - len(short) + 1)
    return len(short) > 1 and any(long[at : at + len(short)] == short for at in starts)


def _touched(turns: tuple[int, ...], turn: int) -> tuple[int, ...]:
    return (*(one for one in turns if one != turn), turn)[-_TURNS:]


def _limited(records: Iterable[Entity], before: Registry) -> Registry:
    """At most 500 records of 90,000 bytes; what goes first was touched longest ago and is not excluded."""
    kept = list(records)
    listed = set(before.listing.refs)
    sizes = {one.ref: _size(one.ref, one.label, one.reason or "") for one in kept}
    over, room = len(kept) - _MOST, _MOST_BYTES - sum(sizes.values())
    if over <= 0 and room >= 0:
        return replace(before, records=tuple(kept))
    order = sorted(
        kept, key=lambda o: (o.ref in listed, o.retained, o.state != "active", o.turns[-1:] or (0,))
    )
    gone: set[str] = set()
    for one in order:
        if over <= 0 and room >= 0:
            break
        gone.add(one.ref)
        over, room = over - 1, room + sizes[one.ref]
    records = tuple(one for one in kept if one.ref not in gone)
    return replace(before, records=records, evicted=before.evicted + len(gone))


@lru_cache(maxsize=4096)
def _size(ref: str, label: str, reason: str) -> int:
    return _RECORD_BYTES + len("".join((ref * 2, label, reason)).encode())


def is_active(one: Entity, carry: Carry) -> bool:
    """Whether an entity counts now: retained, or touched in one of the last two turns or the running one."""
    window = [recent.turn for recent in carry.recent_turns[-2:]]
    return one.state == "active" and (one.retained or not window or one.turns[-1:] >= (window[0],))
