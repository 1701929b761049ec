"""`panda forget`: what was told is taken out of everything."""

import sys
from collections.abc import Sequence
from typing import Annotated

from panda.actions.remember import StatementOptions, find_subject
from panda.cli.command import Invocation, OutputTable, Result, argument, excludes, flag, option
from panda.cli.completion import complete_told
from panda.cli.confirmation import can_ask, confirm
from panda.cli.output_text import read_argument
from panda.documents.safe_text import count_noun
from panda.errors import CheckError, NotFoundError, UsageError
from panda.forgetting import Forgetting, Place, Wanted
from panda.memory.user_memory import Memory
from panda.settings import default_cache_dir
from panda.store.bug_reports import report_directories
from panda.store.layout import UserStore
from panda.trust import require_trust

_COLUMNS = ("count", "place", "what to do")
_OWN_FILE = "a note is your own file"


@excludes("seal", ["text", "dry_run"])
def forget(
    invocation: Invocation,
    names: Annotated[
        list[str] | None,
        argument(
            "A key, a node such as visit:…, or a turn's number.", "KEY|NODE|TURN…", complete=complete_told
        ),
    ] = None,
    text: Annotated[
        str | None,
        option("This text, in any case; - reads it from stdin.", "TEXT", "--text", show_default="none"),
    ] = None,
    dry_run: Annotated[bool, flag("Only list the places.", "--dry-run")] = False,
    yes: Annotated[bool, flag("Do not ask.", "--yes")] = False,
    seal: Annotated[
        bool, flag("Seal the named turns, in which an earlier version forgot something.", "--seal")
    ] = False,
) -> Result:
    """
    Take out of everything what was told: memory, turns, sessions, logs, indexes, cached states.

    Example: panda forget --text "thin bezels" --dry-run --user demo

    A mark with the time remains, and a turn that lost something is sealed anew and held to its seal alone. A
    key means all that was ever said under it, in whatever sentence, also what was corrected since; of a
    sentence that says more only the clause about it goes. A turn means all that was said in it, and what that
    made. Where the same was said independently is told, and the command ends with 3. --text takes that too,
    of all users: in any case, over line breaks and escapes, but not its pieces. Below 4 characters only whole
    words count; keys, headings and names stay. Notes are your own files: they are named (3). There is no
    undo: you are asked first, and without a terminal --yes is needed.
    """
    if seal:
        return _seal(invocation, names or ())
    secret = read_argument(text, invocation.stdin).strip() if text is not None else None
    store = invocation.store() if dry_run else invocation.store_for_writing()
    require_trust(invocation.settings, "cache_dir")
    caches = {invocation.settings.cache_dir, default_cache_dir(invocation.environ), *report_directories()}
    forgetting = Forgetting(store, caches)
    if not dry_run:
        Memory(store).take_in()
    wanted = _wanted(forgetting, store, names or (), secret)
    at = forgetting.at
    places_by_target = [list(forgetting.places(target)) for target in wanted]
    if names and secret is not None and not places_by_target[-1]:
        invocation.reporter.warn("the text of --text is nowhere: check how it is spelt")
    places = [place for several in places_by_target for place in several]
    if not places and names:
        invocation.reporter.step("nothing is left of it")
    if not places and not names and not forgetting.journal.is_file():  # none was cut short
        raise NotFoundError("the text is nowhere", where="--text", fix="check how it is spelt")
    if dry_run:
        invocation.reporter.step("kept states of prompts go too; short values and pieces of it need --text")
    else:
        if not yes:
            _ask(places)
        with forgetting.locked(dict.fromkeys(user for target in wanted for user in target.users)):
            places = [place for target in wanted for place in forgetting.run(target)]
    return _result(store.user, list(dict.fromkeys(places)), at, dry_run=dry_run)


def _seal(invocation: Invocation, names: Sequence[str]) -> Result:
    """Seal turns, named by number, or all of the user's."""
    store = invocation.store_for_writing()
    strange = [name for name in names if not (name.isascii() and name.isdigit())]
    if strange:
        raise UsageError(f"{strange[0]!r} is no number of a turn", where="TURN", fix="give turns by number")
    numbers = [int(name) for name in names] or store.numbers()
    for number in numbers:
        store.open(number)
    sealed = Forgetting(store, ()).seal_turns(numbers)
    if not sealed:
        invocation.reporter.step("nothing to seal: no turn has lost something without being sealed")
    return Result(
        {"user": store.user, "sealed": sealed}, OutputTable(("sealed",), [(number,) for number in sealed])
    )


def _wanted(forgetting: Forgetting, store: UserStore, names: Sequence[str], text: str | None) -> list[Wanted]:
    """All that is named; whole turns first, since what they said is named nowhere else."""
    if not names and text is None:
        raise UsageError("nothing is named", where="KEY|NODE|TURN…", fix="give a key, a turn, or --text")
    targets = [_of_name(forgetting, store, name) for name in names]
    targets.sort(key=lambda target: target.turn is None)
    if text is not None:
        if not text or text.lower() in "[forgotten]":
            raise UsageError("this text cannot be forgotten", where="--text", fix="give more of it")
        targets.append(forgetting.of_text(text))
    return targets


def _of_name(forgetting: Forgetting, store: UserStore, name: str) -> Wanted:
    kind, _, rest = name.partition(":")
    number = rest if kind == "turn" else name
    if number.isascii() and number.isdigit():
        store.open(int(number))
        return forgetting.of_turn(int(number))
    if kind == "knowledge":
        raise UsageError(_OWN_FILE, where=name, fix=f"delete it by hand: {store.knowledge / rest}")
    if kind == "research":
        raise UsageError("a research is forgotten with its turn", where=name, fix="give the turn's number")
    if kind == "document":
        fix = "give the turn's number, or with --text what it says"
        raise UsageError("a document is forgotten with its turn", where=name, fix=fix)
    if kind == "visit":
        target = forgetting.of_visit(rest)
        fault = f"there is no visit {rest!r}"
        fix = "see `panda show`"
    else:
        key = rest if kind in ("memory", "fact") else name
        target = forgetting.of_subject(*find_subject(key, StatementOptions(), store.user)[1:])
        fault = f"nothing was ever said under {key}"
        fix = "see `panda memory list`, or use --text"
    if target is None:
        raise NotFoundError(fault, where=name, fix=fix)
    return target


def _ask(places: Sequence[Place]) -> None:
    """Ask on the terminal. Raises UsageError: there is none, or the answer is no."""
    if can_ask():
        for place in places:
            sys.stderr.write(f"{place.count}\t{place.path}\n")
    confirm(
        f"forget it in {count_noun(len(places), 'file')}, for good",
        where="panda forget",
        undone="nothing was forgotten",
        fix="give --yes to forget without being asked, or --dry-run to list the places",
    )


def _result(user: str, places: Sequence[Place], at: str, *, dry_run: bool) -> Result:
    left = [place for place in places if place.left is not None]
    done = [place for place in places if place.left is None]
    data = {
        "user": user,
        "at": at,
        "dry_run": dry_run,
        "places": [{"path": str(place.path), "count": place.count} for place in done],
        "left": [{"path": str(place.path), "count": place.count, "why": place.left} for place in left],
    }
    rows = [(place.count, str(place.path), place.left or "") for place in places]
    message = f"places in which it stays: {len(left)}"
    error = CheckError(message, where=str(left[0].path), fix=left[0].left) if left else None
    return Result(data, OutputTable(_COLUMNS, rows), error=error)
