"""The lines of the memory files that show one key, brought up to date as text."""

from panda.documents.memory_edit import MemoryText
from panda.documents.memory_file import MemoryEntry
from panda.memory.assertions import Assertion
from panda.memory.keys import file_value, is_system, memory_key, says, shown_in
from panda.memory.log import Triple
from panda.memory.projection import KINDS, Projection
from panda.memory.shown import Comparison
from panda.memory.staging import Kind

_TITLES = {"preference": "Preferences", "fact": "Facts"}


class Showing:
    """
    The texts of both memory files, as they are to become.

    Args:
        state: Log and files as they are.
    """

    def __init__(self, state: Projection) -> None:
        self._state = state
        self._files: dict[Kind, MemoryText] = {}

    def texts(self) -> dict[Kind, str | None]:
        """Kind to the text of its file; None for one that is not there and need not be."""
        return {
            kind: self._files[kind].text if kind in self._files else self._state.texts[kind] for kind in KINDS
        }

    def show(self, triple: Triple, winner: Assertion | None, typed: Comparison | None = None) -> None:
        """
        Bring the lines of one key up to date in both files.

        Args:
            triple: Scope, entity and relation of the key.
            winner: What holds; None if nothing does, then the key goes.
            typed: What was typed by hand, if that is how the winner came about: it stays as it was typed.

        Raises:
            DocumentError: A file is corrupt, or written so that the entry cannot be changed alone.
        """
        _, entity, relation = triple
        if is_system(entity) or is_system(relation):
            return
        state = self._state
        key = memory_key(entity, relation, state.user)
        home = shown_in(winner.kind, entity, state.user) if winner else None
        for kind in KINDS:
            entry = state.entry(kind, key)
            typed_key = entry.key if entry else key
            if kind == home and winner is not None:
                by_hand = typed is not None and typed.kind == kind and not typed.is_relabelled
                self._set(kind, typed_key, winner, by_hand=by_hand)
            elif state.texts[kind] is not None and _is_ours(state, kind, entry, triple):
                self._file(kind).remove(typed_key)

    def _file(self, kind: Kind) -> MemoryText:
        if kind not in self._files:
            where = str(self._state.paths[kind])
            text = self._state.texts[kind] or ""
            self._files[kind] = MemoryText(text, title=_TITLES[kind], where=where)
        return self._files[kind]

    def _set(self, kind: Kind, key: str, winner: Assertion, *, by_hand: bool) -> None:
        value, turn = file_value(winner.fact.value), winner.source_turn
        if by_hand:
            self._file(kind).relist(key, value, turn)
            return
        confidence, at = winner.fact.confidence, winner.asserted_at
        self._file(kind).set(key, value, confidence=confidence, source_turn=turn, updated_at=at)


def _is_ours(state: Projection, kind: Kind, entry: MemoryEntry | None, triple: Triple) -> bool:
    """Whether what a file has under a key is what the log said, and no line that only looks like it."""
    said = [one for one in state.log.of(triple) if one.fact.confidence > 0]
    if entry is None:
        return not any(shown_in(one.kind, triple[1], state.user) != kind for one in said)
    return any(says(entry.value, one.fact.value) for one in said)
