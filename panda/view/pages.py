"""
Every page: its address, its template, and the function that makes what it shows.

A page is added by a line in PAGES, a template in templates/ that extends frame.html.j2, and a function that
gives a plain value; if people should find it from everywhere, by a line in NAVIGATION.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from panda.view.comparison import compared_pairs, load_comparison
from panda.view.interventions import load_interventions
from panda.view.memory import load_memory, load_value, memory_places, value_addresses
from panda.view.runs import load_run, load_run_list, run_names, run_places, turn_places
from panda.view.sessions import load_session_list, load_session_page, session_names, session_places
from panda.view.shelf import Load, Shelf
from panda.view.stats import load_stats
from panda.view.turn import load_turn
from panda.view.turn_file import load_turn_file
from panda.view.turn_list import load_turn_list, older_lists

Parameters = Mapping[str, str]


def _once(shelf: Shelf) -> Iterable[Parameters]:
    return [{}]


def _users(shelf: Shelf) -> Iterable[Parameters]:
    return [{"user": user} for user in shelf.users()]


def _turns(shelf: Shelf) -> Iterable[Parameters]:
    return [{"user": user, "turn": str(number)} for user in shelf.users() for number in shelf.numbers(user)]


def _all_users(shelf: Shelf) -> Iterable[Parameters]:
    """Everybody, of pages that are not about turns: a selection of turns has none."""
    return [] if shelf.is_selection else _users(shelf)


def _memory_places(shelf: Shelf) -> Iterable[Parameters]:
    for one in _all_users(shelf):
        yield from ({**one, "place": str(place)} for place in memory_places(shelf, one["user"]))


def _values(shelf: Shelf) -> Iterable[Parameters]:
    for one in _all_users(shelf):
        yield from ({**one, "value": value} for value in value_addresses(shelf, one["user"]))


def _session_places(shelf: Shelf) -> Iterable[Parameters]:
    for one in _all_users(shelf):
        yield from ({**one, "place": str(place)} for place in session_places(shelf, one["user"]))


def _sessions(shelf: Shelf) -> Iterable[Parameters]:
    for one in _all_users(shelf):
        yield from ({**one, "session": name} for name in session_names(shelf, one["user"]))


def _unless_selected(shelf: Shelf) -> Iterable[Parameters]:
    return [] if shelf.is_selection else _once(shelf)


def _run_list(shelf: Shelf) -> Iterable[Parameters]:
    return _once(shelf) if shelf.runs else _unless_selected(shelf)


def _run_places(shelf: Shelf) -> Iterable[Parameters]:
    for _ in _run_list(shelf):
        yield from ({"place": str(place)} for place in run_places(shelf))


def _runs(shelf: Shelf) -> Iterable[Parameters]:
    for _ in _run_list(shelf):
        yield from ({"run": name} for name in run_names(shelf))


def _turns_of_runs(shelf: Shelf) -> Iterable[Parameters]:
    for _ in _run_list(shelf):
        yield from ({"run": name, "place": str(place)} for name, place in turn_places(shelf))


def _pairs(shelf: Shelf) -> Iterable[Parameters]:
    for _ in _run_list(shelf):
        yield from ({"before": before, "after": after} for before, after in compared_pairs(shelf))


def _nowhere(shelf: Shelf) -> Iterable[Parameters]:
    return []


@dataclass(frozen=True)
class Page:
    """One kind of page."""

    address: str
    """Its path; parts in braces are parameters, `{name:path}` takes the rest. "" is the first page."""
    template: str  # file in templates/; it gets what was loaded as `page`
    load: Load  # makes what it shows; raises NotFoundError where there is no such page
    written: Callable[[Shelf], Iterable[Parameters]]
    """Parameters of each page of the kind that is written where the site is written as files."""

    def path(self, parameters: Parameters) -> str:
        """The address with its parameters filled in."""
        return self.address.replace(":path}", "}").format(**parameters)


PAGES: tuple[Page, ...] = (
    Page("", "turn_list.html.j2", load_turn_list, _once),
    Page("turns/{user}", "turn_list.html.j2", load_turn_list, _users),
    Page("turns/{user}/before/{before}", "turn_list.html.j2", load_turn_list, older_lists),
    Page("turns/{user}/{turn}", "turn.html.j2", load_turn, _turns),
    Page("turns/{user}/{turn}/files/{name:path}", "turn_file.html.j2", load_turn_file, _nowhere),
    Page("memory/{user}", "memory.html.j2", load_memory, _all_users),
    Page("memory/{user}/page/{place}", "memory.html.j2", load_memory, _memory_places),
    Page("memory/{user}/{value}", "value.html.j2", load_value, _values),
    Page("sessions/{user}", "session_list.html.j2", load_session_list, _all_users),
    Page("sessions/{user}/page/{place}", "session_list.html.j2", load_session_list, _session_places),
    Page("sessions/{user}/{session}", "session.html.j2", load_session_page, _sessions),
    Page("runs", "run_list.html.j2", load_run_list, _run_list),
    Page("runs/page/{place}", "run_list.html.j2", load_run_list, _run_places),
    Page("runs/compare", "comparison.html.j2", load_comparison, _nowhere),
    Page("runs/compare/{before}/{after}", "comparison.html.j2", load_comparison, _pairs),
    Page("runs/{run}", "run.html.j2", load_run, _runs),
    Page("runs/{run}/page/{place}", "run.html.j2", load_run, _turns_of_runs),
    Page("stats/{user}", "stats.html.j2", load_stats, _all_users),
    Page("interventions", "interventions.html.j2", load_interventions, _unless_selected),
)
"""In the order in which they are tried."""

NAVIGATION: tuple[tuple[str, str], ...] = (
    ("Turns", "turns/{user}"),
    ("Memory", "memory/{user}"),
    ("Sessions", "sessions/{user}"),
    ("Runs", "runs"),
    ("Stats", "stats/{user}"),
    ("Interventions", "interventions"),
)
"""Name and address of what every page leads to; {user} is whose pages are looked at."""
