"""The files in which other programs hand out conversations: who made one, and what it holds."""

import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Literal, TypeVar

from panda.addons.exchange.chatgpt import parse_chatgpt
from panda.addons.exchange.claude import parse_claude
from panda.addons.exchange.conversation import Conversation, ConversationError, Watch
from panda.addons.exchange.llm import LlmLog
from panda.documents.safe_text import count_noun
from panda.errors import ImportFileError
from panda.isolation import WorkerLimits, iterate_isolated, run_isolated
from panda.store.files import store_errors

_Value = TypeVar("_Value")
Source = Literal["chatgpt", "claude", "llm", "jsonl"]
SOURCES: tuple[Source, ...] = ("chatgpt", "claude", "llm", "jsonl")
MEGABYTE = 1_000_000
LIMITS = WorkerLimits(seconds=30, memory_bytes=1_500 * MEGABYTE)
"""What reading one conversation may take, or the first of a log, for which SQLite sorts them all."""
MAX_BYTES = 4_000 * MEGABYTE
"""Most bytes of an export, unpacked."""
MAX_ENTRY_CHARS = 64_000_000
"""Most characters of one conversation, as JSON."""
MAX_CONVERSATIONS = 500_000
"""Most conversations of an export, damaged ones included."""

_MEMBER = re.compile(r"conversations(-\d+)?\.json")
_MARKS: dict[str, Source] = {"mapping": "chatgpt", "chat_messages": "claude"}
_SQLITE = b"SQLite format 3\x00"
_ZIP = b"PK\x03\x04"
_AGAIN = "download the export again, or unpack it anew"
_PARSERS: dict[str, Callable[[object], Conversation]] = {"chatgpt": parse_chatgpt, "claude": parse_claude}
_ENDS = tuple(",]}: \t\r\n")
_BLANK = re.compile(r"[ \t\r\n]*")
_LIMIT_FIX = "download the export again; one that is as the program made it stays below this limit"
_MAX_ERROR_CHARS = 300
_LONGEST_TOKEN_CHARS = 20
"""Of what may be cut at the end of what was read, but for texts: numbers, names, escapes."""


class ExportFile:
    """
    A file of one of these kinds, JSON or the .zip around it, or a log of llm; nothing is read yet. It is read
    in a worker, since it may come from anybody.

    Raises:
        ImportFileError: It does not read, or passes a limit.
    """

    def __init__(self, path: Path, name: str, source: Source) -> None:
        self.path = path
        self.name = name
        self.source = source

    def size(self) -> int:
        """Return how often `conversations` calls its watch: once a megabyte, or once a call in a log."""
        return _read(partial(count_steps, self.path.resolve(), self.name, self.source), self.name)

    def conversations(self, watch: Watch = lambda: None) -> Iterator[Conversation | ConversationError]:
        """Its conversations, in order; an error for each that does not read. One at a time is in memory."""
        call = partial(read_conversations, self.path.resolve(), self.name, self.source)
        values = iterate_isolated(call, limits=LIMITS, where=self.name, error=ImportFileError, fix=_LIMIT_FIX)
        for number, (steps, conversation) in enumerate(values, 1):
            if number > MAX_CONVERSATIONS:
                message = f"it has more than {MAX_CONVERSATIONS:,} conversations, the most that are read"
                raise ImportFileError(message, where=self.name, fix=_LIMIT_FIX)
            for _ in range(steps):
                watch()
            yield conversation


def _read(call: Callable[[], _Value], name: str) -> _Value:
    return run_isolated(call, limits=LIMITS, where=name, error=ImportFileError, fix=_LIMIT_FIX)


def count_steps(path: Path, name: str, source: Source) -> int:
    """Return how many steps reading a file takes; see `ExportFile.size`. Runs in a worker."""
    if source == "llm":
        return LlmLog(path, name).count()
    with _opened(path, name) as members:
        return sum(size for _, size, _ in members) // MEGABYTE


def read_conversations(
    path: Path, name: str, source: Source
) -> Iterator[tuple[int, Conversation | ConversationError]]:
    """The conversations of a file, each with the steps since the one before. Runs in a worker."""
    steps = 0

    def count_step() -> None:
        nonlocal steps
        steps += 1

    for conversation in _conversations(path, name, source, count_step):
        yield steps, conversation
        steps = 0


def _conversations(
    path: Path, name: str, source: Source, watch: Watch
) -> Iterator[Conversation | ConversationError]:
    if source == "llm":
        yield from LlmLog(path, name).conversations(watch)
        return
    for number, value in enumerate(_values(path, name, watch), 1):
        try:
            yield _PARSERS[source](value)
        except ConversationError as exc:
            if (other := _kind(value)) not in (None, source):
                message = f"it is an export of {other}, not of {source}"
                raise ImportFileError(message, where=name, fix=f"give --from {other}") from exc
            yield ConversationError(f"conversation {number}: {str(exc)[:_MAX_ERROR_CHARS]}")


