"""What the items of a batch see: a store as it was when the batch began, kept with the run."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from panda.index.index import Index, copy_database
from panda.index.sources import list_notes
from panda.memory.memory import take_in_edits
from panda.store.files import (
    check_links,
    held_lock,
    held_temporary,
    is_temporary,
    make_directory,
    store_errors,
)
from panda.store.layout import Layout, UserStore


def freeze(layout: UserStore, target: Path, sessions: Mapping[str, Iterable[str]]) -> None:
    """Keep what a store holds now: saved turns as links, all else that turns read as copies."""
    with store_errors(target, "create"), held_temporary(target, directory=True) as directory:
        start = Layout(directory)
        make_directory(start.users)
        make_directory(start.indexes)
        index = Index(layout)
        for user, names in sessions.items():
            make_directory(start.of(user).turns)
            if layout.of(user).home.is_dir():
                take_in_edits(layout.of(user))
                _keep_user(layout, start, user, index)
                _keep_notes(layout, start, user)
                for name in names:
                    _keep_session(layout, start, user, name)
        index.close()
        for source, copy in ((layout.turn_index, start.turn_index), (layout.vectors, start.vectors)):
            copy_database(source, copy)
        directory.rename(target)


def _keep_user(layout: Layout, start: Layout, user: str, index: Index) -> None:
    index.freshen(user)
    for number in index.read(user, lambda view: view.turns).tolist():
        link = start.of(user).turn(number).directory
        link.symlink_to(layout.of(user).turn(number).directory.absolute(), target_is_directory=True)
    with held_lock(layout.of(user).memory_lock, holder="panda batch", wait_seconds=60.0):
        for path in layout.of(user).home.iterdir():
            if path.is_file() and not is_temporary(path):
                check_links(path)
                shutil.copy2(path, start.of(user).home / path.name)


def _keep_notes(layout: Layout, start: Layout, user: str) -> None:
    """Copy the notes; the times of the files stay, so that the index knows them."""
    for name, may_be_read in list_notes(str(layout.of(user).knowledge)).items():
        if name and may_be_read and (layout.of(user).knowledge / name).is_file():
            target = start.of(user).knowledge / name
            make_directory(target.parent)
            shutil.copy2(layout.of(user).knowledge / name, target)


def _keep_session(layout: Layout, start: Layout, user: str, name: str) -> None:
    for source, target in (
        (layout.of(user).session(name), start.of(user).session(name)),
        (layout.of(user).session_closed(name), start.of(user).session_closed(name)),
    ):
        if source.is_file():
            check_links(source)
            make_directory(target.parent)
            shutil.copy2(source, target)
