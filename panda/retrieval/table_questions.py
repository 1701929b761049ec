"""What a question asks of a table: some of its rows, a count, a sum, the first by a value, days until one."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from string import ascii_lowercase

from panda.language.claims import scan
from panda.language.dates import age_between
from panda.language.numbers import size_of
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_text
from panda.language.words import (
    FUNCTION_WORDS,
    alternatives,
    is_ordinary,
    read_groups,
    read_words,
    split_terms,
    split_words,
)
from panda.messages.comparisons import find_bound, find_superlatives, judges
from panda.messages.mentions import scale_of
from panda.messages.periods import find_periods
from panda.messages.wording import is_past_form, split_denials
from panda.retrieval.note_tables import (
    CALENDAR_WORDS,
    DAYS,
    LABEL,
    CellValue,
    NoteRow,
    NoteTable,
    calendar_terms,
)
from panda.retrieval.operations import Operation

Closeness = Callable[[str, Sequence[str]], Sequence[float]]
"""Gives the cosines of a text with others, in their order."""
Key = tuple[str, str]
"""Column and measure of a value."""

_WORDS_FILE = "table_words.txt"
_LEAST_SHARE = 0.5
"""Least share of the rows that must have a value in the column that is compared or added."""
_DENIED_WITHIN = 3
"""Words behind a denial that it denies."""
_UNIT_CHARS = 20
"""Characters behind a bound in which its column may be named."""
_NAMED_WEIGHT = 0.5
"""What a word of a column that the query has is worth beside a cosine."""
_MOST_DECIMALS = 2
_LEAST_TYPED_CHARS = 5
"""Letters from which on a word may be one of the vocabulary with a typing error."""
_DAYS_OF_YEAR = 366
_COUNTED = lazy_pattern(rf"\b(?:{alternatives(_WORDS_FILE, 'counted')}) ([\w-]+)", re.IGNORECASE)
_NUMBER = re.compile(r"\d(?:[\d.,' ]*\d)?")
_DECIMALS = re.compile(r"([.,])(\d{1,2})\Z")
_HOURS = re.compile(r"\dh|\d h")
_MEMBER_SIGNS = re.compile(r"\s*[(),;]+\s*")
"""Signs that would split one name into several in the expression count(a, b)."""
_EXPIRED = lazy_pattern(rf"\b(?:{alternatives(_WORDS_FILE, 'expired')})\b", re.IGNORECASE)
_KINDS = {"g": "weight", "m": "distance", "s": "duration, time", "clock": "time of day"}
_KINDS |= dict.fromkeys(DAYS, "date, day")
_CURRENCY_LETTERS = 3
_BIRTH = "born, birth"
_QUESTION_WORDS = read_words("order_words.txt", "wh")
_TIME_SCALES = {"age", "year", "clock", "day"}
_YOUNG_SCALES = {"young", "new", "recent", "late"}
_OLD_SCALES = {"old", "early", "long"}


def _words(group: str) -> frozenset[str]:
    return read_words(_WORDS_FILE, group)


@dataclass(frozen=True)
class Question:
    """What a question wants of a table, with the words that it says it by."""

    query: str
    operation: Operation
    now: datetime

    @cached_property
    def plain(self) -> str:
        """The query with denials apart: "have not" for "havent"."""
        return split_denials(plain_text(self.query))

    @cached_property
    def words(self) -> list[str]:
        """Its words in small letters."""
        return [word.lower() for word in split_words(self.plain)]

    @cached_property
    def terms(self) -> frozenset[str]:
        """Terms of its telling words."""
        return _telling_terms(self.words)

    @cached_property
    def calendar(self) -> frozenset[str]:
        """Return the months and weekdays that it names."""
        return calendar_terms(self.plain)

    @cached_property
    def calendar_words(self) -> frozenset[str]:
        """Return the terms of the words by which it names months and weekdays."""
        named = (word for word in self.words if word in CALENDAR_WORDS and calendar_terms(word))
        return frozenset(term for word in named for term in split_terms(word))

    def names_column(self, column: str) -> bool:
        """Return whether it has a word of the head of a column, or the whole of it ("in", "out")."""
        is_whole = column.lower() in self.words and column.lower() not in _QUESTION_WORDS
        return is_whole or bool(self.terms & frozenset(split_terms(column)))

    def share_in(self, table: NoteTable) -> float:
        """Return the share of its telling words that a table has."""
        return len(self.terms & table.terms) / max(1, len(self.terms))

    @cached_property
    def ranks_by_time(self) -> bool:
        """Return whether it has a word that ranks by days, times or ages, as "youngest" and "latest"."""
        scales = read_groups("scales.txt")
        bases = [base for word in self.words if (base := scale_of(word))]
        return any(not _TIME_SCALES.isdisjoint(re.split(r"[ |]", scales[base])) for base in bases)

    @cached_property
    def ranks_by_age(self) -> bool:
        """Return whether it has a word that ranks by age, as "youngest"."""
        return any(scale_of(word) in ("old", "young") for word in self.words)

    @cached_property
    def denied(self) -> frozenset[str]:
        """Terms that stand shortly behind a denial."""
        places = [at for at, word in enumerate(self.words) if word in _words("denies")]
        behind = {word for at in places for word in self.words[at + 1 : at + 1 + _DENIED_WITHIN]}
        return frozenset(term for word in behind for term in split_terms(word)) & self.terms

    @cached_property
    def out_of_vocabulary(self) -> frozenset[str]:
        """Terms of words that are in no common vocabulary and rank nothing: names, above all."""
        words = (
            word for word in self.words if not (word.isdigit() or scale_of(word) or _may_be_ordinary(word))
        )
        return frozenset(term for word in words for term in split_terms(word)) & self.terms


def _may_be_ordinary(word: str) -> bool:
    """Return whether a word is in the common vocabulary, or a long one is with a letter typed anew."""
    if is_ordinary(word) or is_past_form(word) or len(word) < _LEAST_TYPED_CHARS:
        return is_ordinary(word) or is_past_form(word)
    places = range(len(word) + 1)
    fewer = (word[:at] + word[at + 1 :] for at in places)
    others = (
        word[:at] + letter + word[at + skip :]
        for at in places
        for letter in ascii_lowercase
        for skip in (0, 1)
    )
    return any(is_ordinary(other) for other in (*fewer, *others))


@dataclass(frozen=True)
class TableAnswer:
    """What a table says to a question."""

    operation: Operation
    table: NoteTable
    rows: tuple[NoteRow, ...]
    """Those that it is about, in the order of the table; empty where none is within the limits."""
    value: str = ""
    """What is worked out from them: "184.30 €"; "" where the rows say it."""
    expression: str = ""
    """What gives the value, over numbers of the rows and today."""
    is_limited: bool = False
    """Whether a limit, a time, a column of yes and no, or boxes have left rows out."""


def rank_tables(question: Question, tables: Sequence[NoteTable], closeness: Closeness) -> list[NoteTable]:
    """Return tables by their cosine with a question and the share of its words that they have, best first."""
    if not tables:
        return []
    titles = [f"{table.about}. {', '.join(filter(None, table.columns))}" for table in tables]
    near = closeness(question.query, titles)
    shares = [question.share_in(table) for table in tables]
    order = sorted(range(len(tables)), key=lambda at: -near[at] - shares[at])
    return [tables[at] for at in order]


def answer_from_table(question: Question, table: NoteTable, closeness: Closeness) -> TableAnswer | None:
    """
    Return what a table says to a question; None where there is nothing to compare, to add or to tell apart.
    It has no rows where the table has none within the question's limits and times.
    """
    operation = question.operation
    if operation == "compare":
        return _compare(question, table, closeness)
    is_number_asked = operation == "count" and find_bound(question.plain) is None
    is_of_values = table.is_series or _counts_values(question, table)
    counted = _counted_column(question, table)
    if operation == "sum" and counted is not None:
        operation = "count"
    elif is_number_asked and counted is None and (is_of_values or question.terms & table.unit_terms):
        operation = "sum"
        question = replace(question, operation=operation)
    selected = find_rows(question, table, closeness)
    if operation == "rows":
        if len(selected.rows) == len(table.rows) or not (selected.is_limited or selected.names_values):
            return None
        return TableAnswer(operation, table, selected.rows, is_limited=selected.is_limited)
    if selected.is_absent:
        return None
    if not selected.rows:
        return TableAnswer(operation, table, ())
    if operation == "count":
        names = [row.name for row in selected.rows]
        if counted is not None and counted != table.columns[0]:
            names = [*dict.fromkeys(filter(None, (row.cell(counted) for row in selected.rows)))]
        members = ", ".join(_MEMBER_SIGNS.sub(" ", name) for name in names)
        return TableAnswer(operation, table, selected.rows, str(len(names)), f"count({members})")
    if operation == "days":
        return _count_days(question, table, selected.rows)
    if table.spread and operation in ("sum", "mean", "max", "min"):
        return _over_time(question, table, selected.rows)
    if len(selected.rows) < 2:  # one that is named is found as a passage, with what was told of it since
        return None
    is_judged = operation in ("max", "min") and judges(question.plain)
    if is_judged and not any(map(question.names_column, table.columns)):  # "the nicest": no column says it
        return None
    key = choose_column(question, selected.rows, closeness)
    if key is None:
        return _at_end(operation, table, selected.rows)
    if operation in ("sum", "mean"):
        return _add(operation, table, selected.rows, key)
    held = [(row, row.values[key]) for row in selected.rows if key in row.values]
    if len(held) < 2:
        return None
    if operation == "next":
        today = question.now.date()
        held = list(_to_come(held, today, recur=_are_anniversaries(table, today)))
    return _extreme(_sort_direction(question, key), table, _in_row_order(held))


def _counts_values(question: Question, table: NoteTable) -> bool:
    """Return whether a question counts what a column of numbers has counted: "how many bags of coal"."""
    numbers = {
        column
        for row in table.rows
        for (column, measure), value in row.values.items()
        if column and value.adds
    }
    counted = [column for column in numbers if _telling_terms(split_words(column.lower())) <= question.terms]
    return any(not _is_id_column((column, ""), table.rows) for column in counted)


def _counted_column(question: Question, table: NoteTable) -> str | None:
    """Return the column of texts that a question counts: "how many suppliers"; None of numbers."""
    match = _COUNTED.search(question.plain)
    terms = split_terms(match[1]) if match else []
    named = [column for column in table.columns if terms and split_terms(column)[-1:] == terms]
    valued = Counter(key for row in table.rows for key in row.values)
    numbers = {key[0] for key in valued if not _is_in_names(key, table.rows)}
    return next((column for column in named if column not in numbers), None)


def _telling_terms(words: Sequence[str]) -> frozenset[str]:
    return frozenset(term for word in words if word not in FUNCTION_WORDS for term in split_terms(word))


# which rows


@dataclass(frozen=True)
class FoundRows:
    """The rows that a question's words, times and limits leave; all where nothing tells them apart."""

    rows: tuple[NoteRow, ...]
    is_absent: bool
    """Whether it names what the table does not have."""
    is_limited: bool
    """Whether a limit, a time, a column of yes and no, or boxes have left rows out."""
    names_values: bool
    """Whether values that are named have left rows out."""


