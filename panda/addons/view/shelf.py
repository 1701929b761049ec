"""What pages are made from: a store as it is now, read and never written."""

import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, TypeVar

from panda.errors import NotFoundError, Problem, TryAgainError, UsageError
from panda.index.full_text import Index
from panda.index.sources import turns_stamp
from panda.store.layout import UserStore, is_id, users_of
from panda.store.turns import TurnFolder

Numbers = Sequence[int]
_PATIENCE_SECONDS = 5.0
_T = TypeVar("_T")


class Shelf:
    """
    A store for reading.

    Args:
        selected: Only these turns are shown, by user; None for all that there are.
        runs: Only these runs are shown beside the selected turns.
    """

    def __init__(
        self,
        store: UserStore,
        selected: Mapping[str, Numbers] | None = None,
        runs: Collection[str] = (),
    ) -> None:
        self.store = store
        self.runs = runs
        self._index = Index(store, private=True)  # its own copy: nothing is written into the store
        self._indexed: dict[str, Thread] = {}
        self._selected = selected
        self._numbers: dict[str, tuple[str | None, Numbers]] = {}
        self._readers: dict[Hashable, Any] = {}
        self._lock = Lock()

    def index(self, user: str) -> Index:
        """
        The index, with what the files of a user say now. Raises TryAgainError: it is still being made, which
        takes minutes where the store has many turns and no index of them.
        """
        with self._lock:
            making = self._indexed.get(user)
            if making is None:
                making = self._indexed[user] = Thread(target=self._take_in, args=(user,), daemon=True)
                making.start()
        making.join(_PATIENCE_SECONDS)
        if making.is_alive():
            message = "the index of these turns is still being made"
            fix = "load this page again in a while; `panda index rebuild` makes one that stays"
            raise TryAgainError(message, where=str(self.store.indexes), fix=fix)
        self._index.freshen(user)
        return self._index

    def _take_in(self, user: str) -> None:
        with suppress(Problem):  # whoever asks next is told
            self._index.freshen(user)

    @property
    def is_selection(self) -> bool:
        """Return whether only some turns and runs are shown, and nothing else of the store."""
        return self._selected is not None

    def get_reader(self, name: Hashable, make: Callable[[], _T]) -> _T:
        """A reader that is kept from page to page, made when it is first asked for."""
        with self._lock:
            if name not in self._readers:
                self._readers[name] = make()
            reader: _T = self._readers[name]
            return reader

    def users(self) -> list[str]:
        """Everybody whose turns are shown, and the first one even without any."""
        return sorted(
            {self.store.user, *(self._selected if self._selected is not None else users_of(self.store))}
        )

    def turns(self, user: str) -> UserStore:
        """The turns of a user. Raises NotFoundError: the store has nothing of them."""
        if not is_id(user) or (user != self.store.user and not self.store.of(user).home.is_dir()):
            raise NotFoundError(f"the store has no user {user[:80]}", where=str(self.store.users))
        return self.store.of(user)

    def turn(self, user: str, number: str) -> TurnFolder:
        """A turn by its number as it stands in an address. Raises NotFoundError: there is none."""
        store = self.turns(user)
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            raise NotFoundError(f"{number[:80]!r} is no turn number", where=str(self.store.of(user).turns))
        return store.open(int(number))

    def numbers(self, user: str) -> Numbers:
        """The turns that are shown of a user, ascending; the directory is listed again once it changed."""
        if self._selected is not None:
            return self._selected.get(user, ())
        stamp = turns_stamp(self.store.of(user))
        with self._lock:
            former_stamp, numbers = self._numbers.get(user, ("", ()))
            if former_stamp != stamp:
                numbers = sorted(self.store.of(user).listed_numbers())
                self._numbers[user] = stamp, numbers
            return numbers

    def sessions(self, user: str) -> list[str]:
        """Ids of a user's sessions, sorted; [] if there are none yet."""
        with suppress(OSError), os.scandir(self.store.of(user).home / "sessions") as entries:
            return sorted(entry.name for entry in entries if is_id(entry.name))
        return []


class RowsPage(list[_T]):
    """Some of many rows: those of one page, or the first of them where no more are shown."""

    def __init__(self, rows: Sequence[_T], size: int, place: int = 1) -> None:
        super().__init__(rows[(place - 1) * size : place * size])
        self.total = len(rows)
        self.place = place  # number of the page, from 1
        self.places = max(1, -(-self.total // size))
        self.left = max(0, self.total - place * size)  # rows behind these


class PageQuery:
    """What an address asks for: its parameters and what stands behind the question mark."""

    def __init__(self, parameters: Mapping[str, str], fields: Mapping[str, str]) -> None:
        self.parameters = parameters
        self.fields = {name: value.strip() for name, value in fields.items() if value.strip()}

    def number(self, name: str) -> int | None:
        """A parameter or field that is a whole number; None without it. Raises UsageError: it is none."""
        text = self.parameters.get(name) or self.fields.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise UsageError(f"{text[:80]!r} is no whole number", where=name)
        return int(text)

    def part(self, rows: Sequence[_T], size: int) -> RowsPage[_T]:
        """The rows of the page that is asked for. Raises UsageError: its place is no number."""
        return RowsPage(rows, size, max(1, self.number("place") or 1))


Load = Callable[[Shelf, PageQuery], object]
"""Gives what the template of a page shows as `page`: records of the store and what belongs to them."""
