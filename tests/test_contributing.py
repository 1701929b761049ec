"""CONTRIBUTING.md, the glossary, the decisions and the numbers of the docs agree with the code."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.api import COMMANDS, ROOT
from tests.test_layers import TIERS

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
LISTS = ("commands.md", "glossary.md", "observing.md", "specification.md")
"""Pages that are tables to look things up in."""
TASKS = sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in LISTS)
COMMAND = re.compile(r"(?m)^(?:    )?(?:\$ )?(?:cat .*\| )?(?:panda|make|pip|grep) .+")
BEGINNING_LINES = 12
LEAST_QUESTIONS = 20
LONGEST_LINE = 116
PLACE = re.compile(r"`((?:panda|tests|bench)/[\w/.]+\.py):([\w.]+)`")
"""A name in a file, as `panda/settings.py:Settings`."""
FILE = re.compile(r"`((?:panda|tests|docs|bench|recipes|prompts)/(?:[\w.-]+/)*(?:[\w.-]+\.\w+)?)`")
"""A file or folder of the project."""
STATED = {
    "rank at most": ("panda/phases/context_gatherer.py", "_MAX_OFFERED", "ranks at most {} candidates"),
    "compared offline": ("panda/phases/context_gatherer.py", "_MAX_RANKED", "passages of up to {} are"),
    "turns named": ("panda/messages/turn_numbers.py", "MOST_NAMED_TURNS", "a range of more than {}"),
    "all documents": ("panda/memory/budget.py", "DOCUMENTS_TOKENS", "documents together have {:,} tokens"),
    "one turn": ("panda/memory/budget.py", "TURN_TOKENS", "a turn at most {:,}"),
    "near enough": ("panda/phases/reflection.py", "_NOT_FAR", "({:.2f};"),
    "near enough beside a reference": ("panda/phases/reflection.py", "_NEAR", "{:.2f} where a reference"),
    "expired": ("panda/memory/confidence.py", "EXPIRED_BELOW", "confidence below {:.2f}"),
    "good research": ("panda/retrieval/candidates.py", "_FULL", "`full` from {:.2f}"),
    "length of a passage": ("panda/retrieval/passages.py", "MAX_CHARS", "up to {} characters"),
    "part of the answer": ("panda/retrieval/selection.py", "MAX_BEHIND", "at most {} behind the first"),
    "a quotable line": ("panda/memory/budget.py", "LONGEST_LINE_CHARS", "| {:,} characters | it is left out"),
    "claims of a text": ("panda/language/claims.py", "_MOST_CLAIMS", "| a text's numbers | {:,} |"),
}
"""Numbers of docs/gathering.md: the constant that each comes from, and how the page states it."""


@cache
def parse_module(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def names_of(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions, classes and constants that a module or class defines, with their statements."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, statement
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, statement
            case ast.Assign(targets=targets):
                yield from ((target.id, statement) for target in targets if isinstance(target, ast.Name))


def is_defined(path: str, dotted: str) -> bool:
    """Return whether a file defines a name, as `Servers.ask`."""
    body = parse_module(path).body
    for name in dotted.split("."):
        statement = dict(names_of(body)).get(name)
        if statement is None:
            return False
        body = statement.body if isinstance(statement, ast.ClassDef) else []
    return True


def section_of(title: str) -> str:
    """Return the text of a section of CONTRIBUTING.md."""
    return CONTRIBUTING.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_questions_name_a_place() -> None:
    """Every row of "Where do I change X?" names a function, class or constant, or a folder of data."""
    rows = [line.strip("| ").split(" | ") for line in section_of("Where do I change X?").splitlines()]
    questions = {row[0]: row[1] for row in rows[3:] if len(row) == 2}
    assert len(questions) >= LEAST_QUESTIONS
    assert [
        question for question, place in questions.items() if not (FILE.search(place) or PLACE.search(place))
    ] == []


def test_named_places_are_defined() -> None:
    """Every `path:name` of CONTRIBUTING.md is a function, class or constant of that file."""
    places = PLACE.findall(CONTRIBUTING)
    assert places
    missing = [f"{path}:{name}" for path, name in places if not is_defined(path, name)]
    assert missing == [], "CONTRIBUTING.md names what was renamed or moved"


def test_named_files_exist() -> None:
    """Every file and folder that CONTRIBUTING.md names exists."""
    assert [name for name in FILE.findall(CONTRIBUTING) if not (ROOT / name).exists()] == []


def test_layers_are_those_of_the_imports() -> None:
    """The list of layers is that of tests/test_layers.py; its lines are as long as the page's."""
    block = section_of("Where things go").partition("```\n")[2].partition("```")[0]
    layers = [sorted(tier.removeprefix("panda.") for tier in tiers) for tiers in TIERS]
    expected = "\n".join(", ".join(layer) for layer in layers)
    assert block.strip() == expected, "write the list of CONTRIBUTING.md as this says"