@dataclass(frozen=True)
class _RowFilter:
    """What leaves rows out, and the terms of the question that say so."""

    holds: Callable[[NoteRow], bool]
    terms: frozenset[str]
    limits: bool = True
    """Whether the table has values that the bound can be compared with."""


def find_rows(question: Question, table: NoteTable, closeness: Closeness) -> FoundRows:
    """Return the rows that are left when each bound and each word by which rows differ has left some out."""
    rows = list(table.rows)
    bounds = [
        *_limit_filter(question, table, closeness),
        *_period_filter(question, table),
        *_expiry_filter(question, table),
        *_flag_filter(question, table),
        *_missing_entry_filter(question, table),
    ]
    used = {*table.about_terms, *table.column_terms, *table.unit_terms}
    for bound in bounds:
        if bound.limits:
            used |= bound.terms
            rows = [row for row in rows if bound.holds(row)]
    asked = {_without_typed_s(term, table) for term in question.terms} - question.calendar_words
    asked = (asked | question.calendar) - used
    holders = {term: _holding(term, question, table) for term in asked}
    names_values = False
    for terms in _by_column(holders, table):
        wanted = terms - question.denied
        if wanted:
            counts = Counter(line_id for term in wanted for line_id in holders[term])
            most = max(counts.values())
            rows = [row for row in rows if counts[row.line.id] == most]
            names_values |= bool(rows) and all(row.has_cell_of(asked | used) for row in rows)
        unwanted = {line_id for term in terms & question.denied for line_id in holders[term]}
        rows = [row for row in rows if row.line.id not in unwanted]
    missing = {term for term in question.out_of_vocabulary & asked if not holders[term]} - table.node_terms
    lacks_time = any(not holders[term] and _has_alike(term, table) for term in question.calendar & asked)
    is_limited = lacks_time or any(bound.limits for bound in bounds)
    return FoundRows(() if lacks_time else tuple(rows), bool(missing), is_limited, names_values)