def find_source(path: Path, name: str, claimed: Source | None = None) -> Source:
    """
    Who made a file that errors call *name*, as its first bytes tell; JSON lines if nothing tells.
    ImportFileError for a .zip or a list without conversations, and for one of another kind than is *claimed*.
    """
    if not path.is_file():
        return claimed or "jsonl"  # what is missing is told by whoever reads it
    _check_size(path.stat().st_size, name)
    with store_errors(path, "read"), path.open("rb") as file:
        head = file.read(4_096)
    is_list = head.startswith(_ZIP) or head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    kind: Source | None = None
    if head.startswith(_SQLITE):
        kind = "llm"
    elif not is_list:
        kind = "jsonl"
    if claimed is not None:
        if claimed != kind and (claimed not in _PARSERS or kind == "llm"):
            message = f"it does not begin as a file of {claimed} does"
            raise ImportFileError(message, where=name, fix="leave --from out: the first bytes tell")
        return claimed
    if kind is not None:
        return kind
    source = _read(partial(kind_of_first, path.resolve(), name), name)
    if source is None:
        fix = f"say who made it: --from {'|'.join(SOURCES)}"
        raise ImportFileError("its first entry is no conversation that is known", where=name, fix=fix)
    return source


def kind_of_first(path: Path, name: str) -> Source | None:
    """Who made a list, as its first entry tells; None if that does not. Runs in a worker."""
    with closing(_values(path, name, lambda: None)) as values:
        return _kind(next(values, None))


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
            size = path.stat().st_size
            _check_size(size, name)
            yield [(name, size, lambda: path.open("rb"))]
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
            _check_size(sum(infos[key].file_size for key in members), name, how=" unpacked")
            yield [
                (f"{name} ({key})", infos[key].file_size, lambda key=key: archive.open(key))  # type: ignore[misc]
                for key in members
            ]


def _check_size(size: int, name: str, how: str = "") -> None:
    """
    Raise ImportFileError for a file that is too large. No more is unpacked than the .zip says: zipfile stops
    there.
    """
    if size > MAX_BYTES:
        message = (
            f"it has {size / 1e6:,.0f} MB{how}, more than {MAX_BYTES / 1e6:,.0f} MB, the most that is read"
        )
        raise ImportFileError(message, where=name, fix=_LIMIT_FIX)


def copy_limited(source: BinaryIO, target: BinaryIO, *, name: str) -> None:
    """Copy what comes through a pipe; ImportFileError if there is more than of a file would be read."""
    size = 0
    while data := source.read(MEGABYTE):
        size += len(data)
        _check_size(size, name)
        target.write(data)


class JsonListError(Exception):
    """The file is not what it should be; says what is wrong and after how many entries."""


def read_entries(file: IO[bytes], key: str, watch: Watch) -> Iterator[Any]:
    """
    The entries of the list that a file holds, or of the one under a key of the object that it holds; of an
    object what follows the list is not looked at. One at a time is in memory. JsonListError: it is cut short,
    no valid JSON, nested too deeply, or holds no such list.

    By hand: ijson 3.6 lets a number of 5,000 digits end the process.
    """
    reader = _JsonText(file, watch)
    count = 0
    try:
        is_object = reader.goes_on("{")
        name = None
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
            raise JsonListError(f"something follows the list of {count_noun(count, 'entry')}")
    except RecursionError:
        raise JsonListError(f"nested too deeply after {count_noun(count, 'entry')}") from None
    except UnicodeDecodeError as exc:
        raise JsonListError(f"not UTF-8 after {count_noun(count, 'entry')}: {exc.reason}") from None
    except ValueError as exc:  # a number of thousands of digits too
        is_cut = isinstance(exc, json.JSONDecodeError) and reader.is_at_end(exc.pos)
        message = "it is cut short" if is_cut else f"not valid JSON: {getattr(exc, 'msg', exc)}"
        raise JsonListError(f"{message}, after {count_noun(count, 'entry')}") from None


class _JsonText:
    """What was read of a file and is not used yet."""

    def __init__(self, file: IO[bytes], watch: Watch) -> None:
        self._file = file
        self._watch = watch
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        self._bytes = 0

    def is_at_end(self, position: int) -> bool:
        return self._ended and position >= len(self._text.rstrip())

    def peek(self) -> str:
        """The next character that is not blank; "" at the end of the file."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]  # it always does
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def goes_on(self, char: str) -> bool:
        """Return whether the next character is this one, which is gone past."""
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
        if len(self._text) - self._at > MAX_ENTRY_CHARS:
            most = f"{MAX_ENTRY_CHARS / 1e6:g} million characters"
            raise JsonListError(f"an entry has more than {most}, the most that is read")
        data = self._file.read(max(MEGABYTE, len(self._text) - self._at))
        self._ended = not data
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        self._at = 0
        for _ in range(self._bytes // MEGABYTE, (self._bytes + len(data)) // MEGABYTE):
            self._watch()
        self._bytes += len(data)
        return bool(data)