def test_lines_are_wrapped() -> None:
    """No line of CONTRIBUTING.md is longer than its limit, but rows of tables."""
    long = [line for line in CONTRIBUTING.splitlines() if len(line) > LONGEST_LINE and line[0] != "|"]
    assert long == []


@pytest.mark.parametrize("path", TASKS, ids=lambda path: str(path.name))
def test_a_page_begins_with_a_command(path: Path) -> None:
    """A page of docs begins with what the reader wants to do and a command that does it."""
    beginning = "\n".join(path.read_text(encoding="utf-8").splitlines()[:BEGINNING_LINES])
    assert COMMAND.search(beginning)


def test_commands_of_the_docs_are_commands() -> None:
    """Every `panda WORD` that the docs print behind a prompt is a command of the program."""
    first_words = {words.split()[0] for words in COMMANDS}
    named = {
        word
        for path in (ROOT / "docs").glob("*.md")
        for word in re.findall(r"(?m)^\$ panda ([a-z]+)", path.read_text(encoding="utf-8"))
    }
    assert named - first_words == {"weekday"}, "weekday is that of the example add-on"


def test_a_decision_has_a_number_of_its_own() -> None:
    """No two decisions share a number, and each title begins with the number of its file."""
    numbers = [int(path.name[:4]) for path in DECISIONS]
    assert numbers == list(range(1, len(DECISIONS) + 1))
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in DECISIONS}
    assert [name for name, title in titles.items() if not title.startswith(f"# {int(name[:4])}. ")] == []


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: str(path.name))
def test_a_superseded_decision_links_to_a_later_one(path: Path) -> None:
    """A decision that no longer holds says by which later one it is superseded."""
    for number, target in re.findall(r"uperseded by \[(\d+)\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith(number)
        assert (path.parent / target).exists()
        assert int(number) > int(path.name[:4])


def test_the_glossary_is_in_order() -> None:
    """The terms of the glossary are in alphabetical order, each once."""
    terms = re.findall(r"\n\n\*\*([^*]+)\*\*", GLOSSARY)
    assert terms == sorted(set(terms), key=str.casefold)


def test_terms_are_used() -> None:
    """Every term of the glossary occurs in the code, the recipes or another page; drop one that does not."""
    folders = ("panda", "docs", "recipes", "prompts")
    paths = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".yaml")
    ]
    pages = [ROOT / "README.md", *(path for path in paths if path.name != "glossary.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages).casefold()
    terms = [re.sub(r" \([^)]*\)$", "", term) for term in re.findall(r"\*\*([^*]+)\*\*", GLOSSARY)]
    patterns = {term: r"[ _-]?".join(map(re.escape, term.casefold().split())) for term in terms}
    assert [term for term, pattern in patterns.items() if not re.search(pattern, text)] == []


@pytest.mark.parametrize("number", STATED)
def test_numbers_of_the_docs_are_those_of_the_code(number: str) -> None:
    """A number that docs/gathering.md states is the constant that the code uses."""
    path, name, statement = STATED[number]
    assignment = dict(names_of(parse_module(path).body))[name]
    assert isinstance(assignment, ast.Assign)
    value = ast.literal_eval(assignment.value)
    page = " ".join((ROOT / "docs" / "gathering.md").read_text(encoding="utf-8").split())
    stated = statement.format(value).replace("0.", ".")
    assert stated in page, f"docs/gathering.md does not say {stated!r}, as {path}:{name} has it"


def test_the_threshold_of_unsure_is_that_of_the_docs() -> None:
    """docs/gathering.md states the probability from which passages are the answer."""
    weights = json.loads((ROOT / "panda" / "retrieval" / "selection.json").read_text(encoding="utf-8"))
    page = " ".join((ROOT / "docs" / "gathering.md").read_text(encoding="utf-8").split())
    assert f"From {weights['least']} on the three are the answer".replace("0.", ".") in page
