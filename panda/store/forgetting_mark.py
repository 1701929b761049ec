"""forgetting.json: that something is being forgotten, without a word of what; it goes with the last file."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.documents.times import parse_time
from panda.errors import FileFormatError, StoreError, UntrustedError
from panda.store.files import read_json, write_json

FORGETTING_JSON = "forgetting.json"
SAME_COMMAND = "give the same panda forget again"
_UNREADABLE = (FileFormatError, StoreError, UntrustedError, ValueError, TypeError, KeyError)


@dataclass(frozen=True)
class CutShort:
    """A forgetting that has begun and not ended, as long as its lock is not held."""

    at: datetime  # of its marks
    again: str  # what goes on with it


def read_cut_short(root: Path) -> CutShort | None:
    """The forgetting that a store is in the middle of; None if there is none, or the file does not say."""
    path = root / FORGETTING_JSON
    with suppress(*_UNREADABLE):
        if path.is_file():
            value = read_json(path)
            again = value.get("again")
            return CutShort(parse_time(value["at"]), again if isinstance(again, str) else SAME_COMMAND)
    return None


def write_cut_short(root: Path, at: str, again: str) -> None:
    """Note that a forgetting begins; *at* is the time of its marks."""
    write_json(root / FORGETTING_JSON, {"at": at, "again": again})
