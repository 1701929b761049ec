"""English is known in panda/language and panda/messages; elsewhere stand formats. Phase 0 reads the query."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "panda"
ENGLISH = ("language", "messages")
"""The packages that know English."""
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name not in ENGLISH]


def read_words(name: str, group: str | None = None) -> set[str]:
    """Return the words of a file of these packages, or of one of its groups."""
    (file,) = (PACKAGE / folder / name for folder in ENGLISH if (PACKAGE / folder / name).exists())
    text = file.read_text(encoding="utf-8")
    if group is not None:
        paragraphs = re.findall(rf"(?m)^{group}: (.*(?:\n +.*)*)", text)
        text = paragraphs[0]
    return {word.replace("_", " ") for word in text.split()}


COMMON = (
    read_words("english_words.txt", "function")
    | read_words("english_words.txt", "contracted")
    | read_words("english_words.txt", "content_free")
    | read_words("order_verbs.txt")
    | read_words("talk_words.txt")
) - read_words("abbreviations.txt", "never_last")
"""Some 500 words of everyday English."""
MOST_WORDS = 2
"""So many of them may stand in one collection by chance."""

FORMATS = {
    "retrieval/operations.py:Operation": "values of ours",
    "documents/json_schema.py:_SCHEMA_KEYS": "keywords of JSON Schema",
    "phases/recipe_request.py:_TURN_NUMBER": "a line of our history",
    "cli/replay.py:result_of": "heads of a table that is printed",
    "compression/fit.py:_MARKS": "lines of our documents",
    "compression/errors_told.py:ERROR_LINE": "what programs print",
    "compression/indented_lines.py:_NAMES": "keys of settings",
    "compression/log_lines.py:_TOTAL": "what programs print",
    "compression/outer_lines.py:_BRACKETS_ALONE": "programming languages",
    "compression/outer_lines.py:_LATER_BRANCH": "programming languages",
    "compression/plans.py:_CODE_LINE": "programming languages",
    "compression/plans.py:_LOG_LINE": "what programs print",
    "compression/prose.py:_IMPORT": "programming languages",
    "compression/source_code.py:_CLOSING": "programming languages",
    "compression/source_code.py:_CONTROL": "programming languages",
    "compression/source_code.py:_MEMBER": "programming languages",
    "documents/computed.py:_SPAN": "expressions of ours",
    "documents/computed.py:_TOKEN": "expressions of ours",
    "documents/memory_file.py:_TURN": "our own mark",
    "forgetting.py:_FIXED": "ids of ours",
    "settings.py:_read_file": "what the TOML parser says",
    "documents/times.py:_MARK": "our own mark",
    "documents/yaml_text.py:YAML_WORDS": "YAML",
    "actions/turn_run.py:Until": "steps of phase 2",
    "models/openai.py:_STREAM_ONLY": "what model servers say",
    "models/refusals.py:_PARAMETER": "what model servers say",
    "models/refusals.py:_PROMPT": "what model servers say",
    "models/refusals.py:_TOO_LONG": "what model servers say",
    "models/refusals.py:_WINDOW": "what model servers say",
    "models/repairs.py:_CHANNEL": "marks of a model's template",
    "memory/gathered.py:_LINE": "a line of our §2",
    "memory/gathered.py:_PLAIN": "a line of our §2",
    "store/fact_records.py:ValueType": "types of values",
    "store/carry.py:StepType": "kinds of steps",
    "store/records.py:StepEntity": "what a step did to an entity",
    "tools/content.py:_DraftArguments": "values of an argument",
    "tools/tool_contract.py:Kind": "kinds of tools",
    "tools/search_sources.py:_LIST": "paths of addresses",
    "tools/search_sources.py:_POOR": "names of hosts",
    "web/markup.py:_STRUCK_NAMES": "classes of HTML",
    "web/markup.py:_HIDDEN_STYLE": "CSS",
    "web/markup.py:_RAISED_STYLE": "CSS",
    "web/extraction.py:_ASIDE_HINTS": "classes of HTML",
    "web/extraction.py:_INFO_HINTS": "classes of HTML",
    "web/extraction.py:_REVIEW_HINTS": "classes of HTML",
}
"""Patterns and collections, by file and name, that know no English, with what they know."""
WISHES = tuple(
    f"panda.messages.{name}"
    for name in ("limits", "periods", "questions", "reading", "turn_numbers", "wording")
)
"""Modules that read what a query wants."""
NOT_OF_QUERIES = {
    "running_turn.py:plain_recap": "a query that was not read yet",
    "reflection.py:content_stems": "whether a query has a word that can be looked up",
    "from_session.py:asked_step": "the step within the list that the last reply quoted",
    "quotation.py:asked_step": "the step within the list that is quoted",
    "synthesizer.py:without_greeting": "a reply",
    "tool_outcome.py:asks_again": "clauses of the reading",
    "tool_outcome.py:orders_change": "clauses of the reading that order",
    "validator.py:claims_done": "an answer",
    "validator.py:without_greeting": "an answer",
}
"""What later phases take from them, by file and name, with what they read with it."""


def named_expressions(path: Path) -> Iterator[tuple[str, ast.expr]]:
    """Every expression of a file with the name of the constant, class or function that it stands in."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case _:
                continue
        own = f"{path.relative_to(PACKAGE)}:{name}"
        yield from ((own, inner) for inner in ast.walk(node) if isinstance(inner, ast.expr))


