"""Tables and lists as rows with columns, and what a question asks of them: rows, a count, a sum, the first."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property

from panda.language.claims import scan
from panda.language.dates import find_periods
from panda.language.lists import label_of
from panda.language.numbers import name_unit, size_of
from panda.language.text import plain_text
from panda.language.things import scale_of
from panda.language.words import FUNCTION_WORDS, is_ordinary, split_terms, split_words
from panda.memory.budget import is_usable
from panda.memory.node import Node
from panda.retrieval.operations import Operation
from panda.store.records import Line

Closeness = Callable[[str, Sequence[str]], Sequence[float]]
"""Cosines of a text with others, in their order."""

_LEAST_ROWS = 2
_MOST_DECIMALS = 2
_LEAST_SHARE = 0.5
"""Share of the rows that have a value in a column by which they are compared or added."""
_HOURS = re.compile(r"(?<![\d.,:])(\d{1,3}) ?h ?(\d\d)(?![\d.,:])")
_TICK = re.compile(r"\A\[(?P<mark>[ xX])\]\s+")
_YES = frozenset("yes y x ✓ ✔ ja oui si sí true".split())  # noqa: SIM905
_NO = frozenset(["no", "n", "-", "–", "—", "", "nein", "non", "false", "✗"])
_NOTHING = frozenset(["", "-", "–", "—", "n/a", "na", "tbd", "?"])
_DENIES = frozenset("no not without except never nicht kein keine ohne pas sans sin".split())  # noqa: SIM905
_DENIED_WITHIN = 3


@dataclass(frozen=True)
class Value:
    """A number, day or time of a cell."""

    measure: str
    """What is compared: a currency, a base unit, "date", "clock", or "" of a bare number."""
    size: Fraction
    """In base units; of a day its ordinal, of a time its seconds."""
    written: str


@dataclass(frozen=True)
class Row:
    line: Line
    name: str
    """What it is called; "" where nothing is."""
    cells: tuple[tuple[str, str], ...]
    """Column and text, in the order of the columns; a list has one column without a name."""
    is_ticked: bool | None = None
    """Whether a box in front is ticked; None without one."""

    @cached_property
    def values(self) -> Mapping[tuple[str, str], Value]:
        """The first value of each column and measure."""
        found: dict[tuple[str, str], Value] = {}
        for column, text in self.cells:
            for value in _values(column, text):
                found.setdefault((column, value.measure), value)
        return found

    @cached_property
    def terms(self) -> Mapping[str, frozenset[str]]:
        """Terms of each column's cell; of a list those of its name under "name"."""
        return {column: frozenset(split_terms(text)) for column, text in self.cells}

    @cached_property
    def all_terms(self) -> frozenset[str]:
        return frozenset().union(*self.terms.values())

    def days(self, year: int) -> list[int]:
        """Return the days of its cells as ordinals; one without a year is in the given one."""
        found = [int(value.size) for value in self.values.values() if value.measure == "date"]
        for value in self.values.values():
            if value.measure == "day":
                found.append(date.fromordinal(int(value.size)).replace(year=year).toordinal())
        return found

    @property
    def text(self) -> str:
        return self.line.text.removeprefix(self.line.carried)


@dataclass(frozen=True)
class Table:
    node: Node
    name: str
    """Which list of its node."""
    about: str
    """What it stands under."""
    rows: tuple[Row, ...]

    @cached_property
    def about_terms(self) -> frozenset[str]:
        return frozenset(split_terms(self.about))

    @cached_property
    def unit_terms(self) -> frozenset[str]:
        """Terms of units: "kg" of "1.2 kg"."""
        written = (value.written for row in self.rows for value in row.values.values() if value.measure)
        return frozenset(term for text in written for term in split_terms(text) if not any(map(str.isdigit, term)))

    @cached_property
    def column_terms(self) -> frozenset[str]:
        return frozenset(term for column in self.columns for term in split_terms(column))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for row in self.rows for column, _ in row.cells))


