"""What a message means, read once: its mood, what it refers to, what it rules out, limits and keeps. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import msgspec

from panda.language.claims import Found, scan
from panda.language.dates import is_past_form
from panda.language.numbers import ORDINAL_WORDS
from panda.language.patterns import lazy_pattern
from panda.language.text import MESSAGE_CHARS, plain_signs, plain_text, sentence_spans
from panda.language.words import NOT_COUNTED, alternatives, read_groups, read_words, split_words, stem

LimitValue = str | int | float | None
Mood = Literal["asks", "tells", "orders"]
Action = Literal["drop", "demote", "keep"]
Change = Literal["adds", "removes", "corrects"]
Agreement = Literal["agrees", "declines", "neither"]


NodeId = Annotated[str, msgspec.Meta(pattern=r"^[^/\x00\n]+\Z")]


class Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a reading; what is empty is not written."""


class Clause(Part, frozen=True):
    """A part of the message that does one thing."""

    text: str  # as it stands
    mood: Mood  # what it does


class Referred(Part, frozen=True):
    """Words that stand for things that were spoken of."""

    words: str  # as they stand
    refs: tuple[str, ...] = msgspec.field(default_factory=lambda: ())  # never left out
    """Refs of the session's entities, or a turn as "turn:12"; empty if it is not known which."""


class Excluded(Part, frozen=True):
    """What is to happen with a thing that was spoken of."""

    ref: str  # ref of the session's entity
    action: Action  # never again, not now, or back again
    words: str  # the words that say so


class Days(Part, frozen=True):
    """A period that is spoken of."""

    start: str  # first day, as 2026-11-22
    end: str  # last day
    words: str  # the words that say so


class Limit(Part, frozen=True):
    """What limits the things that are looked for."""

    text: str  # the words that say so
    key: str | None = None  # what it limits; None if that is not known
    value: LimitValue = None  # to what; None if that is not known


class Statement(Part, frozen=True):
    """What is to be kept."""

    text: str  # as it stands
    key: str | None = None  # relation; None unless sure
    value: str | tuple[str, ...] | None = None
    """Its value, verbatim; of a relation with several those that are named; None unless sure."""
    entity: str | None = None  # whom or what it is about; None for the user
    action: Change | None = None
    """What it does to what was said before: adds to several values, removes one, or corrects it."""


class ToldPlace(Part, frozen=True):
    """A clause within a sentence that was told."""

    node: NodeId  # of the sentence
    start: int = msgspec.field(default_factory=lambda: 0)  # where the clause begins, in characters
    sentence_chars: int = msgspec.field(default_factory=lambda: 0)
    """Length of the sentence; one of another length was rewritten since."""


class Reading(Part, frozen=True):
    """What a message means."""

    mood: Mood = msgspec.field(default_factory=lambda: "asks")  # never left out
    """Of the whole: orders if any sentence orders, else asks if any asks, else tells."""
    clauses: tuple[Clause, ...] = ()  # the message in order
    references: tuple[Referred, ...] = ()  # in order
    exclusions: tuple[Excluded, ...] = ()  # what it rules out, or wants to keep
    clears: str | None = None  # the words that start over; None if none do
    periods: tuple[Days, ...] = ()  # in order
    limits: tuple[Limit, ...] = ()  # in order
    agreement: Agreement | None = None  # what it says to the open question; None where none is open
    talk: bool = False  # whether it tells, asks and orders nothing
    pasted: bool = False  # whether it is a document that is handed over with nothing asked of it
    of_documents: bool = False
    """Whether it asks nothing of its own, as "Summarise the risks", of documents that were handed over."""
    recap: bool = False  # whether it looks back on the conversation as a whole
    all: bool = False  # whether the whole of a list is wanted
    details: bool = False  # whether all that a page says of a thing is wanted, and not one value
    now: bool = False  # whether it asks how things are by now, and not how they were
    address: bool = False  # whether it asks where on the web something is
    statements: tuple[Statement, ...] = ()  # what it tells that is to be kept
    forgets: bool = False  # whether something that is kept is to be forgotten
    forget: tuple[NodeId, ...] = ()  # nodes of what that is or may be, one for each thing
    forget_places: tuple[ToldPlace, ...] = ()  # where the clauses stand that those of `forget` mean
    asks_to_forget: bool = False  # whether the user is asked before anything is forgotten
    not_stored: tuple[str, ...] = ()  # clauses that tell what the user asks not to be stored

    @property
    def is_about_memory(self) -> bool:
        """Whether it asks for nothing but that something is forgotten, or is not stored."""
        asks = any(one.mood == "asks" for one in self.clauses)
        return self.forgets or (bool(self.not_stored) and not asks)

    @property
    def only_tells(self) -> bool:
        """Whether nothing is looked for: it is small talk, a pasted text, or all of it is kept."""
        is_kept = bool(self.statements) and all(one.mood == "tells" for one in self.clauses)
        return self.mood == "tells" and (self.talk or self.pasted or is_kept)

    @property
    def turns(self) -> list[str]:
        """The turns that it names by number, as "turn:12"."""
        return [ref for one in self.references for ref in one.refs if ref.startswith("turn:")]


