"""`panda view`: turns and what they rest on, in the browser or as files."""

import sys
import webbrowser
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from panda.addons.serving.serving_commands import HOST_HELP
from panda.cli.command import Invocation, Result, Stream, argument, excludes, flag, option, out_directory
from panda.cli.completion import complete_turns_and_runs
from panda.documents.safe_text import count_noun
from panda.errors import UsageError
from panda.store.layout import RUN_JSON, Layout, UserStore

if TYPE_CHECKING:
    from panda.addons.view.shelf import Shelf


@excludes("out", ["host", "port", "no_open"], fix="leave it out: nothing is served")
def view(
    invocation: Invocation,
    selection: Annotated[
        list[str] | None,
        argument(
            "The turn or run to begin with, last for the newest run; with --out, runs, numbers and ranges.",
            "[TURN|RUN|SELECTION…]",
            complete=complete_turns_and_runs,
        ),
    ] = None,
    out: Annotated[Path | None, out_directory("Write the pages as files into this new directory.")] = None,
    host: Annotated[str, option(HOST_HELP, "HOST")] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on; 0 for any free one.", "N", min=0, max=65535)] = 0,
    no_open: Annotated[bool, flag("Do not open the browser.", "--no-open")] = False,
) -> Result:
    """
    Look at turns in the browser: answers with the words that they rest on, phases, candidates, model calls;
    and at memory, sessions, runs and stats. Nothing is written into the store. Ends at Ctrl-C; the address
    goes to stdout.

    Example: panda view 813 --user demo
    """
    from panda.addons.view.shelf import Shelf

    layout = invocation.store()
    words = selection or []
    if out is not None:
        return _written(invocation, layout, words, out)
    shelf = Shelf(layout)
    path = _first_page(shelf, words)
    return Result(None, Stream(_served(invocation, shelf, host, port, path, opens=not no_open)))


def _first_page(shelf: "Shelf", words: Sequence[str]) -> str:
    """The path of the page that is opened; raises where there is no such turn or run."""
    if len(words) > 1:
        fix = "give one, or write pages with --out DIR"
        raise UsageError("more than one turn to begin with", where="TURN", fix=fix)
    if words and _is_run(shelf.store, words[0]):
        return f"runs/{_run_name(shelf.store, words[0])}"
    return f"turns/{shelf.store.user}/{shelf.turn(shelf.store.user, words[0]).number}" if words else ""


def _served(
    invocation: Invocation, shelf: "Shelf", host: str, port: int, path: str, *, opens: bool
) -> Iterator[tuple[str]]:
    from panda.addons.serving.guard import RequestLimits
    from panda.addons.serving.listening import serve_http
    from panda.addons.view.application import ViewApplication

    token = invocation.environ.get("PANDA_TOKEN") or None
    application = ViewApplication(shelf).application()
    served = serve_http(application, host=host, port=port, token=token, limits=RequestLimits(), browser=True)
    for address in served:
        invocation.reporter.step(f"listening on {address}; Ctrl-C stops")
        yield (f"{address}/{path}",)
        if opens and _has_browser(invocation.environ):
            webbrowser.open(f"{address}/{path}")


def _has_browser(environ: Mapping[str, str]) -> bool:
    """Return whether a browser with a window can be opened: one in the terminal would take that over."""
    named = any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return named or sys.platform in ("darwin", "win32")


def _written(invocation: Invocation, layout: UserStore, words: Sequence[str], out: Path) -> Result:
    from panda.addons.view.output import check_target, write_site
    from panda.addons.view.shelf import Shelf

    runs = [_run_name(layout, word) for word in words if _is_run(layout, word)]
    chosen = _selected(layout, words, runs) if words else None
    shelf = Shelf(layout, chosen, runs)
    check_target(out, shelf)
    files = write_site(out, shelf)
    first = out / "index.html"
    invocation.reporter.step(f"{count_noun(len(files), 'file')} in {out}")
    return Result({"directory": str(out), "first": str(first), "files": files}, str(first))


def _is_run(layout: Layout, word: str) -> bool:
    """Return whether a word means a run of the store: a name, and no path."""
    return word == "last" or ("/" not in word and (layout.runs / word / RUN_JSON).is_file())


def _run_name(layout: Layout, word: str) -> str:
    """The run that a word means. Raises NotFoundError: there is none."""
    from panda.runs.ledger import open_run

    return open_run(layout, word).id


def _selected(layout: UserStore, words: Sequence[str], runs: Sequence[str]) -> dict[str, list[int]]:
    """The numbers that a selection means, by user, those of the turns of its runs too."""
    from panda.addons.view.runs import turns_of_run
    from panda.runs.select import TurnFilter, select_turns

    numbers_by_user = defaultdict(set)
    for run in runs:
        for owner, numbers in turns_of_run(layout, run).items():
            numbers_by_user[owner].update(numbers)
    selection = [word for word in words if not _is_run(layout, word)]
    places = (
        select_turns(selection, TurnFilter(), layout=lambda: layout, user=layout.user) if selection else ()
    )
    for place in places:
        if place.layout.root.resolve() != layout.root.resolve():
            fix = "name that store with --root"
            raise UsageError("this turn is in another store", where=str(place.directory), fix=fix)
        numbers_by_user[place.user].add(place.number)
    return {name: sorted(numbers) for name, numbers in sorted(numbers_by_user.items())}
