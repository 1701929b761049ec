"""`panda view`: turns and what they rest on, in the browser or as files."""

import sys
import webbrowser
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from panda.cli.command import Invocation, Result, Stream, argument, excludes, flag, option
from panda.cli.completion import complete_turns
from panda.cli.serve import HOST_HELP
from panda.errors import UsageError
from panda.storage.layout import Layout

if TYPE_CHECKING:
    from panda.view.shelf import Shelf


@excludes("out", "host", "port", "no_open", fix="leave it out: nothing is served")
def view(
    invocation: Invocation,
    selection: Annotated[
        list[str] | None,
        argument(
            "The turn to begin with; with --out, numbers and ranges such as 813-820.",
            "[TURN|SELECTION…]",
            complete=complete_turns,
        ),
    ] = None,
    out: Annotated[
        Path | None, option("Write the pages as files into this new directory.", "DIR", show_default="none")
    ] = None,
    host: Annotated[str, option(HOST_HELP, "HOST")] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on; 0 for any free one.", "N", min=0, max=65535)] = 0,
    no_open: Annotated[bool, flag("Do not open the browser.", "--no-open")] = False,
) -> Result:
    """
    Look at turns in the browser: answers with the words that they rest on, phases, candidates, model calls.
    Nothing is written into the store. Ends at Ctrl-C; the address goes to stdout.

    Example: panda view 813 --user demo
    """
    from panda.view.shelf import Shelf

    layout, words = invocation.store(), selection or []
    if out is not None:
        return _written(invocation, layout, words, out)
    shelf = Shelf(layout, invocation.settings.user, invocation.settings.clock)
    path = _first_page(shelf, words)
    return Result(None, Stream(_served(invocation, shelf, host, port, path, opens=not no_open)))


def _first_page(shelf: "Shelf", words: Sequence[str]) -> str:
    """The path of the page that is opened; raises where there is no such turn."""
    if len(words) > 1:
        fix = "give one, or write pages with --out DIR"
        raise UsageError("more than one turn to begin with", where="TURN", fix=fix)
    return f"turns/{shelf.user}/{shelf.turn(shelf.user, words[0]).number}" if words else ""


def _served(
    invocation: Invocation, shelf: "Shelf", host: str, port: int, path: str, *, opens: bool
) -> Iterator[tuple[str]]:
    from panda.serving.guard import Limits
    from panda.serving.listening import serve_http
    from panda.view.application import ViewApplication

    token = invocation.environ.get("PANDA_TOKEN") or None
    application = ViewApplication(shelf).application()
    served = serve_http(application, host=host, port=port, token=token, limits=Limits(), browser=True)
    for address in served:
        invocation.reporter.step(f"listening on {address}; Ctrl-C stops")
        yield (f"{address}/{path}",)
        if opens and _has_browser(invocation.environ):
            webbrowser.open(f"{address}/{path}")


def _has_browser(environ: Mapping[str, str]) -> bool:
    """Whether a browser with a window can be opened: one in the terminal would take that over."""
    named = any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return named or sys.platform in ("darwin", "win32")


def _written(invocation: Invocation, layout: Layout, words: Sequence[str], out: Path) -> Result:
    from panda.view.output import check_target, list_pages, write_site
    from panda.view.shelf import Shelf

    settings = invocation.settings
    chosen = _selected(layout, settings.user, words) if words else None
    shelf = Shelf(layout, settings.user, settings.clock, chosen)
    check_target(out, shelf)
    with invocation.reporter.progress("pages", len(list_pages(shelf))) as advance:
        files = write_site(out, shelf, advance)
    first = out / "index.html"
    invocation.reporter.step(f"{len(files):,} files in {out}")
    return Result({"directory": str(out), "first": str(first), "files": files}, str(first))


def _selected(layout: Layout, user: str, words: Sequence[str]) -> dict[str, list[int]]:
    """The numbers that a selection means, by user."""
    from panda.replays.selection import TurnFilter, select_turns

    found = defaultdict(set)
    for place in select_turns(words, TurnFilter(), layout=lambda: layout, user=user):
        if place.layout.root.resolve() != layout.root.resolve():
            fix = "name that store with --root"
            raise UsageError("this turn is in another store", where=str(place.directory), fix=fix)
        found[place.user].add(place.number)
    return {name: sorted(numbers) for name, numbers in sorted(found.items())}
