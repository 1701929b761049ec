"""
What a message limits: the clauses that narrow what it looks for, with key and value where they are sure.

A clause limits only where the message looks for a thing: an order to find one, a wish, a bare noun phrase, or
a question which of many there are. What is told, what was, and questions about one known thing set none.
"""

import re
from collections.abc import Iterable, Mapping

from panda.language.claims import Found, scan
from panda.language.periods import is_past_form
from panda.language.reading import Limit
from panda.language.text_front import MESSAGE_CHARS, plain_signs, plain_text
from panda.language.words import read_groups

_LISTS = {
    name: f"(?:{'|'.join(part.strip() for part in words.split(','))})"
    for name, words in read_groups("limit_words.txt").items()
}


def _compile(*parts: str) -> re.Pattern[str]:
    """A pattern of alternatives, in which <<name>> stands for a list and # for a number."""
    pattern = "|".join(parts).replace("#", r"[$€£]?\d[\d.,:]*")
    return re.compile(re.sub(r"<<(\w+)>>", lambda match: _LISTS[match[1]], pattern), re.IGNORECASE)


_COMPARED = _compile(
    r"(?<![\w'-])(?<!'re )(?<!'m )"
    r"(?:(?:no |not )?(?:less|fewer|more|later|\w{3,}er) than|(?:not )?<<compared>>)(?![\w'-])"
)
"""Beginnings that limit if an amount or a time follows."""
_EXCLUDED = _compile(r"(?<![\w'-])<<excluded>>(?![\w'-])")
_HAVING = _compile(r"(?<!wrong )(?<!help )(?<!deal )\bwith\b(?! <<definite>>\b)")
"""What a thing that is looked for must have."""
_RELATIVE = _compile(r"(?<=\w )(?:that|which|who)(?:'s)?(?= (?!(?:<<subjects>>|<<definite>>|i|a|an)\b)\w)")
_WHOLE = _compile(
    r"(?<![\w.])#(?: ?[%a-z€$£]+)? (?:at (?:most|least)|max(?:imum)?|tops)\b",
    r"(?<![\w.])#(?: ?[%a-z€$£]+)? (?:or (?:less|more|cheaper|fewer|under)|and (?:up|over|above))\b",
    r"(?<![\w.])# ?(?:to|-|–) ?# ?[a-z€$£]+",
    r"(?<![\w'.])[a-z]{3,}[- ]free\b",
    r"(?<![\w.])[a-z]+ not (?:needed|required|wanted)\b",
    r"\b\w+(?: is)? a must\b",
    r"\bbudget(?: of| is|:)? # ?[%a-z€$£]*",
    r"\bfor \d+ [a-z]+",
    r"\b(?:ready )?in (?:#|an?) (?:minutes|hours?|days|weeks)\b",
    r"(?<![\w.])(?:[\w-]+ ){1,3}only\b",
    r"\bfrom \d\d?(?:[.:]\d\d| ?[ap]m)(?: on(?:wards)?)?",
    r"\bdown to -?\d+[ ]?[°\w]*",
)
"""Limits that stand by themselves."""
_LIMIT = _compile(r"\d", r"\b<<amounts>>s?\b")
_ENDS = _compile(
    r"[;?!\n]",
    r",(?!\d)",
    r"\.(?!\d|\w)(?<!max\.)(?<!min\.)",
    r"\s(?:please|thanks?|can you|what can you|because)\b",
)
_SENTENCE = _compile(r"(?:[^.;?!\n]|\.(?=\d|\w)|(?<=max)\.|(?<=min)\.)+[.;?!\n]*")
_LOOKS = _compile(
    r"(?:(?:please|hi|hello|hey|ok|and|so|also),? )*(?:(?:can|could|would|will) you (?:please )?)?<<looks>>\b"
    r"(?! (?:the|my|our|his|her|their|this|that|it|him|me the|me my)\b)",
    r".*?\b(?:<<subjects>>|i)(?:'d| am| are|'m|'re| would)? (?:really |only )?<<wishes>>\b"
    r"(?! (?:the|my|our)\b| to (?!<<looks>>\b))",
    r".*?\b(?:looking for|search(?:ing)? for|recommend|suggest|can spend)\b",
    r".*?\bwould you (?:take|pick|choose|buy)\b",
    r".*?\b(?:(?:has|have|needs?|ought) to (?:be|fit|have)|must (?:not )?(?:be|have|fit|include|support))\b",
    r"what(?:'s| is| are) (?:the (?:best|most|[a-z]{3,}est)|a good|good)\b",
)
"""How a sentence begins that looks for a thing."""
_MANY = _compile(
    r"(?:and |so )?(?:which|what) (?:of (?:the|my|our|these|those) )?"
    r"(?:[\w-]+ ){0,2}?(?!(?:is|was|has|does|this)\b)[\w-]*[^\Ws]s "
    r"(?P<rest>(?!(?:\w+ )?(?:<<subjects>>|i)\b)(?!(?:did|was|were|had|is|does|do|has|an?|<<definite>>)\b)"
    r"[\w'-]+)"
)
"""A question which of many there are; what follows is a limit."""
_ASKS = _compile(r"(?:and |so |but )?<<asks>>\b")
_STATES = _compile(r"(?<![\w-])<<finite>>(?![\w-])", r"\w'(?:s|re|ve|m)\b")
_SUBJECT = _compile(r"(?:<<subjects>>|i|<<definite>>)\b")
_ORDERED = _compile(r"(?:please )?[a-z]+ (?:(?:me|us|the|some|all|only|exactly|out|up to) )*\Z")
_ORDER_OBJECT = _compile(r"\w+ (?:to )?(?:the|my|our|his|her|it|them|him|me|us)\b")
_WISH_TO_KNOW = _compile(r"\b(?:know|remember|tell|say|said|ask|hear)\b")
_TALK = _compile(r"(?:and|or|but|so|too|also|<<talk>>)\b")
_MOST = _compile(r"\b<<most>>")
_LEAST = _compile(r"\b<<least>>")
_ATTRIBUTES = frozenset("a an not no the be is are me any well find".split())  # noqa: SIM905
"""Words behind which a participle belongs to a noun, as it does in front: "a used cello", "used cellos"."""
_INSTEAD = re.compile(r"\b(?P<value>\d{1,9}(?:\.\d{1,9})?),? (?:and )?not (?P<was>\d{1,9}(?:\.\d{1,9})?)\b")
_MOST_WORDS, _FRAGMENT_WORDS, _SENTENCE_CHARS = 12, 5, 1_000


