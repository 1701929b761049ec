"""What follows from the sources though no line has it: shown work, lengths of lists, bare numbers. Pure."""

from collections.abc import Callable, Iterator, Sequence

from panda.documents.computed import ComputationError, work_out
from panda.documents.markdown import split_units
from panda.documents.source_statements import SourceStatement, read_statements
from panda.language.claims import Amount, Found
from panda.language.expressions import Expression, find_expressions
from panda.language.numbers import size_of
from panda.language.patterns import lazy_pattern
from panda.language.polarity import content_words
from panda.language.text import fold_name
from panda.language.words import split_words

_NEAR_CHARS = 60  # between a figure and the calculation of it
_LEAST_LISTED = 2
_MOST_MEMBER_WORDS = 4
_MOST_HEAD_CHARS = 40
_MOST_CHARS = 20_000  # of a source that is read for lists
_TIMES = lazy_pattern(r"(?<![\d.,])(\d{1,6}) ?[x×] ?(?=\d)")
_COUNTED_END = lazy_pattern(r"[.,:;()\d\n]")


def find_worked(
    text: str, mentions: Sequence[Found], sources: Sequence[str], is_held: Callable[[str], bool]
) -> Iterator[tuple[Found, Expression]]:
    """
    Yield the figures that a calculation in the same line gives, with that; earlier ones may be its operands.

    Args:
        text: As plain_text gives it.
        mentions: Figures of the text that no source has.
        is_held: Whether the sources have an operand.
    """
    results: list[str] = []
    for expression in find_expressions(text):
        for mention in mentions:
            end = min(mention.end, expression.end)
            start = max(mention.start, expression.start)
            is_inside = expression.start <= mention.start < expression.end
            is_near = end <= start <= end + _NEAR_CHARS and "\n" not in text[end:start]
            if mention.amount is None or is_inside or not is_near:
                continue
            try:
                work_out(
                    mention.claim.text,
                    expression.text,
                    [*sources, *results],
                    is_held=lambda operand: operand in results or is_held(operand),
                    lists={},
                    counts=expression.divisors,
                )
            except ComputationError:
                continue
            results.append(mention.claim.text)
            yield mention, expression


def counts_members(text: str, mention: Found, sources: Sequence[str]) -> bool:
    """
    Return whether a count is the length of a list whose title the text names behind it, or how many values
    rows have in a column that it names: "four days" of four rows "Day: …".
    """
    amount = mention.amount
    if amount is None or amount.currency or amount.ordinal or size_of(amount.unit)[1] not in ("", "s"):
        return False
    end = _COUNTED_END.search(text, mention.end)
    named = {word.stem for word in content_words(text[mention.start : end.start() if end else None])}
    lists = (listed for source in sources if len(source) <= _MOST_CHARS for listed in _lists(source))
    return any(length == amount.value and not named.isdisjoint(title) for title, length in lists)


def _lists(source: str) -> Iterator[tuple[frozenset[str], int]]:
    """Yield the words of the title of each list or column, and how many members it has."""
    columns: dict[str, set[str]] = {}
    for row in source.splitlines():
        for cell in row.split("; "):
            head, colon, value = cell.partition(": ")
            if colon and len(head) <= _MOST_HEAD_CHARS:
                columns.setdefault(head, set()).add(value)
    for head, values in columns.items():
        if len(values) >= _LEAST_LISTED:
            yield frozenset(word.stem for word in content_words(head)), len(values)
    units = split_units(source)
    titles = {unit.list_line: unit.headings[-1:] for unit in units if unit.list_line}
    titles |= {unit.heads_line: (unit.text,) for unit in units if unit.heads_line}
    for line, title in titles.items():
        members = [unit for unit in units if unit.list_line == line and unit.depth == 0]
        yield frozenset(word.stem for text in title for word in content_words(text)), len(members)
    for statement in read_statements(source):
        are_short = all(len(part.stems) <= _MOST_MEMBER_WORDS and not part.values for part in statement.parts)
        if are_short and len(statement.parts) >= _LEAST_LISTED:
            yield statement.title, len(statement.parts)


def is_told_otherwise(text: str, mention: Found, sources: Sequence[str]) -> bool:
    """
    Return whether lines have a count without its noun: "3 points" beside the name ("Kranz 3"), "60 leeks" as
    the only count of a line on leeks ("Leeks planted 5 June, 60 plants"), "6 times" as "6 × 800 m".
    """
    amount = mention.amount
    if amount is None or amount.value is None:
        return False
    if amount.unit == "x":
        return any(match[1] == amount.written for source in sources for match in _TIMES.finditer(source))
    if amount.currency or amount.unit or amount.rate or not amount.head:
        return False
    statements = [statement for source in sources for statement in read_statements(source)]
    amounts = [value.amount for statement in statements for value in statement.values if value.amount]
    words = set(map(fold_name, split_words(text)))
    named = [other for other in amounts if other.value == amount.value and other.label in words]
    if not any(amount.head == other.head for other in amounts if other.counts) and any(map(_is_bare, named)):
        return True
    return any(_is_only_count(amount, statement) for statement in statements)


def _is_bare(amount: Amount) -> bool:
    return not (amount.currency or amount.unit or amount.counts or amount.ordinal)


def _is_only_count(claimed: Amount, source_statement: SourceStatement) -> bool:
    """Return whether a statement that tells elsewhere of what is counted has that count alone."""
    counts = [
        (value.amount, part)
        for part in source_statement.parts
        for value in part.values
        if value.amount and value.amount.counts and not value.amount.rate
    ]
    if len(counts) != 1 or counts[0][0].value != claimed.value:
        return False
    others = (part.stems for part in source_statement.parts if part is not counts[0][1])
    return claimed.head in source_statement.title.union(*others)
