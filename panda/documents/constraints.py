"""Constraints that a query states in so many words. Pure."""

import re

_COMPARED = "|".join((
    r"(?:no |not )?(?:less|fewer|more|later|\w{3,}er) than", "at least", "at most", "up to", "under", "below",
    "over", "above", r"max(?:imum)?\b(?: of)?", r"min(?:imum)?\b(?: of)?", "between", "within", "around",
    r"from (?=\S*\d)", "before", "after", "by", "until", "since",
))  # fmt: skip
"""Beginnings that limit if an amount or a time follows."""
_EXCLUDED = "|".join((
    "without", "except(?: for)?", "excluding", "including", "avoid(?:ing)?", "(?:any|every|no)thing but",
    "nothing (?:with|from)", "only", "must(?:n't| not)? (?:have|be|include)",
    "(?:has|have) to (?:be|fit|have)", r"no(?! longer|t\b|body| one| idea| doubt)", "not(?! sure| only)",
    "never", "don't want",
))  # fmt: skip
"""Beginnings that limit if something is asked for."""
_HAVING = (
    r"(?<!wrong )(?<!help )(?<!problem )(?<!deal )with"
    r"(?! (?:the|my|your|his|her|its|our|their|me|us|you|it|that|this|them|him)\b)"
)
"""What a thing that is looked for must have."""
_STARTS = re.compile(rf"(?<![\w-])(?:{_COMPARED}|{_EXCLUDED}|{_HAVING})(?![\w-])", re.IGNORECASE)
_IS_COMPARED = re.compile(rf"(?:{_COMPARED})(?![\w-])", re.IGNORECASE)
_NUMBER = r"[$€£]?\d[\d.,:]*"
_WHOLE = re.compile(
    rf"(?<![\w.])(?:{_NUMBER}(?: ?[%a-z€$£]+)? (?:at (?:most|least)|or (?:less|more|cheaper)|max(?:imum)?)\b|"
    rf"{_NUMBER} ?(?:to|-|–) ?{_NUMBER} ?[a-z€$£]+|[a-z]+[- ]free\b|[a-z]+ not (?:needed|required|wanted)\b)",
    re.IGNORECASE,
)  # fmt: skip
"""Limits that stand by themselves."""
_END = re.compile(
    rf"[;?!\n]|,(?!\d)|\.(?!\d)|\s(?:and|but|or)\s(?=(?:{_COMPARED}|{_EXCLUDED})(?![\w-]))|"
    r"\s(?:please|thanks?|can you|what can you)\b",
    re.IGNORECASE,
)
_FIRST_WORDS = re.compile(r"\s+(?:an?|at)?\s*\S+")
_LIMIT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty|hundred|thousand|half|"
    r"first|second|third|fourth|noon|midnight|today|tonight|tomorrow|morning|evening|afternoon|night|weekend|"
    r"week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|"
    r"august|budget|september|october|november|december|christmas|easter|spring|summer|autumn|winter)s?\b",
    re.IGNORECASE,
)  # fmt: skip
"""An amount or a time."""
_LOOKS_FOR = re.compile(
    r"(?:(?:can|could|would) you |please )?(?:find|get|buy|order|recommend|suggest|show)\b|"
    r".*\b(?:looking|search(?:ing)?) for\b|what(?:['’]s| is| are) the (?:best|most|[a-z]{3,}est)\b",
    re.IGNORECASE,
)
"""How a sentence begins that looks for a thing."""
_TELLS = re.compile(
    r"(?:what|who|whom|whose|when|where|why|how|which|did|does|do|was|were|is|are|the|my|our|i|we|he|she|it|"
    r"they|there|remember|note)\b(?! (?:want|need|would|can|could|prefer|am looking|must|have to)|['’][md])",
    re.IGNORECASE,
)  # fmt: skip
"""How a sentence begins that asks for a fact or tells one, instead of asking for a thing."""
_MOST_WORDS = 10


def find_constraints(query: str) -> list[str]:
    """
    The clauses of a query that limit what it asks for.

    A comparison counts if it names an amount or a time, an exclusion if the sentence asks for something, and
    what comes with a thing if the sentence looks for that.

    Args:
        query: Any text.

    Returns:
        Clauses as they stand, in order; long ones, which limit nothing in particular, are left out.

    >>> find_constraints("Find a laptop under $800, no refurbished ones please")
    ['under $800', 'no refurbished ones']
    >>> find_constraints("I need a tent lighter than 3 kg and without pegs, 20 to 40 litres")
    ['lighter than 3 kg', 'without pegs', '20 to 40 litres']
    >>> find_constraints("what's the cheapest laptop with nvidia gpu under $800, no refurbished ones")
    ['with nvidia gpu', 'under $800', 'no refurbished ones']
    >>> find_constraints("How much is the Lenovo?"), find_constraints("The cat sleeps under the stairs.")
    ([], [])
    """
    found: list[str] = []
    looks = _LOOKS_FOR.match(query.strip()) is not None
    asks = looks or not _TELLS.match(query.strip())
    at = 0
    while match := _next(query, at):
        end = match.end()
        if match.re is _STARTS:
            end = _end(query, end, is_having=match[0].lower() == "with")
        clause = query[match.start() : end]
        compared = _IS_COMPARED.match(clause)
        counts = looks if match[0].lower() == "with" else asks
        if match.re is _WHOLE or (_LIMIT.search(clause[compared.end() :]) if compared else counts):
            found.append(" ".join(clause.split()).rstrip("."))
            at = end
        else:
            at = match.end()
    return list(dict.fromkeys(c for c in found if 1 < len(c.split()) <= _MOST_WORDS))


def _end(query: str, at: int, *, is_having: bool) -> int:
    """Where a clause ends that has begun before *at*; what a thing has ends where another limit begins."""
    borders = [_END.search(query, at)]
    first = _FIRST_WORDS.match(query, at) if is_having else None
    if first:
        borders.append(_STARTS.search(query, first.end()))
    return min((border.start() for border in borders if border), default=len(query))


def _next(query: str, at: int) -> re.Match[str] | None:
    """The next limit, or the beginning of one."""
    matches = [match for pattern in (_WHOLE, _STARTS) if (match := pattern.search(query, at))]
    return min(matches, key=lambda match: match.start(), default=None)
