"""`panda init`, `validate` and `schema`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

from panda.cli.command import Invocation, NewUser, OutputTable, Result, argument, flag
from panda.cli.completion import complete_formats, complete_turns
from panda.cli.output_text import grouped_text, problem_text
from panda.documents.safe_text import nearest
from panda.errors import (
    CheckError,
    NoteFormatError,
    NotFoundError,
    ObsoleteKeyError,
    Problem,
    Verdict,
    verdict_of,
)
from panda.index.sources import NOTE_KINDS
from panda.settings import Settings
from panda.store.demo import create_store
from panda.store.files import begin_writing, make_directory, render_json
from panda.store.layout import DEFAULT_USER, LAST, Layout, UserStore, asset, turn_number
from panda.trust import fix_of, guard_links, is_trusted, require_trust, untrusted_claims


def init(
    invocation: Invocation,
    demo: Annotated[bool, flag("Add the user demo and its turns.", "--demo")] = False,
    new_user: NewUser = False,
) -> Result:
    """
    Create a store.

    The store is the directory --root, else ./panda-system-docs. One that is there already is left as it is.
    Notes of your own are Markdown, text, CSV, JSON and HTML files in users/USER/knowledge/ of it, which is
    made; what is told goes to users/USER/ too.

    Example: panda init --demo
    """
    from panda.store.demo import copy_demo

    settings = invocation.settings
    require_trust(settings, "root")
    created = create_store(settings.root)
    begin_writing(settings.root)
    if demo:
        copy_demo(asset("panda-system-docs"), settings.root, settings.clock())
    invocation.make_user(settings.store)
    user = "demo" if demo else settings.user
    invocation.reporter.step(f"{'created' if created else 'already there'}: {settings.root}")
    knowledge = settings.store.of(user).knowledge
    if (user == DEFAULT_USER or knowledge.parent.is_dir()) and not knowledge.is_symlink():
        make_directory(knowledge)
    invocation.reporter.step(f"notes of your own: {NOTE_KINDS} in {knowledge}")
    return Result({"root": str(settings.root), "created": created, "user": user})


def validate(
    invocation: Invocation,
    paths: Annotated[
        list[Path] | None,
        argument(
            "A store, turns (813, 813-820, last), directory or file; none: everything in force.",
            "PATH|TURN",
            complete=complete_turns,
        ),
    ] = None,
    strict: Annotated[
        bool,
        flag("For scripts: a turn's memory that cannot be read and obsolete keys count too.", "--strict"),
    ] = False,
) -> Result:
    """
    Check files, without loading a model.

    Without a PATH that is the whole store, and the recipes, prompts, registry and models.yaml in force. Of a
    turn, §2 is judged too, as of when it was gathered: every line must stand in the nodes that it cites; a
    line whose node has changed or gone since is not judged, nor is what reaches out of the project before
    panda trust. Of turns that are named, hashes, gates, budgets and the evidence of the answer are judged
    again as well. A turn in which something was forgotten is held to its seal, and to the visits that its
    research names. Ends with 3 if anything
    is wrong or not judged. Told as information: what of a note's front matter is read as text, files in
    knowledge/ that are no notes, lines of notes that no answer can quote, notes outside knowledge/, values
    that no step of a recipe can choose, prompts of the project that no model which is set is ever sent; with
    -v also what of panda's own recipes. A memory that others on this machine can read is a warning, and so
    are keys of models.yaml that have no effect any more.

    Example: panda validate 813 --user demo
    """
    settings = invocation.settings
    store = Layout(settings.root).of(settings.user)
    places = [place for path in paths or () for place in _places(path, store)]
    problems = _trust_problems(settings, places)
    if is_trusted(settings, "root"):
        problems += _store_problems(invocation, places, strict=strict)
    of_recipes = _recipe_problems(settings, places, strict=strict)
    of_recipe_lines = {(os.path.realpath(problem.path), problem.line) for problem in of_recipes}
    problems = [p for p in problems if (os.path.realpath(p.path), p.line) not in of_recipe_lines]
    problems += of_recipes
    sound = [problem for problem in problems if problem.verdict is Verdict.SOUND]
    as_text = [problem for problem in sound if isinstance(problem, NoteFormatError)]
    warnings = [problem for problem in sound if _is_warning(problem)]
    informed = [
        problem for problem in sound if not isinstance(problem, NoteFormatError) and not _is_warning(problem)
    ]
    problems = [problem for problem in problems if problem.verdict is not Verdict.SOUND]
    data = {"verdict": verdict_of(problems), "problems": [problem.finding() for problem in problems]}
    data |= {
        "unquotable": [problem.finding() for problem in informed if problem not in of_recipes],
        "unreached": [problem.finding() for problem in informed if problem in of_recipes],
        "as_text": [problem.finding() for problem in as_text],
        "warnings": [problem.finding() for problem in warnings],
    }
    text = "".join(problem_text(problem, "warning: ") for problem in warnings)
    if not invocation.reporter.verbosity:  # what packaged recipes are like is nothing that the user can mend
        informed = [problem for problem in informed if not _is_packaged(problem)]
    text += "".join(map(_lines, [*problems, *informed])) + grouped_text(as_text, "information: ")
    if not problems:
        invocation.reporter.step("no problems found")
        return Result(data, text)
    return Result(data, text, error=_error(problems))


def _error(problems: Sequence[Problem]) -> CheckError:
    files = len({problem.path for problem in problems})
    unjudged = sum(problem.verdict is Verdict.NOT_JUDGED for problem in problems)
    of_them = f", {unjudged} of them not judged" if unjudged else ""
    message = f"problems: {len(problems)}{of_them}, in files: {files}"
    return CheckError(message, fix="mend them, then validate again")


def schema(
    invocation: Invocation,
    file: Annotated[
        str,
        argument("Name of a file, as metadata.json.", "FILE", complete=complete_formats, show_default="all"),
    ] = "",
) -> Result:
    """
    Show the JSON Schema of a file of the store or of a run, for a .jsonl file that of a line; without a name
    list the files that have one. It is made from what panda reads and writes the file with.

    Example: panda schema metadata.json
    """
    import msgspec

    from panda.store.records import FORMATS, format_of

    if not file:
        kinds = [(name, (get_args(format_of(name)) or (format_of(name),))[0]) for name in FORMATS]
        rows = [(name, kind.__doc__.strip().split("\n")[0]) for name, kind in kinds]
        return Result({"files": list(FORMATS)}, OutputTable(("file", "what it holds"), rows))
    if (kind := format_of(file)) is None:
        fix = nearest(file, FORMATS, "`panda schema` lists them")
        raise NotFoundError(f"{file!r:.80} is no file with a schema", where="FILE", fix=fix)
    value = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(kind)}
    return Result({"file": file, "schema": value}, render_json(value).rstrip("\n"))


def _places(path: Path, store: UserStore) -> list[Path]:
    """
    The path; where there is none, numbers, ranges and last stand for turns of the user. Raises NotFoundError:
    the user has none of them.
    """
    from panda.runs.select import parse_ranges
    from panda.store.turns import find_turn

    if path.exists():
        return [path]
    if str(path) == LAST:
        return [find_turn(store, LAST, where="PATH|TURN").paths.directory]
    ranges = parse_ranges(str(path))
    if ranges is None:
        return [path]
    turns = []
    numbers = store.numbers()
    for bounds in ranges:
        directories = [store.turn(number).directory for number in numbers if number in bounds]
        if not directories:
            where = str(store.turn(bounds.start).directory)
            message = f"user {store.user} has no turn {path}"
            raise NotFoundError(message, where=where, fix="`panda list` shows the turns")
        turns += directories
    return turns


def _trust_problems(settings: Settings, places: Sequence[Path]) -> list[Problem]:
    """
    Return a problem for each thing below the paths that reaches out and is not trusted; for all if there are
    no paths.
    """
    for place in places:
        if place.absolute().is_relative_to(settings.root):
            continue
        guard_links(settings.on_store(place.absolute()))
    claims = [] if settings.trust else untrusted_claims(settings)
    fix = fix_of(settings)
    return [
        Problem(
            f"not trusted: {reach.effect}",
            claim.path,
            line=reach.line,
            key=reach.key,
            fix=fix,
            verdict=Verdict.NOT_JUDGED,
        )
        for claim in claims
        for reach in claim.reaches
        if not places or any(Path(claim.path).is_relative_to(os.path.realpath(place)) for place in places)
    ]


def _store_problems(invocation: Invocation, places: Sequence[Path], *, strict: bool) -> list[Problem]:
    """Those of the store's files below the paths, all if there are none; *strict* looks at memory too."""
    from panda.memory.validation import JUDGED, check_memory, check_memory_of_turns, judge_gathered
    from panda.store.validate import check_store, readable_by_others

    settings = invocation.settings
    layout = Layout(settings.root) if places else invocation.store()
    problems = check_store(layout, places)
    judged = judge_gathered(layout.root, places)
    judged += _judged_again(places, problems)
    turns = [place for place in places if strict and turn_number(place.name) is not None]
    memory = [*check_memory(layout.root, places, settings.clock()), *check_memory_of_turns(turns)]
    for check in (judged, memory):
        reported = {(problem.path, problem.line) for problem in problems if problem.key != JUDGED}
        problems += [
            problem
            for problem in check
            if problem.key == JUDGED or (problem.path, problem.line) not in reported
        ]
    return problems + readable_by_others(layout, places)