def read_tables(node: Node) -> Iterator[Table]:
    """Return the tables and lists of a node, in its order, of which lines can be quoted."""
    for name in dict.fromkeys(line.list_id for line in node.items if line.list_id):
        lines = [line for line in node.items if line.list_id == name and is_usable(line)]
        if len(lines) < _LEAST_ROWS:
            continue
        heads = [line.text for line in node.items if line.heads == name]
        yield Table(
            node=node,
            name=name,
            about=" ".join([lines[0].above, *heads]),
            rows=tuple(map(_read_row, lines)),
        )


def _read_row(line: Line) -> Row:
    text = line.text.removeprefix(line.carried)
    tick = _TICK.match(text)
    is_ticked = tick["mark"] != " " if tick else None
    if line.form == "row":
        cells = []
        for cell in text.split("; "):
            column, colon, said = cell.partition(": ")
            if not colon:
                column, said = ("", cell) if not cell.endswith(":") else (cell[:-1], "")
            cells.append((column, said))
        named = (said for _, said in cells if said and not any(map(str.isdigit, said)))
        return Row(line, next(named, cells[0][1]), tuple(cells), is_ticked)
    bare = text[tick.end() :] if tick else text
    return Row(line, label_of(bare), (("", bare),), is_ticked)


def _values(column: str, text: str) -> Iterator[Value]:
    """Return what a cell measures, in order; its unit may stand in the head of its column."""
    title = f"{column}: " if column else ""
    plain = plain_text(f"{title}{text}")
    if match := _HOURS.search(plain, len(title)):
        seconds = 3_600 * int(match[1]) + 60 * int(match[2])
        yield Value("s", Fraction(seconds), match[0])
        plain = plain[: match.start()] + " " * len(match[0]) + plain[match.end() :]
    for found in scan(plain):
        if found.start < len(title):
            continue
        amount = found.amount
        if amount is None:
            if found.claim.kind == "date" and (value := _dated(found.claim.value, found.claim.text)):
                yield value
            continue
        if amount.value is None or amount.label or amount.ordinal:
            continue
        unit = amount.unit or next(iter(sorted(amount.units_before)), "")
        size, base = size_of(unit)
        measure = amount.currency or base
        written = plain[found.start : found.end]
        yield Value(measure, amount.value * size, written)


def _dated(value: str, written: str) -> Value | None:
    if re.fullmatch(r"\d\d:\d\d:\d\d", value):
        hours, minutes, seconds = map(int, value.split(":"))
        return Value("clock", Fraction(3_600 * hours + 60 * minutes + seconds), written)
    if match := re.match(r"(\d{4})-(\d\d)(?:-(\d\d))?", value):
        try:
            day = date(int(match[1]), int(match[2]), int(match[3] or 1))
        except ValueError:
            return None
        return Value("date", Fraction(day.toordinal()), written)
    if match := re.fullmatch(r"-?-?(\d\d)-(\d\d)", value):
        try:
            return Value("day", Fraction(date(2000, int(match[1]), int(match[2])).toordinal()), written)
        except ValueError:
            return None
    return None


@dataclass(frozen=True)
class TableAnswer:
    """What a table says to a question."""

    operation: Operation
    table: Table
    rows: tuple[Row, ...]
    """Those that it is about, in the order of the table."""
    value: str = ""
    """What is worked out from them: "184.30 €"; "" where the rows say it."""
    expression: str = ""
    """What gives the value, over numbers of the rows."""


_AGGREGATES = frozenset(("count", "sum", "mean"))
_EXTREMES = frozenset(("max", "min", "first", "last", "next"))