def overall_mood(said: Iterable[Mood]) -> Mood:
    """A message orders if any part of it does, else asks if any does, else tells; without parts it asks."""
    known = set(said) or {"asks"}
    return next((cast(Mood, mood) for mood in ("orders", "asks") if mood in known), "tells")


_KEY_FORM = lazy_pattern(r"(?!said_t)[a-z][a-z0-9_]{0,47}")  # code gives the keys that begin with said_t
_LIMIT_KEY = lazy_pattern(_KEY_FORM.pattern + r"(?::\w{1,40})?")
_AROUND = " \t\n\"'“”‘’.,;:!?…"
_END_MARKS = lazy_pattern(r"[.!?…]+")


def check_reading(
    written: object, *, query: str, refs: Collection[str], is_open: bool, kept: Collection[str] = ()
) -> tuple[Reading, list[str]]:
    """
    A reading that a model wrote, parts missing or of any type, less what cannot be so: words that are not in
    the query (but for signs, blanks and capitals), ids that are not on offer (*refs* of the session, nodes
    *kept*), days that are none, agreement where no question *is_open*. Gives it with its words as they stand
    in the query, and what was taken out, in words. Nothing else is judged again.
    """
    if not isinstance(written, Mapping):
        return Reading(), ["all of it: it is no object"]
    dropped: list[str] = []

    def drop(place: str, why: str) -> None:
        dropped.append(f"{place}: {why}")

    def typed(value: object, form: Any, place: str) -> Any:
        try:
            return msgspec.convert(value, form)
        except msgspec.ValidationError as exc:
            drop(place, str(exc))
            return None

    def quoted(words: object, place: str) -> str | None:
        span = find_span(words, query) if isinstance(words, str) else None
        if span is None:
            drop(place, f"{words!r:.80} does not stand in the query")
        return span

    def entries(name: str, words: str) -> Iterator[tuple[Mapping[str, Any], str, str]]:
        """Each entry that quotes the query, its place, and what it quotes."""
        for n, entry in enumerate(typed(written.get(name), list[object] | None, name) or ()):
            place = f"{name}[{n}]"
            if not isinstance(entry, Mapping):
                drop(place, "it is no object")
            elif entry.get("action") == "keep" and entry.get(words) == "":
                yield entry, place, ""  # it is named again
            elif text := quoted(entry.get(words), place):
                yield entry, place, text

    def known(given: object, ids: Collection[str], place: str) -> tuple[str, ...]:
        given = given if isinstance(given, list) else [] if given is None else [given]
        there = tuple(dict.fromkeys(ref for ref in given if isinstance(ref, str) and ref in ids))
        for ref in given:
            if ref not in there:
                drop(place, f"there is no entity {ref!r:.40}")
        return there

    def days(start: object, end: object, place: str) -> bool:
        first, last = (typed(day, date, place) for day in (start, end))
        if first and last and first > last:
            drop(place, f"{end} is before {start}")
        return bool(first and last and first <= last)

    def limit(entry: Mapping[str, Any], place: str, text: str) -> Limit:
        key, value = _key(entry, _LIMIT_KEY), entry.get("value")
        if key is not None and isinstance(value, str | int | float) and not isinstance(value, bool):
            return Limit(text, key, value)
        if value is not None:
            drop(place, f"the key {entry.get('key')!r:.40} with the value {value!r:.40}")
        return Limit(text)

    def told(entry: Mapping[str, Any], place: str, text: str) -> list[Statement]:
        action: Change | None = typed(entry.get("action"), Change | None, place)
        key, value, entity = _key(entry, _KEY_FORM), entry.get("value"), entry.get("entity") or None
        values = value if isinstance(value, list) else [value] * (value not in (None, ""))
        *spans, about = (
            find_span(part, text) if isinstance(part, str) else None for part in (*values, entity)
        )
        found = tuple(span for span in spans if span)
        if not values or key is None or len(found) < len(values) or (entity and not about):
            if values:
                whose = f" of {entity!r:.40}" if entity else ""
                drop(place, f"the key {entry.get('key')!r:.40} with the value {value!r:.60}{whose}")
            return [Statement(text, action="corrects" if action == "corrects" else None)]
        if action == "removes":
            return [Statement(text, key, part, about, "removes") for part in found]
        is_list = action == "adds" or len(found) > 1
        return [Statement(text, key, found if is_list else found[0], about, action)]

    clauses = [
        Clause(text, mood)
        for entry, place, text in entries("clauses", "text")
        if (mood := typed(entry.get("mood"), Mood, place))
    ]
    exclusions = [
        Excluded(ref, action, words)
        for entry, place, words in entries("exclusions", "words")
        for ref in known([entry.get("ref")], refs, place)
        if (action := typed(entry.get("action"), Action, place))
    ]
    agreement = typed(written.get("agreement"), Agreement | None, "agreement")
    if agreement in ("agrees", "declines") and not is_open:
        drop("agreement", "no question is open")
    forget = known(written.get("forget"), kept, "forget")
    statements = [part for entry in entries("statements", "text") for part in told(*entry)]
    reading = Reading(
        mood=typed(written.get("mood"), Mood | None, "mood") or overall_mood(one.mood for one in clauses),
        clauses=tuple(clauses),
        references=tuple(
            Referred(words, known(entry.get("refs"), refs, place))
            for entry, place, words in entries("references", "words")
        ),
        exclusions=tuple(exclusions),
        clears=quoted(written["clears"], "clears") if written.get("clears") else None,
        periods=tuple(
            Days(entry["start"], entry["end"], words)
            for entry, place, words in entries("periods", "words")
            if days(entry.get("start"), entry.get("end"), place)
        ),
        limits=tuple(limit(*entry) for entry in entries("limits", "text")),
        agreement=agreement or "neither" if is_open else None,
        talk=typed(written.get("talk"), bool | None, "talk") is True,
        recap=typed(written.get("recap"), bool | None, "recap") is True,
        all=typed(written.get("all"), bool | None, "all") is True,
        statements=() if forget else tuple(statements),
        forgets=bool(forget),
        forget=forget,
    )
    return reading, dropped