def _judged_again(places: Sequence[Path], problems: Sequence[Problem]) -> list[Problem]:
    """Return what is wrong with the answers of the turns that are named, as far as their files read."""
    from panda.runs.verdict import judge_turn

    unsound = [Path(problem.path) for problem in problems if problem.path]
    turns = (place.absolute() for place in places if turn_number(place.name) is not None)
    sound = (turn for turn in turns if not any(path.is_relative_to(turn) for path in unsound))
    return [problem for turn in sound for problem in judge_turn(turn)]


def _recipe_problems(settings: Settings, paths: Sequence[Path], *, strict: bool) -> list[Problem]:
    """
    Those of the recipes, prompts and models in force that lie below the paths; all if there are none.
    *strict* counts keys that have no effect any more as wrong.
    """
    places = [path.resolve() for path in paths]
    in_force = (*settings.recipe_dirs, *settings.prompt_dirs, settings.models_file)
    pairs = ((place, other.resolve()) for place in places for other in in_force)
    if places and not any(
        place.is_relative_to(other) or other.is_relative_to(place) for place, other in pairs
    ):
        return []
    from panda.recipes.checks import check_recipes  # loads the grammar compiler: only if it is wanted
    from panda.tools.table import TOOLS

    models_file = settings.models_file if is_trusted(settings, "models_file") else None
    problems = check_recipes(settings.recipe_dirs, settings.prompt_dirs, models_file, TOOLS)
    for problem in problems:
        if strict and isinstance(problem, ObsoleteKeyError):
            problem.verdict = Verdict.UNSOUND
    return [
        problem
        for problem in problems
        if not places or any(Path(problem.path).resolve().is_relative_to(place) for place in places)
    ]


def _is_warning(problem: Problem) -> bool:
    from panda.store.validate import MODE

    return problem.key == MODE or isinstance(problem, ObsoleteKeyError)


def _is_packaged(problem: Problem) -> bool:
    """Tell whether a problem is about a recipe that comes with panda."""
    from panda.recipes.book import is_packaged

    return bool(problem.path) and is_packaged(Path(str(problem.path)))


def _lines(problem: Problem) -> str:
    kinds = {Verdict.NOT_JUDGED: "not judged: ", Verdict.SOUND: "information: "}
    return problem_text(problem, kinds.get(problem.verdict, ""))