@dataclass(frozen=True)
class Question:
    """What a question wants of a table."""

    query: str
    operation: Operation
    now: datetime

    @cached_property
    def plain(self) -> str:
        """Its words with denials apart: "have n't" for "havent"."""
        return re.sub(r"(?i)\b(is|are|was|were|do|does|did|have|has|had|ca|wo|could|should|would)n['’]?t\b", r"\1 not", plain_text(self.query))

    @cached_property
    def terms(self) -> frozenset[str]:
        """Terms of its telling words."""
        words = (word for word in split_words(self.plain) if word.lower() not in FUNCTION_WORDS)
        return frozenset(term for word in words for term in split_terms(word))

    @cached_property
    def denied(self) -> frozenset[str]:
        """Terms that stand shortly behind a denial."""
        words = [word.lower() for word in split_words(self.plain)]
        places = [at for at, word in enumerate(words) if word in _DENIES]
        behind = {word for at in places for word in words[at + 1 : at + 1 + _DENIED_WITHIN]}
        return frozenset(term for word in behind for term in split_terms(word)) & self.terms


@dataclass(frozen=True)
class FoundRows:
    """The rows that a question's words, times and limits leave; all where nothing tells them apart."""

    rows: list[Row]
    is_absent: bool
    """Whether it names what the table does not have."""
    is_bounded: bool
    """Whether a limit, a time, a column of yes and no or a box has left rows out."""


def find_rows(question: Question, table: Table) -> FoundRows:
    rows = list(table.rows)
    is_bounded = False
    used = set(table.about_terms)
    if (limit := _read_limit(question, table)) is not None:
        rows = [row for row in rows if limit.holds(row)]
        is_bounded = True
        used |= limit.terms
    for period in find_periods(question.plain, question.now):
        dated = [(row, row.days(question.now.year)) for row in rows]
        if any(days for _, days in dated):
            first, last = period.start.toordinal(), period.end.toordinal()
            rows = [row for row, days in dated if any(first <= day <= last for day in days)]
            is_bounded = True
        used |= set(split_terms(question.plain[slice(*period.words)]))
    for columns_term in _flags(question, table):
        rows = [row for row in rows if id(row) in columns_term.rows]
        is_bounded = True
        used |= columns_term.terms
    used |= table.unit_terms
    holders = {
        term: [row for row in table.rows if term in row.all_terms]
        for term in question.terms - used - table.column_terms
    }
    groups: dict[str, set[str]] = {}
    for term, holding in holders.items():
        if 0 < len(holding) < len(table.rows):
            counts = Counter(column for row in holding for column, own in row.terms.items() if term in own)
            groups.setdefault(counts.most_common(1)[0][0], set()).add(term)
    for terms in groups.values():
        wanted, unwanted = terms - question.denied, terms & question.denied
        if wanted:
            most = max(len(wanted & row.all_terms) for row in table.rows)
            rows = [row for row in rows if len(wanted & row.all_terms) == most]
        rows = [row for row in rows if unwanted.isdisjoint(row.all_terms)]
    known = table.about_terms | table.column_terms | used
    strange = [word for word in split_words(question.plain) if not (word.isdigit() or is_ordinary(word) or scale_of(word.lower()))]
    terms_of_strange = {term for word in strange for term in split_terms(word)} - known
    missing = {term for term in terms_of_strange if term in holders and not holders[term]}
    return FoundRows(rows, bool(missing), is_bounded)


@dataclass(frozen=True)
class _Limit:
    """A bound that a question sets: "over £50", "more than 400 pages", "at least 4"."""

    keys: frozenset[tuple[str, str]]
    size: Fraction
    is_least: bool
    is_open: bool
    """Whether the bound itself is outside."""
    terms: frozenset[str]

    def holds(self, row: Row) -> bool:
        sizes = [value.size for key, value in row.values.items() if key in self.keys]
        if self.is_least:
            return any(size > self.size or (size == self.size and not self.is_open) for size in sizes)
        return any(size < self.size or (size == self.size and not self.is_open) for size in sizes)


