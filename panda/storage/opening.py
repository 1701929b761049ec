"""Opening a store for reading or writing."""

import os
from difflib import get_close_matches
from pathlib import Path

from panda.errors import NotFoundError, ReadOnlyStoreError, UsageError
from panda.storage.files import make_directory, store_errors
from panda.storage.index_scan import users_of
from panda.storage.layout import Layout

_NAMED_USERS = 8


def open_store(root: Path) -> Layout:
    """
    The paths of a store that is there.

    Raises:
        NotFoundError: The directory is no store: it has no `users` directory.
    """
    if not Layout(root).users.is_dir():
        raise NotFoundError(
            "no store here", where=str(root), fix="run `panda init`, or name another store with --root"
        )
    return Layout(root)


def is_writable(layout: Layout) -> bool:
    """Whether this process may write the store, by its mark, permissions and mount."""
    return not layout.read_only_mark.exists() and os.access(layout.root, os.W_OK)


def check_user(layout: Layout, user: str, *, where: str) -> None:
    """Raises NotFoundError, with the nearest names, for a user of whom the store has nothing."""
    if layout.user(user).is_dir():
        return
    known = users_of(layout)
    near = get_close_matches(user, known, n=3, cutoff=0.5)
    some = f"users are {', '.join(known[:_NAMED_USERS])}{', …' if len(known) > _NAMED_USERS else ''}"
    fix = f"did you mean {' or '.join(near)}?" if near else some if known else "a first turn makes a user"
    raise NotFoundError(f"there is no user {user!r} in {layout.root}", where=where, fix=fix)


def open_store_for_writing(root: Path) -> Layout:
    """
    The paths of a store that commands may change.

    Raises:
        NotFoundError: The directory is no store.
        ReadOnlyStoreError: It is marked as read-only, like the demo store of the checkout.
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
        StoreError: It cannot be made.
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