def _holding(term: str, question: Question, table: NoteTable) -> set[str]:
    """Return ids of the lines that have a term, in a column that is named if it stands in one."""
    counts = Counter(column for row in table.rows for column, terms in row.terms.items() if term in terms)
    columns = {*counts}
    named = {column for column in columns if question.names_column(column)}
    if term.isdigit() and not named:  # a number is a value of its own column, or one that several rows have
        keys = {table.columns[0], LABEL}
        columns = {column for column, count in counts.items() if column in keys or count > 1}
    return {
        row.line.id
        for row in table.rows
        if any(term in row.terms.get(column, ()) for column in named or columns)
    }


def _has_alike(calendar_term: str, table: NoteTable) -> bool:
    """Return whether most rows of the table name a month, if the term is a month; likewise for weekdays."""
    kind = calendar_term.partition(" ")[0]
    having = [row for row in table.rows if any(term.startswith(f"{kind} ") for term in row.all_terms)]
    return len(having) > _LEAST_SHARE * len(table.rows)


def _without_typed_s(term: str, table: NoteTable) -> str:
    """Return "sam" for the "sams" of who leaves the apostrophe out, where the table has only that."""
    bare = term.removesuffix("s")
    return bare if term not in table.terms and bare in table.terms else term


def _by_column(holders: Mapping[str, Collection[str]], table: NoteTable) -> list[set[str]]:
    """Return the terms by which rows differ, those of one column together."""
    groups: dict[str, set[str]] = {}
    for term, line_ids in holders.items():
        if 0 < len(line_ids) < len(table.rows):
            holding = [row for row in table.rows if row.line.id in line_ids]
            counts = Counter(column for row in holding for column, own in row.terms.items() if term in own)
            groups.setdefault(counts.most_common(1)[0][0], set()).add(term)
    return [*groups.values()]


