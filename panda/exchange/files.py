"""The files in which other programs hand out conversations: who made one, and what it holds."""

import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from panda.errors import ImportFileError
from panda.exchange.chatgpt import parse_chatgpt
from panda.exchange.claude import parse_claude
from panda.exchange.conversation import Conversation, ConversationError, Watch
from panda.exchange.llm import LlmLog
from panda.store.files import store_errors

Source = Literal["chatgpt", "claude", "llm", "jsonl"]
SOURCES: tuple[Source, ...] = ("chatgpt", "claude", "llm", "jsonl")
MEGABYTE = 1_000_000

_MEMBER = re.compile(r"conversations(-\d+)?\.json")
_MARKS: dict[str, Source] = {"mapping": "chatgpt", "chat_messages": "claude"}
_SQLITE, _ZIP = b"SQLite format 3\x00", b"PK\x03\x04"
_AGAIN = "download the export again, or unpack it anew"
_PARSERS: dict[str, Callable[[object], Conversation]] = {"chatgpt": parse_chatgpt, "claude": parse_claude}
_ENDS = tuple(",]}: \t\r\n")
_BLANK = re.compile(r"[ \t\r\n]*")
_LONGEST_TOKEN_CHARS = 20
"""Of what may be cut at the end of what was read, but for texts: numbers, names, escapes."""


class ExportFile:
    """A file of one of these kinds, JSON or the .zip around it, or a log of llm; nothing is read yet."""

    def __init__(self, path: Path, name: str, source: Source) -> None:
        self.path, self.name, self.source = path, name, source

    def size(self) -> int:
        """How often `conversations` calls its watch: once a megabyte, or once a call in a log."""
        if self.source == "llm":
            return LlmLog(self.path, self.name).count()
        with _opened(self.path, self.name) as members:
            return sum(size for _, size, _ in members) // MEGABYTE

    def conversations(self, watch: Watch = lambda: None) -> Iterator[Conversation | ConversationError]:
        """Its conversations, in order; an error for each that does not read. One at a time is in memory."""
        if self.source == "llm":
            yield from LlmLog(self.path, self.name).conversations(watch)
            return
        for number, value in enumerate(_values(self.path, self.name, watch), 1):
            try:
                yield _PARSERS[self.source](value)
            except ConversationError as exc:
                if (other := _kind(value)) not in (None, self.source):
                    message = f"it is an export of {other}, not of {self.source}"
                    raise ImportFileError(message, where=self.name, fix=f"give --from {other}") from exc
                yield ConversationError(f"conversation {number}: {exc}")


def find_source(path: Path, name: str, told: Source | None = None) -> Source:
    """
    Who made a file that errors call *name*, as its first bytes tell; JSON lines if nothing tells.
    ImportFileError for a .zip or a list without conversations, and for one of another kind than is *told*.
    """
    if not path.is_file():
        return told or "jsonl"  # what is missing is told by whoever reads it
    with store_errors(path, "read"), path.open("rb") as file:
        head = file.read(4_096)
    is_list = head.startswith(_ZIP) or head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    kind: Source | None = "llm" if head.startswith(_SQLITE) else None if is_list else "jsonl"
    if told is not None:
        if told != kind and (told not in _PARSERS or kind == "llm"):
            message = f"it does not begin as a file of {told} does"
            raise ImportFileError(message, where=name, fix="leave --from out: the first bytes tell")
        return told
    if kind is not None:
        return kind
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
        for where, _, open_ in members:
            try:
                with open_() as file:
                    yield from read_entries(file, "conversations", watch)
            except (JsonListError, zipfile.BadZipFile, zlib.error, EOFError) as exc:
                raise ImportFileError(f"it does not read: {exc}", where=where, fix=_AGAIN) from exc
            except (RuntimeError, NotImplementedError) as exc:  # a password, or packed in another way
                raise ImportFileError(str(exc), where=where, fix="unpack it first") from exc


