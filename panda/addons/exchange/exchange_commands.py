"""`panda export` and `panda import`: what was said, out of the store and into it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from panda.cli.command import (
    Invocation,
    NewUser,
    OutputDocument,
    OutputTable,
    Result,
    argument,
    flag,
    option,
    out_file,
    requires,
)
from panda.cli.completion import complete_sessions, complete_turns
from panda.documents.safe_text import count_noun
from panda.documents.times import read_instant, time_text
from panda.errors import CheckError, UsageError
from panda.store.files import work_directory
from panda.store.layout import UserStore

if TYPE_CHECKING:
    from panda.addons.exchange.export import Export, Format
    from panda.addons.exchange.export_files import ExportFile, Source
    from panda.addons.exchange.intake import Imported

_MOST_TOLD = 20  # damaged conversations that are named on stderr


@requires("renumber", "as_", "jsonl")
def export(
    invocation: Invocation,
    selection: Annotated[
        list[str] | None,
        argument(
            "Turns: 813, 813-820, 805,811, last, or directories of them.",
            "SELECTION…",
            complete=complete_turns,
        ),
    ] = None,
    as_: Annotated[
        str,
        option(
            "queries: lines for panda batch; jsonl: lines for panda import; markdown: a transcript.",
            "queries|jsonl|markdown",
            "--as",
            show_default="required",
        ),
    ] = "",
    session: Annotated[
        str | None,
        option("Only turns of this session.", "ID", complete=complete_sessions, show_default="all"),
    ] = None,
    since: Annotated[str | None, option("Only turns from this time on.", "TIME", show_default="all")] = None,
    status: Annotated[str | None, option("Only turns of this status.", "STATUS", show_default="all")] = None,
    renumber: Annotated[
        bool, flag("jsonl: without numbers; an import gives the next free ones.", "--renumber")
    ] = False,
    out: Annotated[Path | None, out_file("Write there.", "--out", "-o", default="stdout")] = None,
) -> Result:
    """
    Take saved turns out: as queries to ask again, as lines for another store, or as a transcript.

    Turns that cannot be taken out, such as unfinished ones as jsonl, are told; damaged ones end with 3.

    Example: panda export 809-812 --as queries --out queries.jsonl --user demo
    """
    from panda.addons.exchange.export import export_turns
    from panda.runs.select import TurnFilter, select_turns
    from panda.store.files import write_output

    form = _format_of(as_)
    wanted = TurnFilter(session=session, since=read_instant(since or None, "--since"), status=status)
    user = invocation.settings.user
    reporter = invocation.reporter
    places = select_turns(selection or (), wanted, layout=invocation.store, user=user)
    exported = export_turns(places, form, numbered=not renumber)
    for skipped in exported.left_out:
        reporter.warn(f"turn {skipped.turn} is left out: {skipped.reason}")
    if out is not None and exported.turns:
        write_output(out, exported.text)
    summary = f"{count_noun(len(exported.turns), 'turn')}, {len(exported.left_out)} left out"
    reporter.step(summary if out is None else f"{summary}: {out}")
    return _exported(exported, form, out)


def _format_of(word: str) -> "Format":
    from panda.addons.exchange.export import FORMATS

    if word not in FORMATS:
        message = f"there is no {word!r} for --as" if word else "--as is missing"
        raise UsageError(message, where="--as", fix=f"use one of: {', '.join(FORMATS)}")
    return word


def _exported(exported: "Export", form: str, out: Path | None) -> Result:
    data = {
        "as": form,
        "turns": [{"user": user, "turn": turn} for user, turn in (saved.key for saved in exported.turns)],
        "left_out": [asdict(skipped) for skipped in exported.left_out],
        "out": None if out is None else str(out),
        "lines": list(exported.lines) if out is None and form != "markdown" else None,
        "text": exported.text if out is None and form == "markdown" else None,
    }
    body = (
        "" if out is not None else OutputDocument(exported.text.encode("utf-8"), markdown=form == "markdown")
    )
    damaged = [skipped for skipped in exported.left_out if skipped.is_damage]
    if not damaged and exported.turns:
        return Result(data, body)
    message = f"turns that are damaged: {len(damaged)}" if damaged else "none of the turns can be exported"
    first = (damaged or exported.left_out)[0]
    return Result(data, body, error=CheckError(message, where=f"turn {first.turn}", fix=first.fix))


def import_conversations(
    invocation: Invocation,
    file: Annotated[str, argument("The file as it was delivered, a .zip too; - for stdin.", "FILE")],
    from_: Annotated[
        str | None,
        option(
            "Who made it.", "chatgpt|claude|llm|jsonl", "--from", show_default="what its first bytes tell"
        ),
    ] = None,
    dry_run: Annotated[bool, flag("Only tell what would come in.", "--dry-run")] = False,
    new_user: NewUser = False,
) -> Result:
    """
    Save turns that another program or store held: an export of ChatGPT or Claude, the log of llm, JSON lines.

    Each message of the user becomes a turn with the reply after it, each conversation a session. Everything
    is checked first; turns that are there already stay as they are. What cannot come in, such as pictures
    and queries without a reply, is told.

    A line of JSON lines is {"user", "turn"?, "session", "at", "query", "response", "summary"?, "topics"?}; a
    wrong line, or a number that another turn has, changes nothing. The users of the lines are made; what
    another program held is --user's, who must be there.

    Example: panda import --from chatgpt export.zip --dry-run
    """
    from panda.addons.exchange.intake import import_file
    from panda.cli.index import fill_imported  # each command waits for what it needs alone

    reporter = invocation.reporter
    layout = (invocation.store if dry_run else invocation.store_for_writing)(any_user=True)
    reporter.detail(f"reading {'stdin' if file == '-' else file}")
    name = "<stdin>" if file == "-" else file
    with _at_hand(file, invocation.stdin) as place:
        export_file = _open_export(invocation, layout, place, name, from_)
        done = import_file(export_file, layout, dry_run=dry_run)
    if not dry_run:
        fill_imported(invocation, sorted({turn.user for turn in done.turns if turn.created}))
    return _imported(invocation, done, export_file, dry_run=dry_run)


@contextmanager
def _at_hand(file: str, stdin: BinaryIO) -> Iterator[Path]:
    """The file; what comes through a pipe, and can be read only once, is kept in one meanwhile."""
    from panda.addons.exchange.export_files import copy_limited

    path = Path(file)
    if file != "-" and (path.is_file() or not path.exists() or path.is_dir()):
        yield path
        return
    with work_directory("import") as directory:
        copy = directory / "file"
        with copy.open("wb") as target, stdin if file == "-" else path.open("rb") as source:
            copy_limited(source, target, name="<stdin>" if file == "-" else file)
        yield copy


def _open_export(
    invocation: Invocation, layout: UserStore, path: Path, name: str, word: str | None
) -> "ExportFile":
    """Return the file to import; if it names no users, the one of the settings must be there."""
    from panda.addons.exchange.export_files import ExportFile

    export_file = ExportFile(path, name, _source_of(path, name, word))
    settings = invocation.settings
    if export_file.source != "jsonl":
        invocation.check_user(layout, settings.place("user"))
    return export_file


def _source_of(path: Path, name: str, word: str | None) -> "Source":
    from panda.addons.exchange.export_files import SOURCES, find_source

    if word is not None and word not in SOURCES:
        message = f"--from says which program made the file; {word!r} is none that is known"
        raise UsageError(message, where="--from", fix=f"use one of: {', '.join(SOURCES)}")
    return find_source(path, name, word)


def _imported(
    invocation: Invocation, done: "Imported", export_file: "ExportFile", *, dry_run: bool
) -> Result:
    """Return the result of an import: turns and, of an export, what does not come in."""
    counts = {"created": done.created, "unchanged": done.unchanged}
    data: dict[str, object] = {"from": export_file.source, "dry_run": dry_run, **counts}
    data |= {"new_users": done.new_users, "turns": [asdict(turn) for turn in done.turns]}
    for user in done.new_users:
        invocation.reporter.step(f"user {user} is new")
    rows: list[tuple[str, object]] = [("new turns", done.created), ("turns there already", done.unchanged)]
    if done.conversations is not None:
        first = time_text(done.first)
        last = time_text(done.last)
        data |= {"conversations": done.conversations, "sessions": sorted(done.sessions)}
        data |= {"first": first, "last": last, "left_out": done.counts}
        data["not_imported"] = [asdict(leftover) for leftover in done.left]
        rows += [("conversations", done.conversations), ("sessions with new turns", len(done.sessions))]
        rows += [("first query", first), ("last query", last)]
        rows += [(f"left out: {kind}", count) for kind, count in done.counts.items()]
        for why in [f"{leftover.kind}: {leftover.why}" for leftover in done.left if leftover.why][
            :_MOST_TOLD
        ]:
            invocation.reporter.warn(why)
        if done.counts and not dry_run:  # a dry run has rows of it
            kinds = ", ".join(f"{kind}: {count:,}" for kind, count in done.counts.items())
            invocation.reporter.step(f"left out: {kinds} (--json lists them)")
    if dry_run:
        return Result(data, OutputTable(("what", "count"), rows))
    invocation.reporter.step(f"{done.created} saved, {done.unchanged} there already")
    return Result(data)
