"""Taking what was told out of a store: file by file, each in one step; what was cut short is ended later."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from panda.documents.context import ContextDocument, FrontMatter, render_context
from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, LockHeldError
from panda.forgetting.places import (
    Finder,
    Owner,
    Place,
    Request,
    Secret,
    Sieve,
    find_fault,
    goes_whole,
    owner_of_path,
    read_there,
)
from panda.memory.files import KINDS, Projection, Showing
from panda.session.file import fold_turns, saved_turns, write_session
from panda.storage.files import (
    held_lock,
    held_log,
    read_json,
    store_errors,
    sync_directory,
    write_atomic,
    write_json,
)
from panda.storage.index import Index
from panda.storage.index_sources import users_of
from panda.storage.layout import CONTEXT_MD, FACTS_MD, MEMORY_JSONL, METADATA_JSON, PREFERENCES_MD, Layout
from panda.storage.records import load_object
from panda.storage.seals import SEAL, seal_files
from panda.storage.temporaries import sweep_below
from panda.storage.turns import CONTEXT_SCHEMA, TurnStore

_MEMORY_NAMES = frozenset({PREFERENCES_MD, FACTS_MD, MEMORY_JSONL})


class Removal:
    """
    Forgets in one store. What is being done is noted in `forgetting.json`, without a word of what it is: a
    command that finds the note there, of one that was killed, ends that work too.
    """

    def __init__(
        self,
        layout: Layout,
        caches: Sequence[Path],
        clock: Clock,
        wait_seconds: float,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        self._layout, self._clock, self._wait, self._on_wait = layout, clock, wait_seconds, on_wait
        self.finder = Finder(layout, caches)
        """Finds the places."""
        self._journal = layout.root / "forgetting.json"

    @property
    def is_cut_short(self) -> bool:
        """Whether an earlier one was killed and is still to be ended."""
        return self._journal.is_file()

    @property
    def at(self) -> str:
        """The time of the mark: that of the one that was cut short, else the present."""
        if self.is_cut_short:
            at = read_json(self._journal).get("at")
            if isinstance(at, str):
                return at
        return render_time(self._clock().replace(microsecond=0))

    @contextmanager
    def locked(self, users: Sequence[str]) -> Iterator[None]:
        """
        While the block runs no turn of these users runs or begins, and nothing is remembered. Raises
        LockHeldError: a turn runs for too long.
        """
        holder, layout = f"panda forget (process {os.getpid()})", self._layout

        def sessions() -> set[tuple[str, str]]:
            return {(user, one.name) for user in users for one in layout.user(user).glob("sessions/*/")}

        with ExitStack() as stack:
            known = sessions()
            locks = [layout.session_lock(user, session) for user, session in sorted(known)]
            for path in [*locks, *(layout.memory_lock(user) for user in users)]:
                lock = held_lock(path, holder=holder, wait_seconds=self._wait, on_wait=self._on_wait)
                stack.enter_context(lock)
            for user in users:
                stack.enter_context(TurnStore(layout, user, self._clock).numbering(holder))
            if sessions() != known:
                raise LockHeldError("a session has just begun", where=str(layout.root), fix="try again")
            yield

    def run(self, request: Request) -> list[Place]:
        """
        Forget, under `locked`. A reader beside it sees either the former or the new content of each file.

        Returns:
            The places where it was, and those that only the user can remove.

        Raises:
            StoreError: A file cannot be read or written; the same command goes on from there.
        """
        sweep_below(self._layout.root)
        at = self.at
        mark = f"[forgotten {at}]"
        request = replace(request, secrets=(*request.secrets, *self._new_ids(request, mark)))
        places = self.finder.places(request, mark)
        changing = [one.path for one in places if one.left is None]
        sieve = Sieve(request, mark)
        # Beside what is told: files in which nothing but the id of an assertion changes.
        known = set(changing)
        changing += [one for one in self.finder.files() if one not in known and self._changes(sieve, one)]
        self._note(at, changing)
        for path in changing:
            owner, directory = owner_of_path(self._layout, path)
            is_later = path.name == METADATA_JSON or (path.name in _MEMORY_NAMES and directory is None)
            is_index = path.parent == self._layout.indexes
            if is_later or is_index or goes_whole(request, path, owner, directory):
                continue
            if path.is_relative_to(self._layout.root) or "reports" in path.parts:
                self._rewrite(sieve, path)
            else:
                _delete(path)
        for path in changing:
            if path.name == METADATA_JSON:
                self._rewrite(sieve, path)
        for user in request.users:
            self._forget_memory(sieve, user)
        for one in request.directories:
            shutil.rmtree(one, ignore_errors=True)
        for owner in request.turns:
            self._forget_turn(owner, mark, at)
        self._end(at)
        return places

    def _changes(self, sieve: Sieve, path: Path) -> bool:
        if self.finder.is_note(path) or not any(one.instead for one in sieve.request.secrets):
            return False
        data = read_there(path)
        made, _ = sieve.file(path, data, owner_of_path(self._layout, path)[0])
        return made != data and not find_fault(path, data, made)

    def _new_ids(self, request: Request, mark: str) -> list[Secret]:
        """Ids of assertions that will say something else: an id is a digest of what is said."""
        found = []
        for user in request.users:
            for raw, made in self._log_lines(Sieve(request, mark), user):
                if made.get("id") != raw.get("id"):
                    found.append(Secret(str(raw["id"]), is_free=True, instead=str(made["id"])))
        return found

    def _log_lines(self, sieve: Sieve, user: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        text = read_there(self._layout.memory_log(user)).decode("utf-8", "surrogateescape")
        for line in text.split("\n"):
            try:
                raw = json.loads(line)
            except ValueError:
                continue
            if isinstance(raw, dict) and "value" in raw:
                yield raw, dict(sieve.assertion(raw, (user, 0)))

    def _note(self, at: str, changing: Sequence[Path]) -> None:
        """Write down what must be sealed anew, with what an earlier one has left."""
        former = read_json(self._journal) if self.is_cut_short else {}
        turns, sessions = set(former.get("turns", ())), {tuple(one) for one in former.get("sessions", ())}
        for path in changing:
            owner, directory = owner_of_path(self._layout, path)
            if directory is not None:
                turns.add(str(directory.relative_to(self._layout.root)))
                session = _metadata(directory).get("session_id")
                if owner and isinstance(session, str):
                    sessions.add((owner[0], session))
            elif owner and path.parent.parent.name == "sessions":
                sessions.add((owner[0], path.parent.name))
        write_json(self._journal, {"at": at, "turns": sorted(turns), "sessions": sorted(map(list, sessions))})

    def _rewrite(self, sieve: Sieve, path: Path) -> None:
        with held_log(path) if path.suffix == ".jsonl" and path.is_file() else nullcontext():
            data = read_there(path)
            made, _ = sieve.file(path, data, owner_of_path(self._layout, path)[0])
            if made != data and not find_fault(path, data, made):
                write_atomic(path, made)

    def _forget_memory(self, sieve: Sieve, user: str) -> None:
        """The memory files first, then the log, which says what they must not show."""
        layout = self._layout
        log = layout.memory_log(user)
        state = Projection(layout, user)
        state.refresh()
        emptied = {
            raw["id"]: raw
            for raw, made in self._log_lines(sieve, user)
            if raw["confidence"] > 0 and made["confidence"] == 0
        }
        showing = Showing(state)
        for one in state.log.assertions:
            standing = state.standing(one.subject, self._clock()).winner
            if one.fact.id in emptied and standing is not None and standing.fact.id in emptied:
                showing.show(one.subject, None)
        texts = showing.texts()
        for kind in KINDS:
            text, path = texts[kind], state.paths[kind]
            if text is not None:
                data = text.encode()
                made, _ = sieve.file(path, data, (user, 0))
                made = data if find_fault(path, data, made) else made
                if made != (state.texts[kind] or "").encode():
                    write_atomic(path, made)
        self._rewrite(sieve, log)
        state = Projection(layout, user)
        state.refresh()
        if state.texts != dict.fromkeys(KINDS) or state.log.assertions:
            state.write_mark()

    def _forget_turn(self, owner: Owner, mark: str, at: str) -> None:
        """Nothing of a turn stays but number, session and times."""
        copies = self._layout.runs.glob(f"*/turns/{owner[0]}/turn_*")
        for directory in [self._layout.turn(*owner).directory, *copies]:
            if owner_of_path(self._layout, directory / METADATA_JSON)[0] == owner and directory.is_dir():
                _empty_turn(directory, owner, mark, at)

    def _end(self, at: str) -> None:
        """What is derived of the files, sealed and made anew: done again as long as the note is there."""
        noted = read_json(self._journal)
        layout = self._layout
        for name in noted["turns"]:
            directory = layout.root / name
            metadata = _metadata(directory)
            if metadata.get("status") == "forgotten":
                _prune(directory)
            if metadata:
                _seal(directory, {**metadata, "forgotten_at": at})
        for user, session in noted["sessions"]:
            path = layout.session(user, session)
            if not path.is_file():
                continue
            try:
                made = fold_turns(layout, user, session, saved_turns(layout, user).get(session, []))
            except FileFormatError:
                made = None  # it is made again when its turns read
            if made is None:
                _delete(path)
            else:
                write_session(layout, made)
        for path, is_state in self.finder.cached():
            if is_state:
                _delete(path)
        for path in (*layout.indexes.glob("vectors.db*"), *layout.indexes.glob("*_index.db*")):
            _delete(path)
        if layout.indexes.is_dir():
            index = Index(layout, wait_seconds=self._wait, on_wait=self._on_wait)
            index.rebuild(users_of(layout), full=True)
            index.close()
        _delete(self._journal)
        sync_directory(layout.root)


def _metadata(directory: Path) -> dict[str, Any]:
    try:
        return load_object(directory / METADATA_JSON) if (directory / METADATA_JSON).is_file() else {}
    except FileFormatError:
        return {}


def _seal(directory: Path, metadata: dict[str, Any]) -> None:
    if metadata.get(SEAL):
        metadata = {**metadata, SEAL: seal_files(directory, metadata)}
    write_json(directory / METADATA_JSON, metadata)


def _empty_turn(directory: Path, owner: Owner, mark: str, at: str) -> None:
    former = _metadata(directory)
    now: dict[str, Any] = {"created_at": at, "saved_at": None, "session_id": "default", "mode": "chat"}
    now |= {name: former[name] for name in now if name in former}
    user, number = owner
    metadata: dict[str, Any] = {
        "schema": "panda.metadata/1",
        "turn": number,
        "user_id": user,
        **now,
        "query": mark,
        "status": "forgotten",
        "route": [],
        "next": None,
        "updated_at": at,
        "answered": None,
        "seed": None,
        "forgotten_at": at,
        SEAL: {METADATA_JSON: "0" * 16},
    }
    write_json(directory / METADATA_JSON, metadata)
    created = parse_time(now["created_at"])
    front = FrontMatter(CONTEXT_SCHEMA, number, user, now["session_id"], now["mode"], created)
    write_atomic(directory / CONTEXT_MD, render_context(ContextDocument(front)))
    _prune(directory)


def _prune(directory: Path) -> None:
    """Remove all but what a forgotten turn keeps."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name not in (METADATA_JSON, CONTEXT_MD):
            _delete(path)


def _delete(path: Path) -> None:
    with store_errors(path, "remove"):
        path.unlink(missing_ok=True)