def _limit_filter(question: Question, table: NoteTable, closeness: Closeness) -> Iterator[_RowFilter]:
    """Return the bound that a question sets: "over £50", "more than 400 pages", "longer than 10 km"."""
    match = find_bound(question.plain)
    if match is None:
        return
    rest = question.plain[match.end() :]
    mention = next((limit for limit in scan(rest) if limit.amount and limit.amount.value is not None), None)
    if mention is None or mention.amount is None or mention.amount.value is None:
        return
    size, base = size_of(mention.amount.unit)
    limit = mention.amount.value * size
    behind = frozenset(split_terms(rest[mention.start : mention.end + _UNIT_CHARS]))
    keys = _limited_keys(question, table, mention.amount.currency or base, behind, closeness)
    if not keys:
        return
    comparative = match["comparative"]
    is_least = bool(match["over"] or match["at_least"]) or (bool(comparative) and _means_more(comparative))
    is_closed = bool(match["at_least"] or match["at_most"])

    def holds(table_row: NoteRow) -> bool:
        sizes = [value.size for key, value in table_row.values.items() if key in keys]
        if is_closed and limit in sizes:
            return True
        return any(size > limit if is_least else size < limit for size in sizes)

    yield _RowFilter(holds, frozenset(split_terms(rest[mention.start : mention.end])))


def _means_more(comparative: str) -> bool:
    """Return whether more of what a comparative means is a greater number, as of "longer"."""
    base = scale_of(comparative.lower())
    return base is None or read_groups("scales.txt")[base].startswith("max")


