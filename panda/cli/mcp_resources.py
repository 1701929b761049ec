"""What clients of `panda mcp` can read: the memory files of the user, and the turns with all their files."""

from collections.abc import Sequence

from panda.cli.contract import Invocation
from panda.documents.times import render_time
from panda.errors import NotFoundError
from panda.serving.guard import json_bytes
from panda.serving.mcp_server import ServedText
from panda.storage.files import read_text
from panda.storage.layout import CONFLICTS_JSONL, CONTEXT_MD, FACTS_MD, MEMORY_JSONL, PREFERENCES_MD
from panda.storage.turn_excerpts import read_turn_file
from panda.storage.turn_rows import TurnRow, list_rows
from panda.storage.turns import TurnStore

_MEMORY, _TURNS = "panda://memory/", "panda://turns"
_MEMORY_FILES = {
    PREFERENCES_MD: "The user's preferences, as they are now.",
    FACTS_MD: "Facts that the user stated, as they are now.",
    MEMORY_JSONL: "Every assertion, oldest first.",
    CONFLICTS_JSONL: "Contradictions, and how they were settled.",
}
_MIME_TYPES = {"md": "text/markdown", "json": "application/json", "jsonl": "application/jsonl"}
_LISTED_TURNS = 50
_MOST_DIGITS = 12


class UserResources:
    """
    The resources of one user.

    Args:
        invocation: The run of `panda mcp`.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def listed(self) -> Sequence[ServedText]:
        """The memory files that there are, the list of turns, the newest turns."""
        directory = self._invocation.store().user(self._invocation.settings.user)
        memory = [
            ServedText(_MEMORY + name, name, what, _mime_type(name))
            for name, what in _MEMORY_FILES.items()
            if (directory / name).is_file()
        ]
        every = ServedText(_TURNS, "turns", "All saved turns, newest last.", "application/json")
        rows = list_rows(self._store(), session=None, limit=_LISTED_TURNS)
        return [*memory, every, *(_listed(row) for row in reversed(rows))]

    def templates(self) -> Sequence[ServedText]:
        """Any turn, and any file of one."""
        return [
            ServedText(f"{_TURNS}/{{turn}}", CONTEXT_MD, "The document of a turn.", "text/markdown"),
            ServedText(f"{_TURNS}/{{turn}}/{{+file}}", "file", "A file of a turn.", "text/plain"),
        ]

    def read(self, uri: str) -> tuple[str, str]:
        """
        Kind and text of a resource.

        Raises:
            NotFoundError: There is none of that address.
            StoreError: It cannot be read.
        """
        if uri == _TURNS:
            rows = list_rows(self._store(), session=None, limit=None)
            return "application/json", json_bytes({"turns": [_value(row) for row in rows]}).decode("utf-8")
        name = uri.removeprefix(_MEMORY)
        if name in _MEMORY_FILES and uri.startswith(_MEMORY):
            path = self._invocation.store().user(self._invocation.settings.user) / name
            if path.is_file():
                return _mime_type(name), read_text(path)
        number, _, file = uri.removeprefix(f"{_TURNS}/").partition("/")
        is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        if not (uri.startswith(f"{_TURNS}/") and is_number):
            raise NotFoundError(f"there is no resource {uri[:200]}", fix="list the resources")
        content = read_turn_file(self._store().open(int(number)), file or CONTEXT_MD)
        return _mime_type(file or CONTEXT_MD), content.decode("utf-8", errors="replace")

    def _store(self) -> TurnStore:
        settings = self._invocation.settings
        return TurnStore(self._invocation.store(), settings.user, settings.clock)


def _listed(row: TurnRow) -> ServedText:
    what = " ".join((row.query or row.status).split())[:200]
    return ServedText(f"{_TURNS}/{row.number}", f"turn {row.number}", what, "text/markdown")


def _value(row: TurnRow) -> dict[str, object]:
    return {
        "turn": row.number,
        "uri": f"{_TURNS}/{row.number}",
        "time": render_time(row.at) if row.at else None,
        "session": row.session,
        "status": row.status,
        "query": row.query,
    }


def _mime_type(name: str) -> str:
    return _MIME_TYPES.get(name.rpartition(".")[2], "text/plain")