def find_limits(message: str) -> list[Limit]:
    """
    The clauses of a message that limit what it looks for.

    Returns:
        Clauses as they stand, in order, each once; key (budget, date, with _min or _max) and value where the
        clause holds one price or date. Those longer than a dozen words limit nothing in particular.

    >>> [one.text for one in find_limits("Find a laptop under $800, no refurbished ones please")]
    ['under $800', 'no refurbished ones']
    >>> [one.text for one in find_limits("any router with four ports that runs without a fan, budget 90 €")]
    ['with four ports', 'that runs without a fan', 'budget 90 €']
    >>> find_limits("How much is the Lenovo?"), find_limits("the LG was 300 € less expensive")
    ([], [])
    """
    text = plain_signs(message[:MESSAGE_CHARS])
    found: list[Limit] = []
    sought = False
    for sentence in _SENTENCE.finditer(text):
        begin = sentence.start() + len(sentence[0]) - len(sentence[0].lstrip())
        body = text[begin : min(begin + _SENTENCE_CHARS, sentence.end())]
        sought = _seeks(body, goes_on=sought)
        if sought:
            spans = (
                " ".join(message[begin + a : begin + b].split()).rstrip(" .,") for a, b in _clauses(body)
            )
            found += [_limit(span) for span in spans if 0 < len(span.split()) <= _MOST_WORDS]
    return list(dict.fromkeys(found))


def _seeks(sentence: str, *, goes_on: bool) -> bool:
    relative = _RELATIVE.search(sentence)
    head = sentence[: relative.start() if relative else None].split(",")[0]
    if _LOOKS.match(sentence):
        return not _is_told(head) and not _WISH_TO_KNOW.search(head)
    if _MANY.match(sentence):
        return not _is_told(sentence)
    starts = re.match(rf"(?:(?:any|every)\w+ )?{_EXCLUDED.pattern}", sentence, re.IGNORECASE) is not None
    if _ASKS.match(sentence):
        one = re.match(r"which [\w-]+ (?!one)", sentence, re.IGNORECASE)
        return bool(one) and not _is_told(sentence) and " than the " not in sentence
    if _is_told(head) or (_STATES.search(head) and not starts):
        return False
    return starts or not (_SUBJECT.match(sentence) or _ORDER_OBJECT.match(sentence))


def _is_told(text: str) -> bool:
    words = re.findall(r"[a-z']+", text.lower())
    return any(
        word in ("was", "were", "did", "had", "been") or (is_past_form(word) and not _is_attribute(words, at))
        for at, word in enumerate(words)
    )


def _is_attribute(words: list[str], at: int) -> bool:
    return at == 0 or words[at - 1] in _ATTRIBUTES


