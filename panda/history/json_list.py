"""The entries of a long list in a JSON file, one at a time."""

import codecs
import json
from collections.abc import Callable, Iterator
from typing import IO, Any

_CHUNK_BYTES = 1_000_000
_ENDS = tuple(",]}: \t\r\n")
_LONGEST_TOKEN_CHARS = 20
"""Of what may be cut at the end of what was read, but for texts: numbers, names, escapes."""


class JsonListError(Exception):
    """The file is not what it should be; says what is wrong and after how many entries."""


def read_entries(file: IO[bytes], key: str, watch: Callable[[], None]) -> Iterator[Any]:
    """
    The entries of the list that a file holds, or of the one under a key of the object that it holds.

    Args:
        key: Where the list is in an object.

    Raises:
        JsonListError: It is cut short, no valid JSON, nested too deeply, or holds no such list.
    """
    reader = _Reader(file, watch)
    try:
        yield from reader.entries(key)
    except RecursionError:
        raise JsonListError(f"nested too deeply after {reader.count} entries") from None
    except UnicodeDecodeError as exc:
        raise JsonListError(f"not UTF-8 after {reader.count} entries: {exc.reason}") from None
    except json.JSONDecodeError as exc:
        message = "it is cut short" if reader.is_at_end(exc.pos) else f"not valid JSON: {exc.msg}"
        raise JsonListError(f"{message}, after {reader.count} entries") from None
    except ValueError as exc:  # a number of thousands of digits
        raise JsonListError(f"not valid JSON: {exc}, after {reader.count} entries") from None


class _Reader:
    """What was read and is not used yet, as text."""

    def __init__(self, file: IO[bytes], watch: Callable[[], None]) -> None:
        self._file, self._watch = file, watch
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self._text, self._at, self._ended, self._bytes = "", 0, False, 0
        self.count = 0

    def is_at_end(self, position: int) -> bool:
        """Whether a position is where the file ends."""
        return self._ended and position >= len(self._text.rstrip())

    def entries(self, key: str) -> Iterator[Any]:
        """The entries of the list; of an object what follows the list is not looked at."""
        is_object = self._peek() == "{"
        if is_object:
            self._find(key)
        self._take("[")
        while self._peek() != "]":
            if self.count:
                self._take(",")
            value = self._value()
            self.count += 1
            yield value
        self._take("]")
        if self._peek() and not is_object:
            raise JsonListError(f"something follows the list of {self.count} entries")

    def _find(self, key: str) -> None:
        """Go to the value of a key of the object that begins here."""
        self._take("{")
        while self._peek() == '"':
            name = self._value()
            self._take(":")
            if name == key:
                return
            self._value()
            if self._peek() == ",":
                self._take(",")
        raise JsonListError(f"it is no list, and has no list of {key}")

    def _peek(self) -> str:
        """The next character that is not blank; "" at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> None:
        """Go past a character, which must be the next one."""
        if self._peek() != char:
            raise json.JSONDecodeError(f"Expecting {char!r}", self._text, self._at)
        self._at += 1

    def _value(self) -> Any:
        """The next value; more is read until it is whole, at least as much again each time."""
        self._peek()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                is_cut = (
                    exc.msg.startswith("Unterminated") or exc.pos > len(self._text) - _LONGEST_TOKEN_CHARS
                )
                if not is_cut or not self._more():
                    raise
            else:
                if self._text[end : end + 1] in _ENDS or not self._more():  # else a number may go on
                    self._at = end
                    return value

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        size = max(_CHUNK_BYTES, len(self._text) - self._at)
        data = self._file.read(size)
        self._ended = not data
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        self._at = 0
        for _ in range(self._bytes // _CHUNK_BYTES, (self._bytes + len(data)) // _CHUNK_BYTES):
            self._watch()
        self._bytes += len(data)
        return bool(data)
