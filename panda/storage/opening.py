"""Opening a store for reading or writing."""

import os
from pathlib import Path

from panda.errors import NotFoundError, ReadOnlyStoreError
from panda.storage.layout import Layout


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