def texts_in(node: ast.AST) -> list[str]:
    """The literal texts in an expression."""
    found = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant))
    return [text for text in found if isinstance(text, str)]


def pattern_in(node: ast.expr) -> str:
    """The regular expression that an expression gives to the module re, or that is put together elsewhere."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
            return " ".join(texts_in(pattern))
        case ast.Constant(value=str() as text) if re.search(r"\(\?:|\\b|\)\?", text) and "|" in text:
            return text
    return ""


def english_in_pattern(pattern: str) -> set[str]:
    """The everyday words that a regular expression matches."""
    plain = re.sub(r"\\[A-Za-z]|\(\?P[<=]\w+[>)]|\(\?[a-zA-Z-]+[:)]|\s#.*", " ", pattern)
    return {word for word in re.findall(r"(?<![\w.-])[a-z]{2,}(?![\w.-])", plain.lower()) if word in COMMON}


def english_in_collection(node: ast.expr) -> set[str]:
    """The everyday words that a set, tuple, list or split text holds."""
    words: list[object] = []
    match node:
        case ast.Set(elts=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            words = [part.value for part in parts if isinstance(part, ast.Constant)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="split")):
            words = [*text.split()]
    return {word for word in words if isinstance(word, str) and word in COMMON}


def test_no_pattern_knows_english() -> None:
    """Outside of these packages no regular expression holds a word of everyday English."""
    found = {
        name: words
        for path in FILES
        for name, node in named_expressions(path)
        if (words := english_in_pattern(pattern_in(node))) and name not in FORMATS
    }
    assert not found


def test_no_collection_lists_english() -> None:
    """Outside of these packages nothing lists words of everyday English."""
    found = {
        name: words
        for path in FILES
        for name, node in named_expressions(path)
        if len(words := english_in_collection(node)) > MOST_WORDS and name not in FORMATS
    }
    assert not found


def test_formats_are_there() -> None:
    """Every exception names something that is there."""
    known = {name for path in FILES for name, _ in named_expressions(path)}
    assert set(FORMATS) <= known


@pytest.mark.parametrize("path", sorted((PACKAGE / "phases").glob("*.py")), ids=lambda path: path.name)
def test_only_phase_0_reads_wishes(path: Path) -> None:
    """What a query wants is read in phase 0: no later phase reads it again."""
    if path.name == "query_analyzer.py":
        return
    taken = {
        f"{path.name}:{alias.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in WISHES
        for alias in node.names
        if alias.name.islower()
    }
    assert taken <= set(NOT_OF_QUERIES)