def find_span(words: str, text: str) -> str | None:
    """Words as they stand in a text, whatever their capitals, blanks and signs; None if they don't."""
    if words.strip() == words and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text):
        return words
    parts = [re.escape(part) for part in plain_signs(words).strip(_AROUND).split()]
    plain = plain_signs(text)
    match = re.search(r"(?<!\w)" + r"\s+".join(parts) + r"(?!\w)", plain, re.IGNORECASE) if parts else None
    if match is None:
        return None
    ends = _END_MARKS.match(plain, match.end()) if _END_MARKS.search(words.rstrip()[-1:]) else None
    return text[match.start() : ends.end() if ends else match.end()]


def _key(entry: Mapping[str, Any], form: re.Pattern[str]) -> str | None:
    key = entry.get("key")
    plain = re.sub(r"[\s-]+", "_", key.strip().lower()) if isinstance(key, str) else ""
    return plain if form.fullmatch(plain) else None


# what a message asks for, by its words


_LISTED = partial(read_words, "conversation_words.txt")
_ANY = {name: alternatives("conversation_words.txt", name) for name in read_groups("conversation_words.txt")}


def _says(pattern: str, text: str) -> bool:
    whole = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)
    return whole.search(plain_signs(text[:MESSAGE_CHARS])) is not None


