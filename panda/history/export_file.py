"""The files in which other programs hand out conversations: who made one, and what it holds."""

import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from panda.errors import ImportFileError
from panda.history.chatgpt import parse_chatgpt
from panda.history.claude import parse_claude
from panda.history.conversation import Conversation, ConversationError, Watch
from panda.history.json_list import JsonListError, read_entries
from panda.history.llm_log import LlmLog
from panda.store.files import store_errors

Source = Literal["jsonl", "chatgpt", "claude", "llm"]
SOURCES: tuple[Source, ...] = ("chatgpt", "claude", "llm", "jsonl")
MEGABYTE = 1_000_000

_MEMBER = re.compile(r"conversations(-\d+)?\.json")
_MARKS: dict[str, Source] = {"mapping": "chatgpt", "chat_messages": "claude"}
_SQLITE, _ZIP = b"SQLite format 3\x00", b"PK\x03\x04"
_AGAIN = "download the export again, or unpack it anew"
_PARSERS: dict[str, Callable[[object], Conversation]] = {"chatgpt": parse_chatgpt, "claude": parse_claude}


class ExportFile:
    """
    A file of one of these kinds; nothing is read yet.

    Args:
        path: The file: JSON or the .zip around it, or a log of llm.
        name: What errors call it.
        source: Who made it.
    """

    def __init__(self, path: Path, name: str, source: Source) -> None:
        self.path, self.name, self.source = path, name, source

    @property
    def where(self) -> str:
        """The file, for errors."""
        return str(self.path)

    def size(self) -> int:
        """How often `conversations` calls its watch: once a megabyte, or once a call in a log."""
        if self.source == "llm":
            return LlmLog(self.path, self.name).count()
        with _opened(self.path, self.name) as members:
            return sum(size for _, size, _ in members) // MEGABYTE

    def conversations(self, watch: Watch = lambda: None) -> Iterator[Conversation | ConversationError]:
        """
        Its conversations, in order; an error for each that does not read. One at a time is in memory.

        Raises:
            ImportFileError: The file is cut short, damaged, or of another kind.
        """
        if self.source == "llm":
            yield from LlmLog(self.path, self.name).conversations(watch)
            return
        for number, value in enumerate(_values(self.path, self.name, watch), 1):
            try:
                yield _PARSERS[self.source](value)
            except ConversationError as exc:
                if (other := _kind(value)) not in (None, self.source):
                    raise ImportFileError(
                        f"it is an export of {other}, not of {self.source}",
                        where=self.name,
                        fix=f"give --from {other}",
                    ) from exc
                yield ConversationError(f"conversation {number}: {exc}")


def find_source(path: Path, name: str) -> Source:
    """
    Who made a file, as its first bytes tell; JSON lines if nothing tells.

    Args:
        name: What errors call it.

    Raises:
        ImportFileError: It is a .zip or a list without conversations.
    """
    if not path.is_file():
        return "jsonl"  # a pipe can be read only once; what is missing is told by whoever reads it
    with store_errors(path, "read"), path.open("rb") as file:
        head = file.read(4_096)
    if head.startswith(_SQLITE):
        return "llm"
    if not head.startswith(_ZIP) and not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return "jsonl"
    with closing(_values(path, name, lambda: None)) as values:
        source = _kind(next(values, None))
    if source is None:
        fix = f"say who made it: --from {'|'.join(SOURCES)}"
        raise ImportFileError("its first entry is no conversation that is known", where=name, fix=fix)
    return source


def _kind(value: object) -> Source | None:
    keys = value.keys() if isinstance(value, dict) else ()
    return next((source for key, source in _MARKS.items() if key in keys), None)


def _values(path: Path, name: str, watch: Watch) -> Generator[Any]:
    """The entries of the lists that a file, or each list of a .zip, holds."""
    with _opened(path, name) as members:
        for member, _, open_ in members:
            where = name if member is None else f"{name} ({member})"
            try:
                with open_() as file:
                    yield from read_entries(file, "conversations", watch)
            except (JsonListError, zipfile.BadZipFile, zlib.error, EOFError) as exc:
                raise ImportFileError(f"it does not read: {exc}", where=where, fix=_AGAIN) from exc
            except (
                RuntimeError,
                NotImplementedError,
            ) as exc:  # it has a password, or is packed in another way
                raise ImportFileError(str(exc), where=where, fix="unpack it first") from exc


_Member = tuple[str | None, int, Callable[[], IO[bytes]]]
"""Name in a .zip, size unpacked, and what opens it."""


@contextmanager
def _opened(path: Path, name: str) -> Iterator[list[_Member]]:
    """The lists of conversations that a file holds: itself, or those in a .zip."""
    with store_errors(path, "read"), path.open("rb") as file:
        if not file.read(len(_ZIP)).startswith(_ZIP):
            yield [(None, path.stat().st_size, lambda: path.open("rb"))]
            return
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as exc:
            raise ImportFileError(f"the .zip is damaged: {exc}", where=name, fix=_AGAIN) from exc
        with archive:
            infos = sorted(
                (info for info in archive.infolist() if _MEMBER.fullmatch(PurePosixPath(info.filename).name)),
                key=lambda info: info.filename,
            )
            if not infos:
                fix = "give the .zip as it was delivered, or the conversations.json in it"
                raise ImportFileError("no conversations.json is in it", where=name, fix=fix)
            yield [
                (info.filename, info.file_size, lambda info=info: archive.open(info))  # type: ignore[misc]
                for info in infos
            ]
