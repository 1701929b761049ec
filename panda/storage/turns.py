"""All turns of one user: claiming a number, opening a turn."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from panda.documents.context import ContextDocument, FrontMatter
from panda.documents.pictures import Picture
from panda.documents.times import Clock
from panda.errors import FileFormatError, NotFoundError
from panda.storage.files import (
    held_lock,
    make_directory,
    read_text,
    store_errors,
    sync_directory,
    write_atomic,
)
from panda.storage.layout import SNAPSHOT_JSON, Layout, TurnPaths
from panda.storage.names import check_id, turn_number
from panda.storage.snapshot import Snapshot
from panda.storage.temporaries import held_temporary, sweep
from panda.storage.turn_folder import CONTEXT_SCHEMA, METADATA_SCHEMA, Metadata, Next, Status, TurnFolder
from panda.storage.turn_images import image_name

__all__ = [
    "CONTEXT_SCHEMA",
    "METADATA_SCHEMA",
    "Metadata",
    "Next",
    "Status",
    "TurnFolder",
    "TurnStore",
    "check_id",
    "turn_number",
]

CLAIM_WAIT_SECONDS = 60.0
_COUNTER_DIGITS = 15


@dataclass(frozen=True)
class TurnStore:
    """The turns of one user."""

    layout: Layout
    """Paths of the store."""
    user: str
    """User id."""
    clock: Clock
    """Gives the time of claims and writes."""

    def __post_init__(self) -> None:
        check_id(self.user, what="user")

    def numbers(self) -> list[int]:
        """
        Numbers of all turn directories, ascending; [] for a user without turns.

        Raises:
            StoreError: The directory cannot be read.
        """
        return sorted(self._numbers())

    def highest(self) -> int:
        """Highest number of a turn directory; 0 if there is none (raises as numbers)."""
        return max(self._numbers(), default=0)

    def _numbers(self) -> Iterator[int]:
        directory = self.layout.turns(self.user)
        if directory.is_dir():
            with store_errors(directory, "list"), os.scandir(directory) as entries:
                yield from filter(None, (turn_number(entry.name) for entry in entries))

    def counter(self) -> int:
        """
        Highest number ever claimed, by the file turn_counter; 0 if there is none.

        Raises:
            FileFormatError: It holds no number.
            StoreError: It cannot be read.
        """
        path = self.layout.turn_counter(self.user)
        if not path.exists():
            return 0
        text = read_text(path).strip()
        if not (text.isascii() and text.isdigit() and len(text) <= _COUNTER_DIGITS):
            raise FileFormatError(
                f"the turn counter is no number: {text[:80]!r}",
                where=str(path),
                fix=f"write the highest turn number into it, at least {self.highest()}",
            )
        return int(text)

    def has(self, number: int) -> bool:
        """Whether there is a directory of that number."""
        return self.layout.turn(self.user, number).directory.is_dir()

    def open(self, number: int) -> TurnFolder:
        """
        The turn of that number.

        Raises:
            NotFoundError: There is none.
        """
        paths = self.layout.turn(self.user, number)
        if not self.has(number):
            raise NotFoundError(
                f"user {self.user} has no turn {number}",
                where=str(paths.directory),
                fix="`panda list` shows the turns",
            )
        return TurnFolder(number, paths, self.clock)

    def claim(
        self,
        session: str,
        mode: str,
        query: str,
        *,
        seed: int | None = None,
        dry_run: bool = False,
        picture: Picture | None = None,
        snapshot: Snapshot | None = None,
    ) -> TurnFolder:
        """
        A turn directory of its own, with a context.md without sections and a metadata.json of status running.

        The number is one more than any claimed before, and is never given again. Processes that claim at the
        same time wait for each other.

        Args:
            session: Session id.
            mode: chat or code.
            query: The raw query.
            seed: Seed given by the user, if any.
            dry_run: Whether tools only tell what they would change in the project.
            picture: The image that the user gave, copied into the turn.
            snapshot: What is there as the turn begins.

        Raises:
            UsageError: The session id is not valid.
            LockHeldError: Another process is claiming for too long.
            StoreError: It cannot be written.

        Source:
            design, files.
        """
        check_id(session, what="session")
        now = self.clock()
        make_directory(self.layout.turns(self.user))
        with self.numbering(f"panda turn, session {session}"):
            number = max(self.counter(), self.highest()) + 1
            place = self.layout.turn(self.user, number)
            with (
                store_errors(place.directory, "create"),
                held_temporary(place.directory, directory=True) as directory,
            ):
                building = TurnFolder(number, TurnPaths(directory), self.clock)
                front = FrontMatter(CONTEXT_SCHEMA, number, self.user, session, mode, now)
                building.write_context(ContextDocument(front))
                if snapshot is not None:
                    building.write_json(SNAPSHOT_JSON, snapshot.to_json())
                if picture is not None:
                    write_atomic(building.paths / image_name(picture), picture.data)
                building.write_metadata(
                    Metadata(
                        turn=number,
                        user_id=self.user,
                        session_id=session,
                        mode=mode,
                        query=query,
                        status="running",
                        route=(),
                        next=Next(phase=0, round=0, attempt=0),
                        created_at=now,
                        updated_at=now,
                        seed=seed,
                        dry_run=dry_run,
                        image=image_name(picture) if picture else None,
                    )
                )
                self.raise_counter(
                    number
                )  # first: a number lost to a crash is lost, one given twice is wrong
                directory.rename(place.directory)
            sync_directory(place.directory.parent)
        return TurnFolder(number, place, self.clock)

    @contextmanager
    def numbering(self, holder: str) -> Iterator[None]:
        """The lock under which numbers are given and turn_counter is written; leftovers are swept."""
        path = self.layout.turn_counter(self.user)
        lock = path.with_name(f"{path.name}.lock")
        with held_lock(lock, holder=holder, wait_seconds=CLAIM_WAIT_SECONDS):
            sweep(self.layout.turns(self.user), is_locked=True)
            yield

    def raise_counter(self, number: int) -> None:
        """
        Sets turn_counter to *number*, unless it is higher already. Only under the lock of numbering().

        Raises:
            StoreError: It cannot be written.
        """
        if number > self.counter():
            write_atomic(self.layout.turn_counter(self.user), f"{number}\n")
