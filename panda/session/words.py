"""What a query says of the conversation itself: agreement, exclusion, a new start, looking back. Pure."""

import re

from panda.language.stemming import split_terms

_YES = re.compile(
    r"^(?:(?:ok(?:ay)?|well|great|perfect|fine|good|thanks|thank you|please)[,.! ]+)*"
    r"(?:yes|yep|yeah|yup|sure|ok(?:ay)?|agreed|correct|right|exactly|absolutely|definitely|of course|"
    r"go ahead|go for it|do (?:it|that|so)|please do|sounds? (?:good|great|fine)|looks? (?:good|great|fine)|"
    r"perfect|great|fine|let'?s do (?:it|that)|make it so|proceed|confirm(?:ed)?|save it|"
    r"no problem|no worries|that works|works for me)\b",
    re.IGNORECASE,
)
_NO = re.compile(r"^(?:no|nope|nah|not (?:yet|now|that)|don'?t|rather not|cancel|stop)\b", re.IGNORECASE)
_IDIOMS = re.compile(
    r"\bno (?:problems?|worries|worry|doubt|idea|need|rush|hurry|matter|thanks?|thank you|thx|one|way|"
    r"longer|more questions?|questions?|wonder|kidding|big deal|clue|pressure|stress|offen[cs]e)\b|"
    r"\bnot (?:a problem|an issue|sure|only|yet|bad|really|at all|too bad)\b|"
    r"\bwithout (?:a )?(?:doubt|question|fail)\b|"
    r"\bnever ?mind\b",
    re.IGNORECASE,
)
_EXCLUDE = re.compile(
    r"\b(?P<demote>no more|no|without|not|nothing with|anything but|except(?: for)?|excluding|exclude|avoid|"
    r"skip|leave out|rule out|less|(?:i )?(?:don'?t|do not) (?:want|like|need)|i (?:hate|dislike)|"
    r"(?:i'?m |we'?re )?not (?:interested in|into|keen on)|instead of|rather than|other than)\s+"
    r"(?P<what>[^,.;:!?\n]+)|"
    r"\b(?P<drop>forget(?: about)?|drop|remove|delete|get rid of|discard|scrap|throw out|take out|"
    r"cross off)\s+(?P<gone>[^,.;:!?\n]+)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:is|are|was|were|does|do|did|has|have|why|how|what|when|where|who|which)\b", re.IGNORECASE
)
_KEEP = re.compile(
    r"\b(?:keep|hold on to|stay with|stick with|don'?t (?:forget|drop|lose)|remember|save|bookmark|"
    r"still (?:want|like|considering|interested in))\s+(?P<what>[^,.;:!?\n]+)",
    re.IGNORECASE,
)
_AFRESH = re.compile(
    r"\b(?:start(?:ing)? (?:all )?over|start (?:afresh|again from scratch|from scratch)|"
    r"(?:forget|drop|clear|scrap|reset|discard) (?:it all|all(?: of (?:it|that|them|this))?|everything|"
    r"(?:the|all|this) (?:list|results?|options?|context))|fresh start|clean slate|"
    r"let'?s begin again|wipe (?:it|everything))\b",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:what (?:did|have|had|were|was) (?:we|you|i)\b.*\b(?:do|done|did|decide|decided|discuss|"
    r"discussed|say|said|talk|talked|speak|spoken|agree|agreed|cover|covered|find|found|save|saved|pick|"
    r"picked|doing)|"
    r"so far|recap|summar(?:y|i[sz]e)|remind me what|where were we|how did (?:we|it|that) go|"
    r"look(?:ing)? back)\b",
    re.IGNORECASE,
)
_OF_THE_SESSION = frozenset(
    split_terms(
        "what who how where when which did do does done have has had were was are is we you i us me my our "
        "your the a "
        "an of in on to at and or so far it all everything anything else already today now just this that "
        "these until "
        "up yet before earlier session sessions conversation chat talk talked talking discussion discuss "
        "discussed say "
        "said saying tell told mention mentioned speak spoke ask asked cover covered go gone over through "
        "decide "
        "decided find found agree agreed recap summary summarise summarize summarised summarized give "
        "short quick "
        "brief briefly please can could would remind things thing stuff about with together look looking "
        "back doing "
        "last first again there left off"
    )
)
"""Terms of a query that asks for the conversation as a whole, and for nothing else."""
_AGAIN = re.compile(
    r"\b(?:show|read|repeat|print|display|quote|see|give me|bring (?:up|back)|open|what (?:was|did|does))\b"
    r"[^.?!]*\b(?:again|once more|(?:the|that|my|your) (?:[\w-]+ )?"
    r"(?:draft|e-?mail|letter|report|plan|list|post|text|poem|content))\b",
    re.IGNORECASE,
)
_MAKES = re.compile(
    r"\b(?:write|rewrite|generate|make|create|compose|another|new|different)\b", re.IGNORECASE
)
_NARROW = re.compile(
    r"\b(?:only|just the|cheaper|cheapest|lighter|smaller|bigger|larger|faster|better|under|below|at most|"
    r"less than|more than|over|above|with(?:out)?|instead|rather|narrow|shortlist|between|compare|which of|"
    r"the (?:first|second|third|fourth|fifth|last)|one of (?:them|these|those))\b",
    re.IGNORECASE,
)
_DONE = (
    r"(?:saved|stored|created|added|deleted|removed|updated|changed|remembered|recorded|booked|ordered|sent|"
    r"scheduled|cancell?ed|written|wrote|edited|fixed)"
)
_CLAIMS_DONE = re.compile(
    rf"\b(?:I|we)(?:'ve|’ve| have)?(?: just| now| already| also)? {_DONE}\b|"
    rf"\b(?:has|have) (?:now |just |already )?been {_DONE}\b|\b(?:is|are) now {_DONE}\b",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|welcome(?: back)?|greetings|howdy|good (?:morning|afternoon|evening|day))\b"
    r"[^.!?\n]{0,40}?(?:[.!?]+|,|$)\s*",
    re.IGNORECASE,
)