def plain_recap(query: str) -> bool:
    """Whether a query asks what the whole session was about, by its words, where no encoder can tell."""
    words = set(split_words(query.lower()))
    told = words & _LISTED("spoke") and words & _LISTED("partners")
    return bool(words & _LISTED("recap") or told) and words <= _LISTED("recap") | _LISTED("filling")


def asks_again(clause: str) -> bool:
    """Whether a clause asks to see something that was written before, and not to have it written anew."""
    named = rf"{_ANY['again']}|(?:the|that|my|your) (?:[\w-]+ )?{_ANY['drafts']}"
    return _says(rf"{_ANY['shows']}\b[^.?!]*\b(?:{named})", clause) and not _says(_ANY["makes"], clause)


def orders_change(clause: str) -> bool:
    return _says(rf"(?:^|[.;,]\s+|\b(?:and|then|please|you)\s+){_ANY['changes']}(?=\s+\S)", clause.strip())


def asks_for(kind: Literal["details", "now", "address"], query: str) -> bool:
    return _says(_ANY[kind], query)


MOST_NAMED_TURNS = 50
"""How many turns a range of numbers can name; one more tells that there are more."""
_TURNS = lazy_pattern(
    r"\bturn(?P<several>s)?[ _]+(?P<sign>#|(?:no\.?|numbers?)[ ]+)?(?P<first>\d{1,100})\b(?![.:/]\d)"
    r"(?P<more>(?:(?:[ ]?(?:-|–|,|&)|[ ](?:to|through|and|or)|,[ ](?:and|or))"
    r"[ ]?(?:turn[ ])?#?\d{1,100}\b)*)",
    re.IGNORECASE,
)
_MORE = lazy_pattern(r"(?P<join>-|–|to|through)?[ ]?(?P<turn>turn[ ])?#?(?P<number>\d{1,100})", re.IGNORECASE)
_BEFORE_TURN = lazy_pattern(r"(?:\b(?P<outer>[\w'’]+)[ ])?(?P<word>[\w'’]+)[ ]\Z")
_BESIDE_TURN = partial(read_words, "turn_words.txt")


def named_turns(query: str) -> dict[str, tuple[int, ...]]:
    """
    Return the saved turns that a query names by number ("turn 809", "turns 3, 5 and 7", "turns 3-5"): the
    words with the numbers, in order. "Turn 90 degrees left", "turn 10 pages into a PDF" and "she will turn
    40" name none; in doubt nothing does.
    """
    text = plain_signs(query)
    named = {}
    for match in _TURNS.finditer(text):
        numbers = _turn_numbers(match)
        end = match.end() if len(numbers) > 1 else match.end("first")
        if numbers and (match["sign"] or _is_named_turn(text, match, end)):
            named[query[match.start() : end]] = numbers
    return named


def _turn_numbers(match: re.Match[str]) -> tuple[int, ...]:
    """The numbers behind "turn" in order; none behind "turns" if there is but one ("she turns 30")."""
    numbers = [int(match["first"])]
    is_from = match.string[: match.start()].lower().endswith("from ")
    for more in _MORE.finditer(match["more"]):
        last = int(more["number"])
        join = (more["join"] or "").lower()
        if not (match["several"] or more["turn"] or join in ("-", "–")):
            break
        if not join or (more["turn"] and join == "to" and not is_from):  # "compare turn 3 to turn 5"
            numbers.append(last)
            continue
        low, high = sorted((numbers.pop(), last))
        numbers += range(low, min(high, low + MOST_NAMED_TURNS) + 1)
    if match["several"] and len(numbers) == 1 and not match["sign"]:
        return ()
    return tuple(dict.fromkeys(numbers))