def _limited_keys(
    question: Question, table: NoteTable, measure: str, limit_terms: frozenset[str], closeness: Closeness
) -> frozenset[Key]:
    """Return the columns that a bound limits: those with its unit, else named ones, else the closest."""
    keys = {
        key for row in table.rows for key, value in row.values.items() if not measure or key[1] == measure
    }
    if measure:
        named = {key for key in keys if question.names_column(key[0])}
        return frozenset(named or keys)
    numbers = {key for key in keys if key[1] not in DAYS and key[1] != "clock"}
    for words in (limit_terms, question.terms):
        named = {key for key in numbers if words & frozenset(split_terms(key[0]))}
        if named:
            return frozenset(named)
    columns = sorted({column for column, _ in numbers if not _is_id_column((column, ""), table.rows)})
    near = closeness(question.query, columns) if len(columns) > 1 else [1.0] * len(columns)
    limited = {column for column, own in zip(columns, near, strict=True) if own == max(near)}
    return frozenset(key for key in numbers if key[0] in limited)


def _period_filter(question: Question, table: NoteTable) -> Iterator[_RowFilter]:
    """Return the times that a question names, of which rows of a table with days are told apart."""
    year = question.now.year
    is_dated = any(row.days(year) for row in table.rows)
    for period in find_periods(question.plain, question.now):
        words = question.plain[slice(*period.words)]
        if question.operation != "rows" and words.lower() in CALENDAR_WORDS:
            continue  # any month or weekday of that name
        first = period.start.toordinal()
        last = period.end.toordinal()

        terms = frozenset(split_terms(words))

        def holds(
            table_row: NoteRow, first: int = first, last: int = last, terms: frozenset[str] = terms
        ) -> bool:
            return terms <= table_row.all_terms or any(first <= day <= last for day in table_row.days(year))

        yield _RowFilter(holds, terms | calendar_terms(words), is_dated)


def _flag_filter(question: Question, table: NoteTable) -> Iterator[_RowFilter]:
    """Return what columns of yes and no say that the question names, and boxes that are ticked or are not."""
    asked_ticks = frozenset(question.words) & (_words("undone") | _words("done"))
    ticks = {row.is_ticked for row in table.rows}
    if ticks == {True, False} and asked_ticks:
        is_open = bool(asked_ticks & _words("undone") or question.denied)
        terms = frozenset(term for word in asked_ticks for term in split_terms(word))
        yield _RowFilter(lambda row: row.is_ticked != is_open, terms)
    for column in table.columns:
        asked = frozenset(split_terms(column)) & question.terms
        cells = {row.cell(column).lower() for row in table.rows}
        if asked and cells & _words("yes") and cells <= _words("yes") | _words("no") | {""}:
            is_wanted = not asked & question.denied

            def holds(table_row: NoteRow, column: str = column, is_wanted: bool = is_wanted) -> bool:
                return (table_row.cell(column).lower() in _words("yes")) == is_wanted

            yield _RowFilter(holds, asked)


def _expiry_filter(question: Question, table: NoteTable) -> Iterator[_RowFilter]:
    """Return what leaves out rows whose last day is not over, where a question asks for what has run out."""
    match = _EXPIRED.search(question.plain)
    dated = {column for row in table.rows for (column, measure) in row.values if column and measure == "date"}
    ends = {column for column in dated if not _words("ends").isdisjoint(split_words(column.lower()))}
    if match is None or not (ends or len(dated) == 1):
        return
    (column, *_) = sorted(ends or dated)
    today = question.now.date().toordinal()
    terms = frozenset(split_terms(match[0]))
    is_over = terms.isdisjoint(question.denied)

    def holds(table_row: NoteRow) -> bool:
        value = table_row.values.get((column, "date"))
        return value is not None and (value.size < today) == is_over

    yield _RowFilter(holds, terms | frozenset(split_terms(column)))


def _missing_entry_filter(question: Question, table: NoteTable) -> Iterator[_RowFilter]:
    """Return what leaves the rows without an entry in a column: of who "was never vaccinated"."""
    undone = frozenset(
        term for word in question.words if word in _words("undone") for term in split_terms(word)
    )
    wanted = question.denied | (question.terms if undone else frozenset())
    if not wanted or any(wanted & question.denied & row.all_terms for row in table.rows):
        return
    gaps = {column: _without_entry(column, table) for column in table.columns if column}
    gaps = {column: line_ids for column, line_ids in gaps.items() if 0 < len(line_ids) < len(table.rows)}
    named = {line_ids for column, line_ids in gaps.items() if wanted & frozenset(split_terms(column))}
    alike = named or {*gaps.values()}
    if len(alike) == 1:
        (line_ids,) = alike
        yield _RowFilter(lambda row: row.line.id in line_ids, question.denied | undone)