@contextmanager
def _opened(path: Path, name: str) -> Iterator[list[tuple[str, int, Callable[[], IO[bytes]]]]]:
    """The lists of conversations in a file or .zip: what errors call it, size unpacked, what opens it."""
    with store_errors(path, "read"), path.open("rb") as file:
        if not file.read(len(_ZIP)).startswith(_ZIP):
            yield [(name, path.stat().st_size, lambda: path.open("rb"))]
            return
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as exc:
            raise ImportFileError(f"the .zip is damaged: {exc}", where=name, fix=_AGAIN) from exc
        with archive:
            infos = {info.filename: info for info in archive.infolist()}
            members = sorted(key for key in infos if _MEMBER.fullmatch(PurePosixPath(key).name))
            if not members:
                fix = "give the .zip as it was delivered, or the conversations.json in it"
                raise ImportFileError("no conversations.json is in it", where=name, fix=fix)
            yield [
                (f"{name} ({key})", infos[key].file_size, lambda key=key: archive.open(key))  # type: ignore[misc]
                for key in members
            ]


class JsonListError(Exception):
    """The file is not what it should be; says what is wrong and after how many entries."""


def read_entries(file: IO[bytes], key: str, watch: Watch) -> Iterator[Any]:
    """
    The entries of the list that a file holds, or of the one under a key of the object that it holds; of an
    object what follows the list is not looked at. One at a time is in memory. JsonListError: it is cut short,
    no valid JSON, nested too deeply, or holds no such list.

    By hand: ijson 3.6 lets a number of 5,000 digits end the process.
    """
    reader, count = _JsonText(file, watch), 0
    try:
        is_object, name = reader.goes_on("{"), None
        while is_object and name != key:
            if reader.peek() != '"':
                raise JsonListError(f"it is no list, and has no list of {key}")
            name = reader.value()
            reader.take(":")
            if name != key:
                reader.value()
                reader.goes_on(",")
        reader.take("[")
        while reader.peek() != "]":
            if count:
                reader.take(",")
            value = reader.value()
            count += 1
            yield value
        reader.take("]")
        if not is_object and reader.peek():
            raise JsonListError(f"something follows the list of {count} entries")
    except RecursionError:
        raise JsonListError(f"nested too deeply after {count} entries") from None
    except UnicodeDecodeError as exc:
        raise JsonListError(f"not UTF-8 after {count} entries: {exc.reason}") from None
    except ValueError as exc:  # a number of thousands of digits too
        is_cut = isinstance(exc, json.JSONDecodeError) and reader.is_at_end(exc.pos)
        message = "it is cut short" if is_cut else f"not valid JSON: {getattr(exc, 'msg', exc)}"
        raise JsonListError(f"{message}, after {count} entries") from None


class _JsonText:
    """What was read of a file and is not used yet."""

    def __init__(self, file: IO[bytes], watch: Watch) -> None:
        self._file, self._watch = file, watch
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._ended, self._bytes = "", 0, False, 0

    def is_at_end(self, position: int) -> bool:
        return self._ended and position >= len(self._text.rstrip())

    def peek(self) -> str:
        """The next character that is not blank; "" at the end of the file."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]  # it always does
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def goes_on(self, char: str) -> bool:
        """Whether the next character is this one, which is gone past."""
        is_next = self.peek() == char
        self._at += is_next
        return is_next

    def take(self, char: str) -> None:
        if not self.goes_on(char):
            raise json.JSONDecodeError(f"Expecting {char!r}", self._text, self._at)

    def value(self) -> Any:
        """The next value; more is read until it is whole, at least as much again each time."""
        self.peek()
        while True:
            try:
                value, end = json.JSONDecoder().raw_decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                is_near = exc.pos > len(self._text) - _LONGEST_TOKEN_CHARS
                if not (exc.msg.startswith("Unterminated") or is_near) or not self._more():
                    raise
            else:
                if self._text[end : end + 1] in _ENDS or not self._more():  # else a number may go on
                    self._at = end
                    return value

    def _more(self) -> bool:
        """False at the end of the file."""
        data = self._file.read(max(MEGABYTE, len(self._text) - self._at))
        self._ended = not data
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        self._at = 0
        for _ in range(self._bytes // MEGABYTE, (self._bytes + len(data)) // MEGABYTE):
            self._watch()
        self._bytes += len(data)
        return bool(data)
