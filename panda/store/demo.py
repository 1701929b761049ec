"""Opening a store for reading or writing, making one, and copying the demo, moved in time."""

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from panda.documents.times import parse_time
from panda.errors import FileFormatError, NotFoundError, ReadOnlyStoreError, UsageError
from panda.store.files import (
    held_temporary,
    make_directory,
    read_json,
    read_text,
    store_errors,
    sync_path,
    write_synced,
)
from panda.store.layout import DEFAULT_USER, METADATA_JSON, Layout, users_of

_NAMED_USERS = 8


def open_store(root: Path) -> Layout:
    """
    The paths of a store that is there. Raises NotFoundError: the directory is no store: it has no `users`
    directory.
    """
    if not Layout(root).users.is_dir():
        raise NotFoundError(
            "no store here", where=str(root), fix="run `panda init`, or name another store with --root"
        )
    return Layout(root)


def is_writable(layout: Layout) -> bool:
    """Whether this process may write the store, by its mark, permissions and mount."""
    return not layout.read_only_mark.exists() and os.access(layout.root, os.W_OK)


def check_user(layout: Layout, user: str, *, where: str, how: str = "") -> None:
    """
    Raises NotFoundError, with the nearest names, for a user whom the store does not have; the default one
    need not be there. *how* says how to make one.
    """
    if user == DEFAULT_USER or layout.of(user).home.is_dir():
        return
    known = users_of(layout)
    near = get_close_matches(user, known, n=3, cutoff=0.5)
    some = f"users are {', '.join(known[:_NAMED_USERS])}{', …' if len(known) > _NAMED_USERS else ''}"
    fix = f"did you mean {' or '.join(near)}?" if near else some if known else ""
    how = how or ("" if known else f"panda turn --user {user} --new-user makes one")
    fix = (" " if near else "; ").join(filter(None, (fix, how)))
    raise NotFoundError(f"there is no user {user!r} in {layout.root}", where=where, fix=fix)


def open_store_for_writing(root: Path) -> Layout:
    """
    The paths of a store that commands may change. Raises NotFoundError: the directory is no store.
    ReadOnlyStoreError: it is marked as read-only, like the demo store of the checkout.
    """
    layout = open_store(root)
    if layout.read_only_mark.exists():
        raise ReadOnlyStoreError(
            "this store is read-only",
            where=str(layout.read_only_mark),
            fix="work on a copy: `panda init --demo --root DIR`, then --root DIR",
        )
    return layout


def create_store(root: Path) -> bool:
    """
    Make a store, unless there is one.

    Args:
        root: Where; missing, empty, or a store already.

    Returns:
        Whether it was made now.

    Raises:
        UsageError: *root* is a file, or a directory that holds something else.
        ReadOnlyStoreError: *root* is a store marked as read-only.
    """
    users = Layout(root).users
    if users.is_dir():
        open_store_for_writing(root)
        return False
    with store_errors(root, "read"):
        if root.exists() and not (root.is_dir() and not any(root.iterdir())):
            what = "a directory that is not empty" if root.is_dir() else "a file"
            message = f"{what} is in the place of the store"
            raise UsageError(message, where=str(root), fix="choose another --root")
    make_directory(users)
    return True


NEWEST_TURN_AGE = timedelta(hours=1.2)  # how long ago the newest turn of the copy was asked

_INSTANT = re.compile(
    r"(?<![\w-])(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:(?P<mark>[Tt ])(?P<clock>\d\d:\d\d(?::\d\d)?)(?P<rest>(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?))?(?![\w-])"
)
_HLC = re.compile(r'(?P<before>"hlc"\s*:\s*")(?P<milliseconds>\d+)(?P<counter>\.\d+")')


def copy_demo(source: Path, target_root: Path, now: datetime) -> None:
    """
    Copies every user of the demo store, all times moved by the same number of whole seconds.

    Afterwards the turn with the latest created_at was asked 1.2 hours before *now*. Each user appears in one
    step, or not at all. The mark that makes the demo read-only is left behind, and so is what can be derived.

    Args:
        source: Root of the demo store; it is not changed.
        target_root: Root of the copy; created if it is missing.

    Raises:
        UsageError: The target has one of the demo's users already; nothing is changed.
        FileFormatError: A file of the demo is damaged.
    """
    users = [path for path in sorted(Layout(source).users.iterdir()) if path.is_dir()]
    target = Layout(target_root)
    for user in users:
        if target.of(user.name).home.exists():
            raise UsageError(
                f"the store has a user {user.name} already",
                where=str(target.of(user.name).home),
                fix="choose another --root for the demo, or use the one that is there",
            )
    shift = timedelta(seconds=round((now - NEWEST_TURN_AGE - newest_turn_time(source)).total_seconds()))
    make_directory(target.users)
    for user in users:
        _copy_user(user, target.of(user.name).home, lambda text: shift_times(text, shift))


def newest_turn_time(root: Path) -> datetime:
    """
    When the latest turn of a store was asked: the greatest created_at of all turns of all users. Raises
    FileFormatError: the store has no turns, or a metadata.json is damaged.
    """
    times = [
        parse_time(read_json(path)["created_at"])
        for path in sorted(Layout(root).users.glob(f"*/turns/*/{METADATA_JSON}"))
    ]
    if not times:
        raise FileFormatError("the demo store has no turns", where=str(Layout(root).users))
    return max(times)


def shift_times(text: str, shift: timedelta) -> str:
    """
    Moves every instant that a text holds, and every `hlc`; the way each is written stays.

    Args:
        text: Any text. Other numbers, and dates in words, stay as they are.
        shift: Whole seconds; a date without a time moves by them as from noon.

    >>> shift_times('{"at": "2026-01-04T13:20:00Z", "hlc": "1767532800000.007"}', timedelta(minutes=5))
    '{"at": "2026-01-04T13:25:00Z", "hlc": "1767533100000.007"}'
    >>> shift_times("on 2026-01-04, at 2026-01-04T23:59:59.250+01:00, in 2026", timedelta(seconds=1))
    'on 2026-01-04, at 2026-01-05T00:00:00.250+01:00, in 2026'
    """

    def move_instant(match: re.Match[str]) -> str:
        clock = match["clock"] or "12:00:00"
        try:
            moment = datetime.fromisoformat(f"{match['day']}T{clock}") + shift
        except (ValueError, OverflowError):
            return match[0]  # 2026-13-45 is no date
        if match["clock"] is None:
            return f"{moment:%Y-%m-%d}"
        return f"{moment:%Y-%m-%d}{match['mark']}{moment.isoformat()[11 : 11 + len(clock)]}{match['rest']}"

    def move_hlc(match: re.Match[str]) -> str:
        milliseconds = int(match["milliseconds"]) + round(shift.total_seconds()) * 1000
        return f"{match['before']}{milliseconds}{match['counter']}"

    return _HLC.sub(move_hlc, _INSTANT.sub(move_instant, text))


def _copy_user(source: Path, target: Path, change: Callable[[str], str]) -> None:
    with store_errors(target, "create"), held_temporary(target, directory=True) as built:
        for path in sorted(source.rglob("*")):
            copy = built / path.relative_to(source)
            if path.is_dir():
                make_directory(copy)
            else:
                make_directory(copy.parent)
                write_synced(copy, change(read_text(path)).encode())
        built.rename(target)
    sync_path(target.parent)