_BOUND = re.compile(
    r"\b(?:(?P<over>over|above|more than|longer than|heavier than|bigger than|larger than|higher than|older than"
    r"|beyond|exceeding|über|mehr als|plus de|más de)|(?P<least>at least|from|min(?:imum)?|mindestens|ab|au moins|al menos)"
    r"|(?P<under>under|below|less than|fewer than|shorter than|lighter than|cheaper than|smaller than|younger than"
    r"|unter|weniger als|moins de|menos de)|(?P<most>at most|up to|max(?:imum)?|within|höchstens|bis zu|au plus|hasta))"
    r"\s+(?=\D{0,3}\d)",
    re.IGNORECASE,
)


def _read_limit(question: Question, table: Table) -> _Limit | None:
    match = _BOUND.search(question.plain)
    if match is None:
        return None
    said = question.plain[match.end() :]
    found = next((one for one in scan(said) if one.amount and one.amount.value is not None), None)
    if found is None or found.amount is None or found.amount.value is None:
        return None
    size, base = size_of(found.amount.unit)
    measure = found.amount.currency or base
    keys = {key for row in table.rows for key in row.values}
    behind = frozenset(split_terms(said[found.start : found.end + 20]))
    if measure:
        alike = {key for key in keys if key[1] == measure}
        named = {key for key in alike if question.terms & frozenset(split_terms(key[0]))} or alike
    else:
        named = {key for key in keys if key[1] not in ("date", "day", "clock") and behind & frozenset(split_terms(key[0]))}
        named = named or {key for key in keys if question.terms & frozenset(split_terms(key[0]))}
    if not named:
        return None
    return _Limit(
        keys=frozenset(named),
        size=found.amount.value * size,
        is_least=bool(match["over"] or match["least"]),
        is_open=bool(match["over"] or match["under"]),
        terms=behind & frozenset(split_terms(said[found.start : found.end])),
    )


@dataclass(frozen=True)
class _Flag:
    rows: frozenset[int]
    terms: frozenset[str]


_UNDONE = frozenset("open left still yet remain remaining outstanding missing undone unfinished todo need noch fehlt offen reste manque falta".split())  # noqa: SIM905
_DONE = frozenset("done finished ticked completed crossed packed bought erledigt fertig fait hecho".split())  # noqa: SIM905


def _flags(question: Question, table: Table) -> Iterator[_Flag]:
    """Return the rows that columns of yes and no leave, and boxes that are ticked or are not."""
    ticks = [row.is_ticked for row in table.rows]
    words = {word.lower() for word in split_words(question.plain)}
    if None not in ticks and len(set(ticks)) > 1 and words & (_UNDONE | _DONE):
        is_open = bool(words & _UNDONE) or bool(question.denied)
        terms = frozenset(term for word in words & (_UNDONE | _DONE) for term in split_terms(word))
        yield _Flag(frozenset(id(row) for row in table.rows if row.is_ticked != is_open), terms)
    for column in table.columns:
        asked = frozenset(split_terms(column)) & question.terms
        cells = [dict(row.cells).get(column, "").strip().lower() for row in table.rows]
        if asked and set(cells) & _YES and set(cells) <= _YES | _NO:
            wants = not asked & question.denied
            holding = (id(row) for row, cell in zip(table.rows, cells, strict=True) if (cell in _YES) == wants)
            yield _Flag(frozenset(holding), asked)


def choose_column(
    question: Question, table: Table, rows: Sequence[Row], closeness: Closeness
) -> tuple[str, str] | None:
    """Return column and measure that a question compares or adds; None where rows have nothing alike."""
    counts = Counter(key for row in rows for key in row.values)
    keys = [key for key, count in counts.items() if count >= max(1, _LEAST_SHARE * len(rows))]
    if question.operation in ("sum", "mean"):
        keys = [key for key in keys if key[1] not in ("date", "day", "clock")]
    if question.operation in ("first", "last", "next"):
        keys = [key for key in keys if key[1] in ("date", "day", "clock")] or keys
    if len(keys) < 2:
        return keys[0] if keys else None
    texts = [_describe(key) for key in keys]
    near = closeness(question.query, texts)
    named = [len(question.terms & frozenset(split_terms(text))) for text in texts]
    scores = {key: own + 0.5 * count for key, own, count in zip(keys, near, named, strict=True)}
    return max(scores, key=scores.__getitem__)


