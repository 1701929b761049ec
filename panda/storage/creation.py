"""Making an empty store."""

from pathlib import Path

from panda.errors import UsageError
from panda.storage.layout import Layout
from panda.storage.opening import open_store_for_writing
from panda.storage.os_errors import make_directory, store_errors


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
