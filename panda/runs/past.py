"""What the items of a batch see: of each user the store as it was when the batch began, bounded and kept."""

import filecmp
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.documents.record_codec import encode
from panda.documents.safe_text import unescape_path
from panda.errors import FileFormatError
from panda.index.full_text import Index
from panda.index.sources import NOTES, IndexEntry, entries_at, list_notes
from panda.index.tables import in_ranges
from panda.memory.markdown_files import KINDS, Bound, Projection
from panda.store.files import (
    NOTE_BYTES,
    held_lock,
    held_temporary,
    make_directory,
    read_json,
    read_text,
    remove_tree,
    store_errors,
    write_atomic,
    write_json,
)
from panda.store.layout import SNAPSHOT_JSON, Layout, UserStore
from panda.store.records import Snapshot, load
from panda.store.seals import digest_parts

_DIGESTS_JSON = "notes.json"


@dataclass(frozen=True)
class Start:
    """What a batch began with, kept in its run: by user a snapshot, memory files, and notes with digests."""

    directory: Path

    def keep(self, layout: Layout, users: Iterable[str]) -> None:
        """Keep what a store holds now."""
        remove_tree(self.directory)
        index = Index(layout)
        with (
            store_errors(self.directory, "create"),
            held_temporary(self.directory, directory=True) as temporary,
        ):
            for user in users:
                _keep(layout.of(user), index, temporary / user)
            temporary.rename(self.directory)
        index.close()

    def holds(self, users: Iterable[str]) -> bool:
        """Return whether it was kept whole; what an earlier version of panda kept is not."""
        return all((self.directory / user / _DIGESTS_JSON).is_file() for user in users)

    def snapshot(self, user: str) -> Snapshot:
        return load(Snapshot, self.directory / user / SNAPSHOT_JSON)

    def knowledge(self, user: str) -> Path:
        return self.directory / user / "knowledge"

    def memory(self, store: UserStore, number: int, at: datetime) -> Projection:
        """A user's memory as it was, for turns that begin at some instant and have a number at least."""
        state = Projection(store)
        paths = {kind: self.directory / store.user / state.paths[kind].name for kind in KINDS}
        texts = {kind: read_text(path) if path.exists() else None for kind, path in paths.items()}
        state.log.refresh()
        return state.as_of(Bound(number, at, self.snapshot(store.user)), texts)

    def changed_notes(self, index: Index, user: str) -> Mapping[str, list[IndexEntry]]:
        """The notes that the index has otherwise than they were, by source, with their entries of then."""
        before: dict[str, str] = read_json(self.directory / user / _DIGESTS_JSON)
        index.freshen(user)
        now = index.read(user, lambda view: view.note_digests())
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return {f"{NOTES}{name}": self._entries(user, name) if name in before else [] for name in names}

    def _entries(self, user: str, name: str) -> list[IndexEntry]:
        return entries_at(self.knowledge(user) / unescape_path(name), f"{NOTES}{name}")

    def drop_unchanged(self, layout: Layout) -> None:
        """Keep of the notes only those that were edited or removed since."""
        for user in self.directory.iterdir():
            for path in _files(user / "knowledge"):
                now = layout.of(user.name).knowledge / path.relative_to(user / "knowledge")
                with suppress(OSError):
                    if filecmp.cmp(now, path, shallow=False):
                        path.unlink()


def _keep(store: UserStore, index: Index, place: Path) -> None:
    memory = Projection(store)
    make_directory(place)
    digests: Mapping[str, str] = {}
    turns: Iterable[int] = ()
    if store.home.is_dir():
        lock = held_lock(store.memory_lock, holder="panda batch", wait_seconds=60.0)
        with lock, suppress(FileFormatError):  # each item tells
            memory.refresh()
        index.freshen(store.user)
        turns, digests = index.read(store.user, lambda view: (view.turns, view.note_digests()))
    for name, may_be_read in list_notes(str(store.knowledge)).items():
        note = store.knowledge / name
        if name and may_be_read and note.is_file() and note.stat().st_size <= NOTE_BYTES:
            make_directory((place / "knowledge" / name).parent)
            copy = Path(shutil.copy2(note, place / "knowledge" / name))
            copy.chmod(0o600)
    for kind in KINDS:
        if (text := memory.texts.get(kind)) is not None:
            write_atomic(place / memory.paths[kind].name, text)
    snapshot = Snapshot(
        turns=in_ranges([*turns]),
        memory=memory.log.mark,
        files=memory.digests,
        notes=len(digests),
        knowledge=digest_parts(digests),
    )
    write_json(place / SNAPSHOT_JSON, encode(snapshot))
    write_json(place / _DIGESTS_JSON, digests)


def _files(directory: Path) -> Iterator[Path]:
    yield from (path for path in directory.rglob("*") if path.is_file())