def _clauses(sentence: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    many = _MANY.match(sentence)
    at = 0
    if many:
        end = _end(sentence, many.end())
        found.append((many.start("rest"), end))
        at = end
    while at < len(sentence):
        match = _next(sentence, at)
        if match is None:
            break
        end = match.end() if match.re is _WHOLE else _end(sentence, match.end())
        first = re.compile(r"\s+(?:an?|at)?\s*\S+").match(sentence, match.end())
        other = _next(sentence, first.end()) if first and match.re is not _WHOLE else None
        if other and (match.re is _HAVING or (other.re is _COMPARED and match.re is _COMPARED)):
            end = min(end, other.start())
        held = match.re is not _COMPARED or _LIMIT.search(sentence, match.end(), end)
        manner = match.re is _EXCLUDED and re.match(r" \w+ing\b", sentence[match.end() :])
        if held and not (manner and _ASKS.match(sentence)):
            found.append((match.start(), end))
            at = end
        else:
            at = match.end()
    return sorted([*found, *_fragments(sentence, found)])


def _next(sentence: str, at: int) -> re.Match[str] | None:
    kinds = (_WHOLE, _COMPARED, _EXCLUDED, _HAVING, _RELATIVE)
    matches = [match for kind in kinds if (match := kind.search(sentence, at))]
    return min(matches, key=lambda match: match.start(), default=None)


def _end(sentence: str, at: int) -> int:
    joined = re.compile(r"\s(?:and|but|or)\s").finditer(sentence, at)
    starts = [
        j.start() for j in joined if any(k.match(sentence, j.end()) for k in (_COMPARED, _EXCLUDED, _HAVING))
    ]
    borders = [match.start() for match in [_ENDS.search(sentence, at)] if match]
    return min([*starts, *borders], default=len(sentence))


def _fragments(sentence: str, found: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    for match in re.finditer(r",\s+(?P<part>[^,;?!.\n]+(?:\.\d[^,;?!\n]*)?)", sentence):
        start, end = match.span("part")
        part = match["part"].strip()
        if any(first < end and start < last for first, last in found) or len(part.split()) > _FRAGMENT_WORDS:
            continue
        if _STATES.search(part) or _SUBJECT.match(part) or _ASKS.match(part) or _is_told(part):
            continue
        if not _TALK.match(part) and not part.istitle():
            yield start, start + len(part)


def _limit(span: str) -> Limit:
    claims = [one.claim for one in scan(plain_text(span)) if one.claims]
    priced = [one for one in claims if one.kind == "price"] or [one for one in claims if one.kind == "date"]
    if len(priced) != 1:
        return Limit(span)
    name = {"price": "budget", "date": "date"}[priced[0].kind]
    bound = "_max" if _MOST.search(span) else "_min" if _LEAST.search(span) else ""
    return Limit(span, name + bound, priced[0].value)


def find_counts(message: str, known: Mapping[str, str | int | float]) -> list[Limit]:
    """
    How many are ordered, and what is put in place of a number that holds so far.

    Args:
        message: Any text.
        known: Limits that hold so far, by their keys: "4 not 6" changes the one that is 6.

    >>> [(one.key, one.value) for one in find_counts("Plan the 6 dinners of the week", {})]
    [('count:dinners', 6)]
    >>> [(one.key, one.value) for one in find_counts("4, not 6", {"count:dinners": 6})]
    [('count:dinners', 4)]
    >>> [find_counts(m, {}) for m in ("Does it have 2 USB ports?", "Compare RTX 4050 laptops")]
    [[], []]
    """
    text = plain_text(message[:MESSAGE_CHARS])
    found = []
    for match in _INSTEAD.finditer(text):
        keys = [key for key, value in known.items() if str(value) == match["was"]]
        found += [
            Limit(match[0], key, float(match["value"]) if "." in match["value"] else int(match["value"]))
            for key in keys or ["count"]
        ]
    for one in scan(text):
        if (noun := _counted(one)) and one.amount and one.amount.value and _is_ordered(text[: one.start]):
            found.append(Limit(f"{one.claim.text} {noun}", f"count:{noun}", int(one.amount.value)))
    return found


def _counted(one: Found) -> str:
    amount = one.amount
    if amount is None or amount.value is None or amount.value.denominator != 1 or amount.label:
        return ""
    return amount.noun if amount.counts and amount.noun not in ("nights", "times") else ""


def _is_ordered(before: str) -> bool:
    sentence = re.split(r"[.;?!\n] *", before)[-1]
    return bool(_ORDERED.match(sentence)) and not (
        _ASKS.match(sentence) or _SUBJECT.match(sentence) or _is_told(sentence)
    )
