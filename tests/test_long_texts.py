"""How long a text may be: what each function takes for one that was made to last, and what a turn does."""

import importlib
import inspect
import json
import os
import pkgutil
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Literal, get_type_hints

import pytest
import yaml

import panda.documents
import panda.language
import panda.messages
from panda.documents.context import ContextDocument, FrontMatter, Section, Text
from panda.documents.evidence import Figure
from panda.documents.markdown import KnowledgeSection, TextUnit, group_by_headings, split_units
from panda.errors import Problem
from panda.language.claims import Amount, Claim, Found, scan
from panda.language.text import plain_text
from panda.messages.clauses import Moods, clause_texts
from panda.messages.mentions import Mention, Thing
from panda.messages.reading import Clause

PANDA = str(Path(sys.executable).with_name("panda"))
CHARS = 100_000
MOST_SECONDS = 2.0  # of CPU, for one call
DRAWS = 20261123 if "LONG_TEXTS" not in os.environ else int(os.environ["LONG_TEXTS"])
"""Which texts are drawn; LONG_TEXTS=7 draws others."""
SIGNS = (  # noqa: SIM905
    "! . ? … 。 , ; : - – — _ * ** **_ ` ``` ~~~ # > < | / \\ & @ $ € % + = ( ) [ ] [[ ]] { } \" ' “ ” « ½ ²"
    " ① a A ß İ é 東 क 😀 1 0 1. 1, 1- 1: 1/ 1+ 1x a. a- a_ a/ a@ a.a/ A. AB Aa O' <a <!-- http:// [[a [a]("
).split()
WORDS = (  # noqa: SIM905
    "it the and or not no is one a i you my each every other all last next ago than only without half two"
    " first hundred May Monday Ann please remember which what"
).split()
PHRASES = (
    " ", "\n", "\t", "\r", "\u2028", "\u00a0", "\u202f", "\u200b", "e\u0301", "\u0301", "- ", "- - ", "> ",
    "# ", "| a ", "a: ", "a: 1\n", "1. a\n", "- a\n", "a b\n", "| a | b |\n", "|---|\n", "## h\n\nt\n\n",
    "a\n=\n", "1 000 ", "$5 ", "5 kg ", "12:30 ", "3 May ", "2026-01-04 ", "1.1.2026 ", "the second ",
    "two weeks ago ", "1 + 1 = ", "show me ", "is it a ", "more than 5 ", "under $5, ", "I like tea and ",
    "Ann Weiß ", "Ann Weiß, ", "Which one? ", "call me a, ", "[1] ",
)  # fmt: skip
SHAPES: Mapping[str, Callable[[random.Random], str]] = {
    "one word": lambda draw: "".join(draw.choices("abcdefghij", k=CHARS)),
    "one line of words": lambda draw: " ".join(draw.choices([*WORDS, "tea", "Bern", "$697"], k=CHARS // 5)),
    "many lines": lambda draw: "\n".join(
        draw.choices(["- tea", "salt,", "The oil", "it", "5 kg"], k=CHARS // 6)
    ),
    "signs": lambda draw: "".join(draw.choices("()[]{}*_`!.,:;'\"<>|-#1a \n", k=CHARS)),
    "nested": lambda draw: (one := draw.choice(["()", "[]", "{}"]))[0] * (CHARS // 2) + one[1] * (CHARS // 2),
    "other names": lambda draw: " ".join(f"Xq{'abcdefghij'[n % 10]}{n}" for n in range(CHARS // 8)),
    "one heading": lambda draw: "## tea\n\n- oil\n\n" * (CHARS // 15),
}
"""Texts of more than one token."""
PLAIN = ("!", ".", "a", " ", "\n", "1", "[[", '"', "it ", "**", "½", "Ann Weiß, ")
"""Tokens that each function is likely to meet."""
NOT_TEXTS = {
    "context.heading": "a number",
    "dates.read_date": "a match of one date",
    "record_codec.convert": "a value of a record",
    "record_codec.decode": "a value of a record",
    "languages.calendar_names": "groups of names of ours",
    "times.last_seen": "an instant",
    "times.render_time": "an instant",
    "times.time_text": "an instant",
    "words.alternatives": "a file of ours",
    "words.phrases": "a file of ours",
    "words.read_groups": "a file of ours",
    "words.read_words": "a file of ours",
    "patterns.one_of": "words of ours",
    "json_schema.check_schema": "a schema",
    "secrets.secrets_of_request": "headers and a body",
    "json_schema.find_violation": "a schema and a value",
    "evidence.rounding_step": "a number",
    "memory_file.statement_key": "numbers",
    "numbers.number_from_words": "a match of number words",
    "numbers.size_of": "a unit of ours",
    "pdf.read_pdf": "a PDF",
    "reading.overall_mood": "clauses with moods",
    "clauses.best_mood": "probabilities",
    "yaml_text.yaml_fault": "a fault of the YAML parser",
}
"""What takes no text of a user, with what it takes."""
GIVEN = {"matching.count_kind": {"kind": "name"}, "mentions.amount": {"kind": "weight"}}
"""Parameters that are names of ours."""
_FRONT = FrontMatter("panda/context/1", 1, "default", "default", "chat", datetime(2026, 1, 4, tzinfo=UTC))
_NUMBER = Found(Claim("5", "number", "5"), 0, 1, amount=Amount(Fraction(5), "5"))
MAKERS: Mapping[Any, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    str | bytes: str,
    bytes: lambda text: text.encode("utf-8", "replace"),
    object: str,
    Any: str,
    int: lambda text: 5,
    float: lambda text: 0.5,
    bool: lambda text: True,
    bool | None: lambda text: None,
    datetime: lambda text: datetime(2026, 1, 14, 12, tzinfo=UTC),
    Literal["details", "now", "address"]: lambda text: "now",
    Sequence[str]: lambda text: [text],
    Mapping[str, Sequence[str]]: lambda text: {text[:80]: [text]},
    Callable[[str], bool]: lambda text: lambda operand: True,
    Collection[str]: lambda text: [text],
    Iterable[str]: lambda text: text.split("\n"),
    frozenset[str]: lambda text: frozenset(text.split()[:50]),
    Collection[int]: lambda text: [2, 5],
    Sequence[Figure]: lambda text: [Figure(text[:80], text[:400], [text]), Figure("$5", "$3 + 2", [text])],
    tuple[TextUnit, ...]: lambda text: (),
    type[Problem]: lambda text: Problem,
    Mapping[str, object]: lambda text: {text[:60] or "a": text},
    Mapping[str, Any]: lambda text: {
        "clauses": [{"text": text, "mood": "asks"}],
        "statements": [{"text": text}],
    },
    Moods: lambda text: {one: {"asks": 0.2, "tells": 0.7, "orders": 0.1} for one in clause_texts(text)},
    Mapping[str, str | int | float]: lambda text: {"budget_max": 5, "count:tea": text},
    Found: lambda text: next((one for one in scan(plain_text(text)) if one.amount), _NUMBER),
    Sequence[Found]: lambda text: scan(plain_text(text)),
    Sequence[Claim]: lambda text: [Claim(text, "thing", text, text)],
    Thing: lambda text: Thing("a", text[: len(text) // 2], text, "tea"),
    Sequence[Thing]: lambda text: [Thing(str(n), f"{n} {text[:300]}", text[:CHARS], "tea") for n in range(3)],
    Sequence[Mention]: lambda text: [Mention("it", 0, ("0",))],
    Sequence[tuple[str, str]]: lambda text: [(text[:80], text), ("tea", "tea")],
    Sequence[Clause]: lambda text: [Clause(text, "tells")],
    Sequence[KnowledgeSection]: lambda text: group_by_headings(split_units(text)),
    Sequence[TextUnit]: split_units,
    Sequence[tuple[int, int]]: lambda text: [(0, 1)],
    Section: lambda text: Section(0, (Text(text),)),
    ContextDocument: lambda text: ContextDocument(_FRONT, (Section(0, (Text(text),)),)),
}
"""What stands for a parameter of each type, made of a text."""


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for package in (panda.language, panda.messages, panda.documents):
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for name, value in vars(module).items():
                is_own = getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
                if is_own and (inspect.isfunction(value) or hasattr(value, "__wrapped__")):
                    yield f"{info.name}.{name}", value


FUNCTIONS = dict(_functions())


def _draw(name: str, count: int) -> Iterator[tuple[str, str]]:
    """Texts for a function, each with how it is made."""
    draw = random.Random(f"{DRAWS} {name}")
    anything = [*SIGNS, *(f"{word} " for word in WORDS), *PHRASES, *SHAPES]
    for token in (*draw.sample(PLAIN, count), draw.choice(anything)):
        if token in SHAPES:
            yield token, SHAPES[token](draw)
        else:
            yield f"{token!r} repeated", (token * CHARS)[:CHARS]


@contextmanager
def _stopped(seconds: float) -> Iterator[None]:
    """Stops what takes more CPU, so that a hang is told as one."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {seconds} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _seconds(name: str, text: str) -> float:
    """CPU seconds of a call in which each parameter is made of a text; what is refused took its time too."""
    function = FUNCTIONS[name]
    signature, hints = inspect.signature(function), get_type_hints(function)
    takes = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    with _stopped(30):
        given = {one.name: MAKERS[hints[one.name]](text) for one in takes} | GIVEN.get(name, {})
    scan.cache_clear()
    with _stopped(5 * MOST_SECONDS):
        started = time.process_time()
        try:
            result = function(**given)
            if isinstance(result, Iterator):
                list(result)
        except (Problem, ValueError, RecursionError, yaml.YAMLError) as exc:
            is_json = function.__module__ == "panda.documents.json_text"  # which says so
            is_crash = type(exc) in (RecursionError, ValueError) and "isoformat" not in str(exc)
            if is_crash and not is_json:
                raise
        return time.process_time() - started


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - NOT_TEXTS))
def test_a_text_that_is_made_to_last(name: str) -> None:
    """
    A hundred thousand characters of one token, or of a few, are read within two seconds of CPU, or, on a slow
    machine, in at most six times what a quarter of them takes.
    """
    _seconds(name, "Ann Weiß, 3½ of $5 ")  # word lists are read and patterns compiled once a process
    slow = {}
    for how, text in _draw(name, 2):
        seconds = _seconds(name, text)
        if seconds > MOST_SECONDS and seconds > 6 * _seconds(name, text[: CHARS // 4]):
            slow[how] = seconds
    assert slow == {}


def _panda(root: Path, *words: str) -> tuple[dict[str, Any], float]:
    """What a command says as JSON, and its CPU seconds; one that does not end is stopped."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    done = subprocess.run(
        [PANDA, *words, "--root", str(root), "--json"],
        capture_output=True,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (30, 30)),
    )
    value = json.loads(done.stdout or f'{{"exit_code": {done.returncode}}}')
    return {**value, "stderr": done.stderr.decode()}, spent() - before


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The notes of a new store, one of which says how much oil a boat takes."""
    _panda(tmp_path / "store", "init")
    folder = tmp_path / "store/users/default/knowledge"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "boat.md").write_text("# Boat\nThe boat's engine needs 3 litres of oil.\n", encoding="utf-8")
    return folder


QUERY = "How much oil does the boat's engine need?"


def test_notes_that_are_made_to_last(notes: Path) -> None:
    """Notes of one sign or word cost a rebuild and a turn at most five seconds, and lose no answer."""
    root = notes.parents[2]
    _, rebuilt = _panda(root, "index", "rebuild")
    _, asked = _panda(root, "turn", QUERY)
    for name, token in enumerate(("!", ".", "a", "[[", "it ", "½", "oil")):
        (notes / f"{name}.md").write_text((token * CHARS)[:CHARS], encoding="utf-8")
    assert _panda(root, "index", "rebuild")[1] < rebuilt + 5
    turn, seconds = _panda(root, "turn", QUERY)
    assert (turn["exit_code"], seconds < asked + 5) == (0, True)
    assert "3 litres" in turn["data"]["response"]


def test_a_line_that_is_too_long_to_use(notes: Path) -> None:
    """Where only a line of 60,000 tokens fits the query, it is named by file and line, and left out."""
    (notes / "boat.md").unlink()
    line = "the boat's engine needs oil and " * 10_000
    (notes / "long.md").write_text(f"---\ntitle: Log\n---\n# Boat\n\n{line}\n", encoding="utf-8")
    turn, _ = _panda(notes.parents[2], "turn", QUERY)
    assert turn["exit_code"] == 0
    assert "characters is too long to quote (knowledge/long.md:6)\n" in turn["stderr"]


def test_evidence_of_long_sources(tmp_path: Path) -> None:
    """A long source is read to its end, and what it does not hold is unsupported."""
    prices = "LOQ 15: $697\nTUF A15: $749"
    notes = "The shop was seen on a walk.\n" * 1_000
    many = "\n".join(f"Model {at}: ${at}.99" for at in range(2_000))
    cases = [
        ("The LOQ costs $697.", notes + prices, "supported"),
        ("The LOQ costs $798.", notes + prices, "unsupported"),
        ("The TUF costs $749.", many + prices, "supported"),
        ("The LOQ costs $749.98.", many + prices, "unsupported"),
        (" ".join(["It is $697."] * 60 + ["The LOQ costs $798."]), prices, "unsupported"),
    ]
    file = tmp_path / "cases.jsonl"
    lines = (
        {"kind": "evidence", "query": query, "options": [{"id": "n1", "text": source}], "label": label}
        for query, source, label in cases
    )
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    said, _ = _panda(tmp_path / "store", "eval", "--cases", str(file), "--split", "all")
    (kind,) = said["data"]["kinds"]
    assert kind["right"] == len(cases), kind["confusion"]