def _without_entry(column: str, table: NoteTable) -> frozenset[str]:
    """Return ids of the rows of which a column says nothing, or no while others have more than yes."""
    cells = {row.line.id: row.cell(column).lower() for row in table.rows}
    empty = {""} if _words("yes") & {*cells.values()} else {"", *_words("no")}
    return frozenset(line_id for line_id, cell in cells.items() if cell in empty)


# what is done with them


def choose_column(question: Question, table_rows: Sequence[NoteRow], closeness: Closeness) -> Key | None:
    """Return column and measure that a question compares or adds; None where the rows have nothing alike."""
    counts = Counter(key for row in table_rows for key in row.values)
    keys = []
    for key, count in counts.items():
        filled = sum(row.cell(key[0]) != "" for row in table_rows)
        least = _LEAST_SHARE * (filled if question.names_column(key[0]) else len(table_rows))
        if count >= max(1, least) and not _is_in_names(key, table_rows):
            keys.append(key)
    of_time = [key for key in keys if key[1] in DAYS or key[1] == "clock"]
    others = [key for key in keys if key not in of_time]
    if question.operation in ("sum", "mean", "compare"):
        keys = [key for key in others if not _is_id_column(key, table_rows)]
    elif question.operation in ("first", "last", "next") or question.ranks_by_time:
        keys = of_time or keys
    elif question.operation in ("max", "min"):
        keys = others or keys
    if len(keys) < 2:
        return keys[0] if keys else None
    texts = [_describe(key, table_rows) for key in keys]
    near = closeness(f"{question.query} {_BIRTH}" if question.ranks_by_age else question.query, texts)
    named = [
        len(question.terms & frozenset(split_terms(text))) + (key[0].lower() in question.words)
        for key, text in zip(keys, texts, strict=True)
    ]
    scores = [own + _NAMED_WEIGHT * count for own, count in zip(near, named, strict=True)]
    return keys[scores.index(max(scores))]


def _is_id_column(column_key: Key, table_rows: Sequence[NoteRow]) -> bool:
    """Return whether a column of bare numbers is the first one of a table and only names its rows."""
    column, measure = column_key
    numbers = [row.values[column_key].size for row in table_rows if column_key in row.values]
    is_first = table_rows[0].line.form == "row" and table_rows[0].cells[0][0] == column
    return is_first and not measure and len(set(numbers)) == len(numbers)


def _is_in_names(column_key: Key, table_rows: Sequence[NoteRow]) -> bool:
    """Return whether values are parts of the names in the first column of a table, as 28 of "Tyre 28"."""
    column, measure = column_key
    if table_rows[0].line.form != "row" or table_rows[0].cells[0][0] != column or measure in DAYS:
        return False
    held = [row for row in table_rows if column_key in row.values]
    return any(split_words(row.cell(column).replace(row.values[column_key].written, " ")) for row in held)


def _describe(column_key: Key, table_rows: Sequence[NoteRow]) -> str:
    """Return what a column is about: its head, what stands before its numbers in a list, and its kind."""
    column, measure = column_key
    is_price = len(measure) == _CURRENCY_LETTERS and measure.isupper()
    kind = "price, cost, money" if is_price else _KINDS.get(measure, "")
    before = Counter(
        word
        for row in table_rows
        if not column and (value := row.values.get(column_key))
        for word in split_words(row.text.partition(value.written)[0])[-1:]
    )
    units = frozenset(
        word for row in table_rows for value in row.values.values() for word in split_words(value.written)
    )
    least = _LEAST_SHARE * len(table_rows)
    common = [word for word, count in before.items() if count >= least and word not in units]
    return ", ".join(filter(None, (column, *common, kind)))


def _add(
    operation: Operation, table: NoteTable, table_rows: Sequence[NoteRow], column_key: Key
) -> TableAnswer | None:
    held = [row for row in table_rows if column_key in row.values]
    values = [row.values[column_key] for row in held]
    if len(values) < 2 or not values[0].adds:
        return None
    return _total(operation, table, held, values)