def _is_named_turn(text: str, match: re.Match[str], end: int) -> bool:
    """Whether "turn" with a number, which *end* with the last one, is a noun there, of a conversation."""
    behind = [word.lower() for word in split_words(text[end : end + _LOOK_CHARS])][:4]
    if text[end:].lstrip()[:1] in (",", ";", ":", ".", "?", "!", ""):
        behind = []
    if behind[:1] == ["of"] and not _BESIDE_TURN("conversations").intersection(behind):
        return False
    before = _BEFORE_TURN.search(text[: match.start()])
    word = before["word"].lower() if before else ""
    if word == "to":
        return (before["outer"] or "").lower() in _BESIDE_TURN("before_to") if before else False
    is_verb = word in read_words("order_verbs.txt") or is_past_form(word)
    if word and word not in _BESIDE_TURN("before") and not is_verb:
        return False
    if word and word not in _BESIDE_TURN("open"):
        return True
    return not (_is_count(text[match.start("first") : end + _LOOK_CHARS], behind) or _goes_a_way(behind))


def _is_count(text: str, behind: Sequence[str]) -> bool:
    """Whether a text begins with a number of something."""
    first = next(iter(scan(re.split(r"[ ](?:and|or)[ ]", text, maxsplit=1)[0])), None)
    if first is None or first.start > 0:
        return False
    amount = first.amount
    counts = amount is not None and (amount.counts or bool(amount.unit or amount.currency))
    return first.claim.kind in ("price", "quantity") or (
        counts and not _BESIDE_TURN("verbs").intersection(behind[:1])
    )


def _goes_a_way(behind: Sequence[str]) -> bool:
    return bool(_BESIDE_TURN("ways").intersection(behind[:1]))