def agrees(query: str) -> bool:
    """
    Whether a query begins by agreeing.

    >>> agrees("yes, but 4 not 6"), agrees("no problem, save it"), agrees("no cod"), agrees("yesterday")
    (True, True, False, False)
    """
    return bool(_YES.match(query.strip()))


def refuses(query: str) -> bool:
    """
    Whether a query begins by declining.

    >>> refuses("No, leave it."), refuses("no problem, save it")
    (True, False)
    """
    text = query.strip()
    return bool(_NO.match(text)) and not agrees(text)


def excluded_words(query: str) -> list[tuple[str, str, str]]:
    """
    What a query excludes.

    Args:
        query: Any text.

    Returns:
        ("demote" or "drop", the words excluded, the clause as it stands), in order.

    >>> excluded_words("Something light, no cod please")
    [('demote', 'cod please', 'no cod please')]
    >>> excluded_words("no problem, save it"), excluded_words("Why is the LOQ not in stock?")
    ([], [])
    """
    found = []
    asks = bool(_ASKS.match(query.strip()))
    for match in _EXCLUDE.finditer(_IDIOMS.sub(" ", query)):
        if asks and (match["demote"] or "").lower() in ("no", "not", "without", "less"):
            continue
        action = "demote" if match["demote"] else "drop"
        found.append((action, (match["what"] or match["gone"]).strip(), match.group(0).strip()))
    return found


def without_exclusions(text: str) -> str:
    """
    A text without what it excludes.

    >>> without_exclusions("Plan dinner without cod, with rice")
    'Plan dinner , with rice'
    """
    return _EXCLUDE.sub("", text)


def kept_words(query: str) -> list[tuple[str, str]]:
    """
    What a query wants to keep: the words, and the clause as it stands.

    >>> kept_words("keep the salmon, drop the rest")
    [('the salmon', 'keep the salmon')]
    """
    return [(match["what"].strip(), match.group(0).strip()) for match in _KEEP.finditer(query)]


def starts_over(query: str) -> str | None:
    """
    The words that clear the table; None if there are none.

    >>> starts_over("ok, let's start over"), starts_over("start the car")
    ('start over', None)
    """
    match = _AFRESH.search(query)
    return match.group(0) if match else None


def looks_back(query: str) -> bool:
    """
    Whether a query asks what happened in the session.

    >>> looks_back("what did we do?"), looks_back("what does it cost?")
    (True, False)
    """
    return bool(_BACK.search(query))


def recaps(query: str) -> bool:
    """
    Whether a query asks for what the whole session was about, not for one matter of it.

    >>> [recaps(said) for said in ("What did we do?", "Recap, please.", "What have we talked about so far?")]
    [True, True, True]
    >>> recaps("What did we say about the hotel?"), recaps("What does it cost?")
    (False, False)
    """
    return looks_back(query) and set(split_terms(query)) <= _OF_THE_SESSION


def asks_again(query: str) -> bool:
    """
    Whether a query asks to see something that was written before, and not to have it written anew.

    >>> [asks_again(said) for said in ("Show me the draft again.", "Write the letter again", "Is it cheap?")]
    [True, False, False]
    """
    return bool(_AGAIN.search(query)) and not _MAKES.search(query)


def narrows(query: str) -> bool:
    """
    Whether a query narrows what was on the table.

    >>> narrows("only the ones under $500"), narrows("find me laptops")
    (True, False)
    """
    return bool(_NARROW.search(query))


def without_greeting(text: str) -> str:
    """
    A reply without the greeting that it begins with.

    >>> without_greeting("Hello again! The LOQ costs $697."), without_greeting("History is long.")
    ('The LOQ costs $697.', 'History is long.')
    """
    return _GREETING.sub("", text.lstrip(), count=1)


def claims_done(text: str) -> bool:
    """
    Whether a text says that something was just saved, made, changed or sent.

    >>> claims_done("I've saved your budget."), claims_done("The budget is $900.")
    (True, False)
    """
    return bool(_CLAIMS_DONE.search(text))


def greets(text: str) -> bool:
    """
    Whether a reply begins with a greeting.

    >>> greets("Hello. Ask about your notes."), greets("Highway 61")
    (True, False)
    """
    return bool(_GREETING.match(text.lstrip()))
