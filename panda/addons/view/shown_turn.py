"""The turn that a page is of: a saved one, or one that a run keeps in its own directory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from panda.addons.view.runs import find_run, turns_address
from panda.addons.view.shelf import PageQuery, Shelf
from panda.errors import NotFoundError
from panda.memory.markdown_files import Bound
from panda.runs.ledger import RunFolder, RunPlan
from panda.store.layout import Apart, UserStore
from panda.store.turns import TurnFolder


@dataclass(frozen=True, kw_only=True)
class ShownTurn:
    """A turn with the store as it reads it."""

    user: str
    folder: TurnFolder
    store: UserStore  # with the turns of its run that it may read, if it is kept in one
    run: str | None  # id of the run that keeps it; None for a saved turn
    beside: frozenset[int] = frozenset()  # turns of the run that it may read, by number

    def address(self, number: int) -> str:
        """Return the address of the page of a turn, itself or one that it names."""
        is_of_run = self.run is not None and number in {self.folder.number, *self.beside}
        return f"{turns_address(self.run if is_of_run else None, self.user)}/{number}"

    def bound(self, bound: Bound) -> Bound:
        """Return the bound of what the turn may read, with what its run adds."""
        return replace(bound, is_apart=self.run is not None, beside=self.beside)


def find_shown_turn(shelf: Shelf, query: PageQuery) -> ShownTurn:
    """Return the turn that an address names. Raises NotFoundError: there is none."""
    user = query.parameters["user"]
    turn = query.parameters["turn"]
    name = query.parameters.get("run")
    if name is None:
        return ShownTurn(user=user, folder=shelf.turn(user, turn), store=shelf.turns(user), run=None)
    run = find_run(shelf, name)
    store = shelf.turns(user)
    number = int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 16 else 0
    directories = _readable_turns(RunFolder(run.directory), run.plan, user, number)
    if number not in directories:
        raise NotFoundError(f"run {name} keeps no turn {turn[:80]} of {user}", where=str(run.directory))
    store = replace(store, apart=Apart(run.directory, directories))
    beside = frozenset(directories) - {number}
    return ShownTurn(user=user, folder=store.open(number), store=store, run=run.id, beside=beside)


def _readable_turns(folder: RunFolder, plan: RunPlan | None, user: str, number: int) -> Mapping[int, Path]:
    """Return the directories in a run of a turn and, of a batch, of those before it in its session."""
    planned = [turn for turn in plan.turns if turn.user == user] if plan else []
    place = next((at for at, turn in enumerate(planned) if turn.turn == number), None)
    numbers = {number}
    if place is not None and planned[place].session is not None:
        session = planned[place].session
        numbers |= {turn.turn for turn in planned[:place] if turn.session == session}
    directories = {turn: folder.kept_turn(user, turn) for turn in numbers}
    return {turn: directory for turn, directory in directories.items() if directory.is_dir()}
