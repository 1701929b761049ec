"""What an item made becomes part of a store: its turn, and what that adds to memory, session and index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.index.index import Index
from panda.memory.memory import apply_staged
from panda.session.file import commit_turn, fold_turns, load_session
from panda.store.files import (
    append_json_lines,
    held_lock,
    held_temporary,
    make_directory,
    store_errors,
    sync_path,
    write_json,
)
from panda.store.layout import UserStore, below
from panda.store.records import StagedMemory

Files = Mapping[str, bytes]
"""Files below a directory, by their path."""


@dataclass(frozen=True)
class Made:
    """What came of one item in a working copy. Travels between processes and machines."""

    exit_code: int  # as of `panda turn`
    seconds: float  # wall clock of the turn
    error: Mapping[str, Any] | None = None  # what it ended with, as Problem.to_json gives it
    is_away: bool = False  # whether it failed for want of a model server
    files: Files | None = None  # the turn's directory; None if none was made, or it is in its place already
    interventions: Sequence[Mapping[str, Any]] = ()  # what halted
    executions: Sequence[Mapping[str, Any]] = ()  # lines for the log of executions


def read_files(directory: Path) -> Files:
    """All files below a directory."""
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def write_files(directory: Path, files: Files) -> None:
    """Make a directory of files, in one step."""
    make_directory(directory.parent)
    with store_errors(directory, "create"), held_temporary(directory, directory=True) as made:
        paths = {below(made, name): data for name, data in files.items()}
        for path, data in paths.items():
            make_directory(path.parent)
            path.write_bytes(data)
        for path in paths:  # all are written: the disk is waited for once
            sync_path(path)
        made.rename(directory)
    sync_path(directory.parent)


def adopt(store: UserStore, number: int, made: Made) -> None:
    """
    Put what an item made into a store. Killed before the turn's directory is there, the item is run again;
    killed after that, a turn that halted is discarded and run again. What a saved turn adds beside its
    directory, join_turn puts in.
    """
    if made.executions:
        append_json_lines(store.executions_log, made.executions)
    if made.files is not None and not store.turn(number).directory.is_dir():
        write_files(store.turn(number).directory, made.files)
    for value in made.interventions:
        write_json(store.interventions / f"{value['id']}.json", value)


def join_turn(store: UserStore, index: Index, number: int) -> None:
    """
    Bring in what a turn adds beside its directory: what was told, to the memory; itself, to its session.
    Doing it again changes nothing. A turn that is not saved adds nothing.

    Args:
        index: Knows the turns of a session that has no file.
    """
    folder = store.open(number)
    metadata = folder.read_metadata()
    if metadata.saved_at is None:
        return
    if (memory := folder.find(StagedMemory)) is not None:
        apply_staged(store, memory.due(metadata.ending))
    name = metadata.session_id
    lock, holder = store.session_lock(name), f"panda batch, turn {number}"
    with held_lock(lock, holder=holder, wait_seconds=store.wait_seconds):
        session = load_session(store, name)
        if session is None:
            earlier = index.read(store.user, lambda view: view.session_turns(name))
            session = fold_turns(store, name, [one for one in earlier if one < number])
        commit_turn(store, session, number)