_WHOLE = lazy_pattern(
    r"""\b(?:all(?!\ (?:right|day|night|week|year|time|the\ time|along)\b)
      | every(?!\ (?:day|night|week|month|year|time|morning|evening|so)\b)
      | the\ (?:whole|entire|full|complete) | each\ of | one\ by\ one | step\ by\ step | everything)\b
      | \bon\ (?:the|my|our|your)\ (?:[\w'-]+\ )?list\b
      | ^(?:(?:and|so|but|then)\ )?
        (?:how\ (?:do|does|can|should|to)|what\ (?:do|should|must|can)\ (?:I|we|you)\ do)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_WHOLE = lazy_pattern(r"\b(?:at|after|above|not|that'?s|is that|in) all\b", re.IGNORECASE)
_KIND = lazy_pattern(
    r"^\W*(?:(?:and|so|but|then) )?(?:which|what)(?P<be> are| were)?(?P<words>(?: [\w'-]+){1,5})",
    re.IGNORECASE,
)


def wants_whole(query: str) -> bool:
    """Whether a query asks for all there are of a kind, or all steps, not for one or what sets some apart."""
    text = plain_signs(query[:MESSAGE_CHARS]).strip()
    if text.partition(" ")[0].lower() in read_words("order_words.txt", "aux"):  # yes or no
        return False
    if _WHOLE.search(_NOT_WHOLE.sub("", text)) or any(map(_is_plural, things_to_show(text))):
        return True
    kind = _KIND.match(text)
    words = kind["words"].lower().split() if kind else []
    for word, following in zip(words, [*words[1:], None], strict=False):
        if word in _LISTED("behind_kind") and word != "of":
            return False
        if _is_plural(word) and kind:
            return bool(kind["be"]) or following is None or following in _LISTED("behind_kind")
    return False


def things_to_show(query: str) -> list[str]:
    """The words for what a message orders to show, up to where that comes from."""
    words = [word.lower() for word in split_words(plain_signs(query[:MESSAGE_CHARS]))]
    begin = next((at for at, word in enumerate(words) if word not in _LISTED("before_orders")), 0)
    verb, *behind = words[begin:] or [""]
    if verb not in read_words("item_words.txt", "shows"):
        return []
    end = next((at for at, word in enumerate(behind) if word in _LISTED("from_where")), len(behind))
    return behind[:end]


def _is_plural(word: str) -> bool:
    ends = word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return word in _LISTED("people") or (ends and word not in _LISTED("no_plurals") and stem(word) != word)


@dataclass(frozen=True)
class StepAsked:
    place: int  # its number, or how many steps behind the last one that was quoted; -1 is the last of all
    is_relative: bool  # whether it is counted from there

    def number(self, quoted: int, count: int) -> int:
        """Its number, where step *quoted* was quoted last, of *count*."""
        if self.is_relative:
            return quoted + self.place
        return count if self.place < 0 else self.place


_WAYS = {"next": (1, True), "after": (1, True), "before": (-1, True), "previous": (-1, True)}
_WAYS |= {"last": (-1, False), "final": (-1, False)}


def asked_step(query: str) -> StepAsked | None:
    words = [word.lower() for word in split_words(query)]
    named = [word for word in words if word not in NOT_COUNTED and word not in _LISTED("step_words")]
    if {"step", "point"}.isdisjoint(words):
        alone = all(word in ORDINAL_WORDS for word in named)
        return StepAsked(1, is_relative=True) if "next" in words and alone else None
    numbers = [int(word) for word in named if word.isascii() and word.isdigit() and len(word) < 5]
    numbers += [ORDINAL_WORDS[word] for word in words if word in ORDINAL_WORDS]
    if len(numbers) == 1:
        return StepAsked(numbers[0], is_relative=False)
    return next((StepAsked(*_WAYS[word]) for word in words if word in _WAYS), None)


# what limits a search

_LIMIT = {name: alternatives("limit_words.txt", name) for name in read_groups("limit_words.txt")}
_BEFORE_VALUE = lazy_pattern(
    rf"(?<![\w'-])(?:(?P<turned>no|not|never) )?(?:(?P<early>{_LIMIT['early']})|(?P<late>{_LIMIT['late']})"
    rf"|(?P<most>{_LIMIT['most']})|(?P<least>{_LIMIT['least']})|(?P<people>for(?=[ ]?\Z))|(?P<day>on)"
    r"|between)[.:]?(?: (?:of|is|an?|the|about))*[ ]?\Z",
    re.IGNORECASE,
)
_BEHIND_VALUE = lazy_pattern(
    rf"(?:[ /]{{0,3}}(?!and|or)[\w€£$]+){{0,2}}[ ](?:(?P<most>{_LIMIT['tops']})|(?P<least>{_LIMIT['up']})"
    r"|(?P<only>only))\b",
    re.IGNORECASE,
)
_RANGE = lazy_pattern(r"[ ]?(?:and|to|-|–)[ ]?")
_PART = lazy_pattern(r"[,;]\s|\s(?:that|which|who)\b")
_SEEKS = lazy_pattern(
    rf"(?:\w+,? ){{0,2}}?(?:(?:can|could|would|will) you (?:please )?)?{_LIMIT['looks']}\b"
    r"(?! (?:the|my|our|his|her|this|that|it|him)\b)"
    rf"|.*?\b{_LIMIT['wishes']}\b(?! (?:the|my|our)\b)|which\b|what(?:'s| is| are) the (?:best|\w+est)\b",
    re.IGNORECASE,
)
_SPEAKS = lazy_pattern(
    rf"(?:{_LIMIT['asks']}|{_LIMIT['known']})\b|\w+ (?:to )?{_LIMIT['known']}\b"
    rf"|.*?(?:(?<![\w-]){_LIMIT['finite']}(?![\w-])|\w'(?:s|re|ve|m)\b)",
    re.IGNORECASE,
)
_ORDERED = lazy_pattern(
    rf"(?:please )?(?:{_LIMIT['looks']}|{_LIMIT['makes']}) (?:(?:me|us|the|some|all|only|exactly|out) )*\Z",
    re.IGNORECASE,
)
_INSTEAD = lazy_pattern(r"\b(?P<value>\d{1,9}(?:\.\d{1,9})?),? (?:and )?not (?P<was>\d{1,9}(?:\.\d{1,9})?)\b")
_LOOK_CHARS, _HEAD_CHARS = 60, 300


def find_limits(message: str, holding: Mapping[str, str | int | float] = MappingProxyType({})) -> list[Limit]:
    """
    The budgets, dates and counts that limit what a message looks for, in order, their words as they stand;
    what it tells, and questions about one known thing, limit nothing. Keys are budget, date or count:NOUN,
    with _min or _max; of those *holding* so far "4, not 6" changes the one that is 6.
    """
    text = plain_text(message[:MESSAGE_CHARS])
    limits = []
    for match in _INSTEAD.finditer(text):
        value = float(match["value"]) if "." in match["value"] else int(match["value"])
        keys = [key for key, known in holding.items() if str(known) == match["was"]]
        is_all = match[0] == text.strip(" .!")
        limits += [Limit(match[0], key, value) for key in keys or ["count"] * is_all]
    for start, end in sentence_spans(text):
        for one in _limits_of(text[start:end]):
            limits.append(Limit(find_span(one.text, message) or one.text, one.key, one.value))
    return list(dict.fromkeys(limits))


def _limits_of(sentence: str) -> Iterator[Limit]:
    values = [(one, *_limit_kind(one)) for one in scan(sentence) if one.claims or one.claim.kind == "date"]
    begin: int | None = None  # of the range that a value ends
    for (one, kind, value), (other, same, _) in zip(values, [*values[1:], (None, None, None)], strict=False):
        front = _BEFORE_VALUE.search(sentence[max(0, one.start - _LOOK_CHARS) : one.start])
        behind = _BEHIND_VALUE.match(sentence, one.end)
        name, colon, noun = kind.partition(":")
        start = one.start - len(front[0]) if front else one.start
        end = sentence.lower().find(noun, one.end) + len(noun) if noun else one.end
        end = max(end, behind.end() if behind else 0)
        is_ordered = bool(noun) and _ORDERED.match(sentence[: min(start, _HEAD_CHARS)]) is not None
        bound = _limit_bound(name, value, front, behind)
        if begin is not None:
            start, bound, begin = begin, "_max", None
        elif same == kind and other and _RANGE.fullmatch(sentence, one.end, other.start):
            begin, end, bound = start, other.end, "_min"
        elif bound is None and is_ordered:
            bound = ""
        if kind and bound is not None and (is_ordered or _seeks(sentence, start, end)):
            is_sure = bound != "?" and value is not None
            yield Limit(sentence[start:end], *((f"{name}{bound}{colon}{noun}", value) if is_sure else ()))


def _limit_kind(one: Found) -> tuple[str, LimitValue]:
    if one.claim.kind in ("price", "date"):
        return {"price": "budget", "date": "date"}[one.claim.kind], one.claim.value
    amount = one.amount
    if not amount or amount.value is None or amount.label or amount.ordinal or amount.version or amount.unit:
        return "budget" if amount and amount.unit == "lb" else "", None  # pounds may be either
    value = int(amount.value) if amount.value.denominator == 1 else float(amount.value)
    if not amount.counts:
        return "budget", value
    return (f"count:{amount.noun}", value) if isinstance(value, int) else ("", None)


def _limit_bound(
    name: str, value: LimitValue, front: re.Match[str] | None, behind: re.Match[str] | None
) -> str | None:
    """How the words around a value limit it: "_max", "_min", "" exactly, "?" somehow; None not at all."""
    said = {key for match in (front, behind) if match for key, words in match.groupdict().items() if words}
    if said & {"early", "late"} and name != "date":
        return "?" if name == "budget" and isinstance(value, int) else None  # "before 8"
    if not front and name == "budget" and not isinstance(value, str):
        return None  # "age 6 and up"
    if said & {"most", "early"}:
        return "_min" if "turned" in said else "_max"
    if said & {"least", "late"}:
        return "_max" if "turned" in said else "_min"
    if name == "date" and "day" in said and "turned" in said:
        return "?"
    return "" if name == "count" and "people" in said else None


def _seeks(sentence: str, start: int, end: int) -> bool:
    first = _PART.split(sentence[:_HEAD_CHARS], maxsplit=1)[0]
    part = _PART.split(sentence[max(0, start - _HEAD_CHARS) : start])[-1] + sentence[start:end]
    part += _PART.split(sentence[end : end + _HEAD_CHARS], maxsplit=1)[0]
    words = re.findall(r"[a-z']+", first.lower())
    nouns = read_words("limit_words.txt", "before_nouns")  # "a used cello"
    if any(is_past_form(word) and before not in nouns for before, word in pairwise(words)):
        return False
    return _SEEKS.match(first) is not None or _SPEAKS.match(part) is None
