"""`panda export` and `panda import`: what was said, out of the store and into it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from panda.cli.command import Document, Invocation, Result, argument, flag, option, out_file, requires
from panda.cli.completion import complete_sessions, complete_turns
from panda.documents.times import read_instant
from panda.errors import CheckError, UsageError

if TYPE_CHECKING:
    from panda.actions.export import Export, Format


@requires("renumber", "as_", "jsonl")
def export(
    invocation: Invocation,
    selection: Annotated[
        list[str] | None,
        argument(
            "Numbers, ranges such as 813-820, or directories of turns.", "SELECTION…", complete=complete_turns
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
    from panda.actions.export import export_turns
    from panda.replays.selection import TurnFilter, select_turns
    from panda.storage.files import write_atomic

    form = _format_of(as_)
    wanted = TurnFilter(session=session, since=read_instant(since or None, "--since"), status=status)
    user, reporter = invocation.settings.user, invocation.reporter
    places = select_turns(selection or (), wanted, layout=invocation.store, user=user)
    made = export_turns(places, form, reporter.progress, numbered=not renumber)
    for one in made.left_out:
        reporter.warn(f"turn {one.turn} is left out: {one.reason}")
    if out is not None and made.turns:
        write_atomic(out, made.text)
    told = f"{len(made.turns)} turns, {len(made.left_out)} left out"
    reporter.step(told if out is None else f"{told}: {out}")
    return _exported(made, form, out)


def _format_of(word: str) -> "Format":
    from panda.actions.export import FORMATS

    if word not in FORMATS:
        message = f"there is no {word!r} for --as" if word else "--as is missing"
        raise UsageError(message, where="--as", fix=f"use one of: {', '.join(FORMATS)}")
    return word


def _exported(made: "Export", form: str, out: Path | None) -> Result:
    data = {
        "as": form,
        "turns": [{"user": user, "turn": turn} for user, turn in (one.key for one in made.turns)],
        "left_out": [asdict(one) for one in made.left_out],
        "out": None if out is None else str(out),
        "lines": list(made.lines) if out is None and form != "markdown" else None,
        "text": made.text if out is None and form == "markdown" else None,
    }
    body = "" if out is not None else Document(made.text.encode("utf-8"), markdown=form == "markdown")
    damaged = [one for one in made.left_out if one.is_damage]
    if not damaged and made.turns:
        return Result(data, body)
    message = f"turns that are damaged: {len(damaged)}" if damaged else "none of the turns can be exported"
    first = (damaged or made.left_out)[0]
    return Result(data, body, error=CheckError(message, where=f"turn {first.turn}", fix=first.fix))
