"""Opening a store for reading or writing, making one, and copying the demo, moved in time."""

import os
import re
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from panda.errors import FileFormatError, NotFoundError, ReadOnlyStoreError, UsageError
from panda.store.files import (
    held_temporary,
    make_directory,
    read_text,
    store_errors,
    sync_path,
    write_synced,
)
from panda.store.layout import DEFAULT_USER, METADATA_JSON, Layout, UserStore, users_of

_NAMED_USERS = 8


def open_store(root: Path) -> Layout:
    """The paths of a store that is there. NotFoundError: it is none, without a `users` directory."""
    if not Layout(root).users.is_dir():
        fix = "run `panda init`, or name another store with --root"
        raise NotFoundError("no store here", where=str(root), fix=fix)
    return Layout(root)


def open_store_for_writing(root: Path) -> Layout:
    """
    Return the store as open_store does; raise ReadOnlyStoreError if it is marked as read-only, like the demo
    store of the checkout.
    """
    mark = open_store(root).read_only_mark
    if mark.exists():
        fix = "work on a copy: `panda init --demo --root DIR`, then --root DIR"
        raise ReadOnlyStoreError("this store is read-only", where=str(mark), fix=fix)
    return Layout(root)


def is_writable(layout: Layout) -> bool:
    """Return whether this process may write the store, by its mark, permissions and mount."""
    return not layout.read_only_mark.exists() and os.access(layout.root, os.W_OK)


def check_user(store: UserStore, *, where: str, how: str = "") -> None:
    """
    Raises NotFoundError, with the nearest names, for a user whom the store does not have; the default one
    need not be there. *how* says how to make one.
    """
    if store.user == DEFAULT_USER or store.home.is_dir():
        return
    users = users_of(store)
    if near := get_close_matches(store.user, users, n=3, cutoff=0.5):
        fix = f"did you mean {' or '.join(near)}? {how}".rstrip()
    elif users:
        names = users[:_NAMED_USERS]
        if len(users) > _NAMED_USERS:
            names.append("…")
        fix = f"users are {', '.join(names)}"
        if how:
            fix = f"{fix}; {how}"
    else:
        fix = how or f"panda turn --user {store.user} --new-user makes one"
    raise NotFoundError(f"there is no user {store.user!r} in {store.root}", where=where, fix=fix)


def create_store(root: Path) -> bool:
    """
    Make a store, unless there is one; returns whether it was made now. Raises UsageError: in its place is a
    file, or a directory that holds something else. ReadOnlyStoreError: it is there, marked as read-only.
    """
    if Layout(root).users.is_dir():
        open_store_for_writing(root)
        return False
    with store_errors(root, "read"):
        if root.exists() and not (root.is_dir() and not any(root.iterdir())):
            what = "a directory that is not empty" if root.is_dir() else "a file"
            message = f"{what} is in the place of the store"
            raise UsageError(message, where=str(root), fix="choose another --root")
    make_directory(Layout(root).users)
    return True


NEWEST_TURN_AGE = timedelta(hours=1.2)  # how long ago the newest turn of the copy was asked

_INSTANT = re.compile(
    r"(?<![\w-])\d{4}-\d\d-\d\d"
    r"(?:[Tt ]\d\d:\d\d(?::\d\d)?(?=(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?(?![\w-]))|(?![\w-]))"
)
_HLC = re.compile(r'(?<="hlc": ")\d+(?=\.\d+")')


def copy_demo(source: Path, target_root: Path, now: datetime) -> None:
    """
    Copies every user of the demo store, each in one step or not at all, all times moved by the same number of
    whole seconds: the newest turn was asked 1.2 hours before *now*. The read-only mark and what can be
    derived stay behind. Raises UsageError: the target has one of the users; nothing is changed.
    """
    users = [path for path in sorted(Layout(source).users.iterdir()) if path.is_dir()]
    target = Layout(target_root)
    for user in users:
        if (place := target.of(user.name).home).exists():
            fix = "choose another --root for the demo, or use the one that is there"
            raise UsageError(f"the store has a user {user.name} already", where=str(place), fix=fix)
    shift = timedelta(seconds=round((now - NEWEST_TURN_AGE - newest_turn_time(source)).total_seconds()))
    make_directory(target.users)
    for user in users:
        home = target.of(user.name).home
        with store_errors(home, "create"), held_temporary(home, directory=True) as built:
            for path in (path for path in sorted(user.rglob("*")) if path.is_file()):
                copy = built / path.relative_to(user)
                make_directory(copy.parent)
                write_synced(copy, shift_times(read_text(path), shift).encode())
            built.rename(home)
        sync_path(target.users)


def newest_turn_time(root: Path) -> datetime:
    """When the latest turn of a store was asked. FileFormatError: it has none, or one is damaged."""
    from panda.store.records import Metadata, load  # only if it is wanted: it takes a while

    users = Layout(root).users
    times = [load(Metadata, path).created_at for path in users.glob(f"*/turns/*/{METADATA_JSON}")]
    if not times:
        raise FileFormatError("the demo store has no turns", where=str(users))
    return max(times)


def shift_times(text: str, shift: timedelta) -> str:
    """
    Moves every instant that a text holds, and every `hlc`, by whole seconds; the way each is written stays. A
    date without a time moves as from noon. Other numbers, and dates in words, stay as they are.

    >>> shift_times('{"at": "2026-01-04T13:20:00Z", "hlc": "1767532800000.007"}', timedelta(minutes=5))
    '{"at": "2026-01-04T13:25:00Z", "hlc": "1767533100000.007"}'
    >>> shift_times("on 2026-01-04, at 2026-01-04T23:59:59.250+01:00, in 2026", timedelta(seconds=1))
    'on 2026-01-04, at 2026-01-05T00:00:00.250+01:00, in 2026'
    """

    def move(match: re.Match[str]) -> str:
        day = match[0][:10]
        clock = match[0][10:]
        try:
            moment = datetime.fromisoformat(day + (clock or " 12:00")) + shift
        except (ValueError, OverflowError):
            return match[0]  # 2026-13-45 is no date
        return moment.isoformat(clock[:1] or "T")[: len(match[0])]

    milliseconds = round(shift.total_seconds()) * 1000
    return _HLC.sub(lambda match: str(int(match[0]) + milliseconds), _INSTANT.sub(move, text))
