"""Notes that have changed since a turn read them, and what the turn has kept of what they said then."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from panda.documents.safe_text import escape_path, one_line
from panda.errors import Problem
from panda.index.sources import NOTES, list_notes
from panda.memory.node import Node
from panda.memory.reader import NOTE
from panda.store.files import read_note
from panda.store.records import GatheredContext, Snapshot
from panda.store.seals import digest_parts, part_of, text_digest


class PastNotes:
    """The notes of a user as a turn read them."""

    def __init__(
        self, knowledge: Path, snapshot: Snapshot | None, gathered: GatheredContext | None, at: datetime
    ) -> None:
        self._knowledge = knowledge
        self._at = at
        self._then = snapshot.knowledge if snapshot else {}
        self._gathered = gathered

    def lines(self, node_id: str) -> Sequence[str]:
        """Return the lines that the turn read of a note, as far as they are kept."""
        sections = self._gathered.sections if self._gathered else ()
        return [item.text for part in sections for item in part.items if node_id in item.node_ids]

    def has_changed(self, node: Node) -> bool:
        """
        Return whether a node is a note that says something else now. The digests are those of some notes
        together: where one of these has changed, it is this one if it was written since or lacks a line that
        was read.
        """
        if not node.id.startswith(NOTE):
            return False
        name = node.provenance.removeprefix(NOTES)
        if self._then and self._digest(part_of(name)) == self._then.get(part_of(name)):
            return False
        if self._then and node.changed_at is not None and node.changed_at > self._at:
            return True
        now = [one_line(item.text) for item in node.items]
        return not all(any(one_line(line) in text for text in now) for line in self.lines(node.id))

    def _digest(self, part: str) -> str | None:
        digests = {}
        for path, may_be_read in list_notes(str(self._knowledge)).items():
            name = escape_path(path)
            if may_be_read and part_of(name) == part:
                with suppress(Problem):
                    digests[name] = text_digest(read_note(self._knowledge / path))
        return digest_parts(digests).get(part)