_KINDS = {"g": "weight", "m": "distance", "s": "duration, time", "date": "date, day", "day": "date, day", "clock": "time of day"}


def _describe(key: tuple[str, str]) -> str:
    column, measure = key
    kind = _KINDS.get(measure, "price, cost, money" if len(measure) == 3 and measure.isupper() else "")
    return ", ".join(part for part in (column, kind) if part)


def answer(question: Question, table: Table, closeness: Closeness) -> TableAnswer | None:
    """Return what a table says to a question; None where it has nothing to compare, add or tell apart."""
    found = find_rows(question, table)
    rows = found.rows
    operation = question.operation
    if operation == "rows":
        return TableAnswer(operation, table, tuple(rows)) if found.is_bounded and len(rows) < len(table.rows) else None
    if not rows or found.is_absent:
        return TableAnswer(operation, table, ()) if found.is_bounded or found.is_absent else None
    if operation == "count":
        return TableAnswer(operation, table, tuple(rows), str(len(rows)), f"count({', '.join(r.name for r in rows)})")
    if operation == "days":
        return _count_days(question, table, rows)
    if operation == "compare":
        rows = [row for row in table.rows if question.terms & frozenset(split_terms(row.name)) - table.about_terms]
    if operation == "compare" and len(rows) == 2 and (key := choose_column(question, table, rows, closeness)):
        first, second = (row.values.get(key) for row in rows)
        if first and second and first.measure not in ("date", "day", "clock"):
            larger, smaller = sorted((first, second), key=lambda value: -value.size)
            written = _write(larger.size - smaller.size, [larger, smaller])
            return TableAnswer(operation, table, tuple(rows), written, f"{larger.written} - {smaller.written}")
    if operation == "compare":
        return TableAnswer(operation, table, tuple(rows)) if 1 < len(rows) < len(table.rows) else None
    key = choose_column(question, table, rows, closeness)
    if key is None:
        if operation in _EXTREMES and operation in ("first", "last"):
            return TableAnswer(operation, table, (rows[0] if operation == "first" else rows[-1],))
        return None
    held = [(row, row.values[key]) for row in rows if key in row.values]
    if operation in ("sum", "mean"):
        if len(held) < _LEAST_ROWS:
            return None
        total = sum((value.size for _, value in held), Fraction(0))
        size = total / len(held) if operation == "mean" else total
        written = _write(size, [value for _, value in held])
        terms = " + ".join(value.written for _, value in held)
        expression = f"({terms}) / {len(held)}" if operation == "mean" else terms
        return TableAnswer(operation, table, tuple(row for row, _ in held), written, expression)
    if operation == "next":
        today = question.now.date()
        coming = ((row, _coming(value, today)) for row, value in held)
        held = [(row, value) for row, value in coming if value is not None]
        if not held:
            held = [(row, _anniversary(row.values[key], today)) for row in rows if key in row.values]
    if not held:
        return None
    sign = 1 if operation in ("max", "last") else -1
    best = max(sign * value.size for _, value in held)
    return TableAnswer(operation, table, tuple(row for row, value in held if sign * value.size == best))


def _write(size: Fraction, like: Sequence[Value]) -> str:
    """Return a number as others of its measure are written: their unit, decimals and decimal mark."""
    first = like[0]
    digits = [re.search(r"\d(?:[\d.,' ]*\d)?", value.written) for value in like]
    ends = [re.search(r"([.,])(\d{1,2})\Z", match[0]) if match else None for match in digits]
    marks = [match[1] for match in ends if match]
    places = max((len(match[2]) for match in ends if match), default=0)
    own = re.search(r"\d(?:[\d.,' ]*\d)?", first.written)
    if first.measure == "s" and any(_HOURS.search(value.written) for value in like):
        hours, minutes = divmod(round(size / 60), 60)
        return f"{hours} h {minutes:02}" if minutes else f"{hours} h"
    unit_size = _unit_size(first)
    number = size / unit_size
    while places < _MOST_DECIMALS and (number * 10**places).denominator != 1:
        places += 1
    text = f"{float(number):.{places}f}"
    if marks and marks[0] == ",":
        text = text.replace(".", ",")
    return first.written.replace(own[0], text) if own else text


