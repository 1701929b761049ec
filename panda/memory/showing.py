"""The lines of the memory files that show one key, brought up to date as text."""

from panda.documents.memory_edit import relist_entry, remove_entry, set_entry
from panda.documents.memory_file import MemoryEntry
from panda.memory.assertions import Assertion
from panda.memory.keys import file_value, is_system, memory_key, says, shown_in
from panda.memory.log import Triple
from panda.memory.projection import KINDS, Projection
from panda.memory.shown import Comparison
from panda.memory.staging import Kind

_TITLES = {"preference": "Preferences", "fact": "Facts"}


def show(
    state: Projection,
    texts: dict[Kind, str | None],
    triple: Triple,
    winner: Assertion | None,
    typed: Comparison | None,
) -> None:
    """
    Bring the lines of one key up to date in both files.

    Args:
        state: Log and files as they are.
        texts: Kind to the text of its file, which is replaced; None for a file that is not there.
        triple: Scope, entity and relation of the key.
        winner: What holds; None if nothing does, then the key goes.
        typed: What was typed by hand, if that is how the winner came about: it stays as it was typed.

    Raises:
        DocumentError: A file is corrupt, or written so that the entry cannot be changed alone.
    """
    _, entity, relation = triple
    if is_system(entity) or is_system(relation):
        return
    key = memory_key(entity, relation, state.user)
    home = shown_in(winner.kind, entity, state.user) if winner else None
    for kind in KINDS:
        entry = state.entry(kind, key)
        typed_key = entry.key if entry else key
        text = texts[kind]
        if kind == home and winner is not None:
            by_hand = typed is not None and typed.kind == kind and not typed.is_relabelled
            texts[kind] = _text_with(state, text or "", kind, typed_key, winner, by_hand=by_hand)
        elif text is not None and _is_ours(state, kind, entry, triple):
            texts[kind] = remove_entry(text, key=typed_key, where=str(state.paths[kind]))


def _text_with(
    state: Projection, text: str, kind: Kind, key: str, winner: Assertion, *, by_hand: bool
) -> str:
    value, where = file_value(winner.fact.value), str(state.paths[kind])
    if by_hand:
        return relist_entry(text, key=key, value=value, source_turn=winner.source_turn, where=where)
    return set_entry(
        text,
        key=key,
        value=value,
        confidence=winner.fact.confidence,
        source_turn=winner.source_turn,
        updated_at=winner.asserted_at,
        title=_TITLES[kind],
        where=where,
    )


def _is_ours(state: Projection, kind: Kind, entry: MemoryEntry | None, triple: Triple) -> bool:
    """Whether what a file has under a key is what the log said, and no line that only looks like it."""
    said = [one for one in state.log.of(triple) if one.fact.confidence > 0]
    if entry is None:
        return not any(shown_in(one.kind, triple[1], state.user) != kind for one in said)
    return any(says(entry.value, one.fact.value) for one in said)