def _total(
    operation: Operation, table: NoteTable, table_rows: Sequence[NoteRow], alike: Sequence[CellValue]
) -> TableAnswer:
    """Return the sum or the mean of values of some rows."""
    total = sum((value.size for value in alike), Fraction(0))
    expression = " + ".join(value.written for value in alike)
    if operation == "mean":
        total /= len(alike)
        expression = f"({expression}) / {len(alike)}"
    return TableAnswer(operation, table, tuple(table_rows), _write(total, alike), expression)


def _over_time(question: Question, table: NoteTable, table_rows: Sequence[NoteRow]) -> TableAnswer | None:
    """
    Return what the rows come to over the months or weekdays that are named, all if none is: one row's or all
    rows' sum or mean, or the row with the most or the least.
    """
    columns = [name for name in table.columns if name in table.spread]
    named = [name for name in columns if calendar_terms(name, is_cell=True) & question.calendar]
    totals: list[tuple[NoteRow, CellValue]] = []
    values: list[CellValue] = []
    for row in table_rows:
        own = [
            value for (column, _), value in row.values.items() if column in (named or columns) and value.adds
        ]
        if own:
            values += own
            totals.append((row, replace(own[0], size=sum((value.size for value in own), Fraction(0)))))
    if question.operation in ("max", "min"):
        return _extreme(question.operation, table, totals)
    if len(values) < 2:
        return None
    return _total(question.operation, table, [row for row, _ in totals], values)


def _compare(question: Question, table: NoteTable, closeness: Closeness) -> TableAnswer | None:
    """Return the rows that a question names; of two with an amount alike also the difference."""
    about = table.about_terms
    numbers = [term for term in question.terms if term.isdigit() and question.names_column(table.columns[0])]
    numbered = {line_id for number in numbers for line_id in _holding(number, question, table)}
    rows = [
        row
        for row in table.rows
        if row.line.id in numbered or question.terms & frozenset(split_terms(row.name)) - about
    ]
    if not 1 < len(rows) < len(table.rows):
        return None
    key = choose_column(question, rows, closeness)
    values = [row.values[key] for row in rows if key in row.values] if key else []
    if len(rows) != 2 or len(values) != 2:
        return TableAnswer("compare", table, tuple(rows))
    larger, smaller = sorted(values, key=lambda value: -value.size)
    difference = _write(larger.size - smaller.size, values)
    return TableAnswer("compare", table, tuple(rows), difference, f"{larger.written} - {smaller.written}")


def _at_end(operation: Operation, table: NoteTable, table_rows: Sequence[NoteRow]) -> TableAnswer | None:
    """Return the first or the last row where nothing but the order of the table says which that is."""
    if operation not in ("first", "last"):
        return None
    return TableAnswer(operation, table, (table_rows[0] if operation == "first" else table_rows[-1],))


def _extreme(
    operation: Operation, table: NoteTable, valued_rows: Sequence[tuple[NoteRow, CellValue]]
) -> TableAnswer | None:
    if not valued_rows:
        return None
    sign = 1 if operation in ("max", "last") else -1
    best = max(sign * value.size for _, value in valued_rows)
    return TableAnswer(
        operation, table, tuple(row for row, value in valued_rows if sign * value.size == best)
    )


def _sort_direction(question: Question, column_key: Key) -> Operation:
    """Return which end of a column a question wants: the dearest costs most, the youngest was born last."""
    bases = {scale_of(word) for word in question.words}
    if question.operation not in ("max", "min", "first", "last"):
        return question.operation
    if column_key[1] not in DAYS:
        return _end_of_scale(question)
    if bases & _YOUNG_SCALES:
        return "last"
    return "first" if bases & _OLD_SCALES else question.operation


def _end_of_scale(question: Question) -> Operation:
    """Return which end of a scale a superlative means, as "dearest" the highest price."""
    signs = {way.sign for way in find_superlatives(question.plain) if way.kinds}
    if question.operation not in ("max", "min") or len(signs) != 1:
        return question.operation
    return "max" if signs == {1} else "min"