def _unit_size(value: Value) -> Fraction:
    found = next((one.amount for one in scan(value.written) if one.amount and one.amount.value), None)
    if found is None or not found.value:
        return Fraction(1)
    return value.size / found.value


def rank_tables(question: Question, tables: Sequence[Table], closeness: Closeness) -> list[Table]:
    """Return the tables that share words or meaning with a question, the closest first."""
    if not tables:
        return []
    titles = [f"{table.about}. {', '.join(filter(None, table.columns))}" for table in tables]
    near = closeness(question.query, titles)
    held = [_terms_of(table) for table in tables]
    scores = []
    for table, title, cosine, terms in zip(tables, titles, near, held, strict=True):
        shared = question.terms & (terms | frozenset(split_terms(title)))
        scores.append(cosine + len(shared) / max(1, len(question.terms)))
    order = sorted(range(len(tables)), key=lambda at: -scores[at])
    return [tables[at] for at in order]


def _terms_of(table: Table) -> frozenset[str]:
    return frozenset(term for row in table.rows for own in row.terms.values() for term in own)


_DAYS_OF_YEAR = 365.25
_MONTHS_LEAST = 62


def _coming(value: Value, today: date) -> Value | None:
    """Return a day that is not past; of one without a year the next."""
    if value.measure == "day":
        return _anniversary(value, today)
    return value if value.measure != "date" or value.size >= today.toordinal() else None


def _anniversary(value: Value, today: date) -> Value:
    """Return the next return of a day, from today on."""
    if value.measure not in ("date", "day"):
        return value
    day = date.fromordinal(int(value.size))
    years = (today.year, today.year + 1, today.year + 2, today.year + 3, today.year + 4)
    for year in years:
        try:
            there = day.replace(year=year)
        except ValueError:  # 29 February
            continue
        if there >= today:
            return Value("date", Fraction(there.toordinal()), value.written)
    return value


def _count_days(question: Question, table: Table, rows: Sequence[Row]) -> TableAnswer | None:
    """Return how long it is from today to a day of the rows, or from it: an age in years from two months on."""
    today = question.now.date()
    dated = [(row, value) for row in rows for value in row.values.values() if value.measure in ("date", "day")]
    if not dated:
        return None
    past = [(row, value) for row, value in dated if value.measure == "date" and value.size <= today.toordinal()]
    to_come = [(row, value) for row, value in dated if _coming(value, today) is not None]
    wants_coming = bool(re.search(r"\b(?:until|till|to|left|bis|noch|jusqu|avant|hasta|faltan?)\b", question.plain, re.IGNORECASE))
    if wants_coming:
        pairs = [(row, _coming(value, today) or _anniversary(value, today)) for row, value in dated]
        row, value = min(pairs, key=lambda pair: pair[1].size)
        days = int(value.size) - today.toordinal()
        there = date.fromordinal(int(value.size))
        until = there.isoformat() if value in row.values.values() else f"{there:%-d %B}"
        return TableAnswer("days", table, (row,), f"{days} days", f"days between {today} and {until}")
    if past:
        row, value = max(past, key=lambda pair: pair[1].size)
        since = date.fromordinal(int(value.size))
        if re.search(r"\b(?:old|age|alt|âge|ans|edad|años)\b", question.plain, re.IGNORECASE):
            years = today.year - since.year - ((today.month, today.day) < (since.month, since.day))
            return TableAnswer("days", table, (row,), f"{years} years", f"years between {since} and {today}")
        return TableAnswer("days", table, (row,), f"{(today - since).days} days", f"days between {since} and {today}")
    return None