def _in_row_order(valued_rows: Sequence[tuple[NoteRow, CellValue]]) -> list[tuple[NoteRow, CellValue]]:
    """
    Return the rows with their values. Where days without a year run from December into January, the later
    ones count as of the next year.
    """
    sizes = [value.size for _, value in valued_rows]
    turns = [place for place in range(1, len(sizes)) if sizes[place] < sizes[place - 1]]
    if len(turns) != 1 or any(value.measure != "day" for _, value in valued_rows) or sizes[-1] > sizes[0]:
        return [*valued_rows]
    return [
        (row, replace(value, size=value.size + _DAYS_OF_YEAR) if place >= turns[0] else value)
        for place, (row, value) in enumerate(valued_rows)
    ]


def _write(size: Fraction, alike: Sequence[CellValue]) -> str:
    """Return a number as others of its measure are written: their unit, decimals and decimal mark."""
    first = alike[0]
    if first.measure == "s" and any(_HOURS.search(value.written) for value in alike):
        hours, minutes = divmod(round(size / 60), 60)
        return f"{hours} h {minutes:02}" if minutes else f"{hours} h"
    digits = [match[0] for value in alike if (match := _NUMBER.search(value.written))]
    decimals = [match for text in digits if (match := _DECIMALS.search(text))]
    places = max((len(match[2]) for match in decimals), default=0)
    number = size / _unit_size(first)
    while places < _MOST_DECIMALS and (number * 10**places).denominator != 1:
        places += 1
    text = f"{float(number):.{places}f}"
    if decimals and decimals[0][1] == ",":
        text = text.replace(".", ",")
    return first.written.replace(digits[0], text) if digits else text


def _unit_size(cell_value: CellValue) -> Fraction:
    amounts = (
        mention.amount for mention in scan(cell_value.written) if mention.amount and mention.amount.value
    )
    own = next(amounts, None)
    return cell_value.size / own.value if own and own.value else Fraction(1)


# days


def _count_days(question: Question, table: NoteTable, table_rows: Sequence[NoteRow]) -> TableAnswer | None:
    """Return how long it is from today until a day of the table_rows, or since one; an age in years."""
    today = question.now.date()
    dated = [(row, value) for row in table_rows for value in row.values.values() if value.measure in DAYS]
    asked = frozenset(question.words)
    if asked & _words("until"):
        coming = [*_to_come(dated, today, recur=_are_anniversaries(table, today))]
        if not coming:
            return None
        row, value = min(coming, key=lambda pair: pair[1].size)
        then = date.fromordinal(int(value.size))
        until = then.isoformat() if value in row.values.values() else f"{then:%-d %B}"
        days = f"{(then - today).days} days"
        return TableAnswer("days", table, (row,), days, f"days between {today} and {until}")
    past = [pair for pair in dated if pair[1].measure == "date" and pair[1].size <= today.toordinal()]
    if not past:
        return None
    is_age = bool(asked & _words("age"))
    row, value = (min if is_age else max)(past, key=lambda pair: pair[1].size)
    since = date.fromordinal(int(value.size))
    years = age_between(since.isoformat(), today.isoformat())
    if is_age:
        return TableAnswer("days", table, (row,), f"{years} years", f"years between {since} and {today}")
    days = f"{(today - since).days} days"
    return TableAnswer("days", table, (row,), days, f"days between {since} and {today}")


def _to_come(
    dated_rows: Sequence[tuple[NoteRow, CellValue]], today: date, *, recur: bool
) -> Iterator[tuple[NoteRow, CellValue]]:
    """Yield rows with a day to come; days without a year, or that recur, with their next occurrence."""
    for row, value in dated_rows:
        if value.measure == "day" or (recur and value.measure == "date"):
            yield row, _next_return(value, today)
        elif value.measure != "date" or value.size >= today.toordinal():
            yield row, value


def _are_anniversaries(table: NoteTable, today: date) -> bool:
    """Return whether the days of a table are birthdays and the like: all are past, and of several years."""
    days = [value.size for row in table.rows for value in row.values.values() if value.measure == "date"]
    return bool(days) and max(days) < today.toordinal() and max(days) - min(days) > _DAYS_OF_YEAR


def _next_return(cell_value: CellValue, today: date) -> CellValue:
    day = date.fromordinal(int(cell_value.size))
    for year in range(today.year, today.year + 9):  # 29 February is in one of eight
        try:
            there = day.replace(year=year)
        except ValueError:
            continue
        if there >= today:
            return CellValue("date", Fraction(there.toordinal()), cell_value.written)
    return cell_value
