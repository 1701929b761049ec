"""What a user's own sentences in some turns teach: found by rules, chosen by a recipe."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from panda.documents.questions import is_question
from panda.documents.sentences import one_line
from panda.recipes.choices import Option
from panda.tools.contract import Ask
from panda.tools.statements import find_statements, split_clauses

_MOST = 10
_FOREIGN = re.compile(r"(?ms)^```.*?(?:^```|\Z)|^>.*?$")
_DOING = re.compile(
    r"^(?:i|we)(?:['’]m|['’]ve| am| are| have| had| was)? "
    r"(?:(?:also|always|usually|often|mostly|mainly|really|still|now|already|just|recently|currently) )*"
    r"(?P<verb>[a-z]+) (?P<rest>.+)$",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"want|need|would|wonder|think|guess|mean|hope|ask|see|know|thank|look|try|trying|got|going|can|could|should|"
    r"will|do|did|does|don|didn|not|never|sa(?:y|id)|tell|told|hear|heard|read|thought|forgot|remember|wish|must|"
    r"might|may|believe|understand|am|is|was|been|an?|the|to|in|on|at|so|very|too|like|tired|"
    r"(?:want|need|look|ask|tell|try|think)(?:ed|ing)",
    re.IGNORECASE,
)
_SMALL = re.compile(r"an?|the|my|our|his|her|their|in|at|to|on|for|with|of|by|from|every|each|some")
_COUNTED = re.compile(
    r"an?|the|my|our|some|no|many|several|few|two|three|four|five|six|seven|eight|nine|ten", re.IGNORECASE
)
_HAVING = re.compile(r"(?:i|we)(?: (?:also|still|now|already))? have\b", re.IGNORECASE)
_NAME_ENDS = re.compile(
    r"[^\w\s'’-]|\s(?:in|at|to|on|for|with|of|by|from|and|or|that|which|who|every|each|about|yesterday|today|last|this|next)\b"
)


@dataclass(frozen=True)
class SaidTurn:
    """A saved turn, as far as it can teach something."""

    number: int
    """Its number."""
    query: str
    """What the user said."""
    answer: str
    """What came back."""


@dataclass(frozen=True)
class Candidate:
    """One statement of the user about himself."""

    relation: str
    """Key, of the user's words."""
    value: str
    """Verbatim."""
    text: str
    """The sentence, one line."""
    turn: int
    """Turn in which it was said."""
    sure: bool
    """Whether rules are sure that it is meant to last."""


def find_candidates(turns: Sequence[SaidTurn]) -> list[Candidate]:
    """
    What the user states of himself: no question, nothing quoted, nothing that an answer had said before.

    Args:
        turns: Oldest first.

    Returns:
        The newest ten, oldest first; what is said twice stands where it was said first.

    >>> turns = [SaidTurn(4, "I play the cello in a trio. Which strings are good?", "You prefer steel.")]
    >>> [(one.relation, one.value) for one in find_candidates(turns)]
    [('play_cello', 'the cello in a trio')]
    """
    found: dict[tuple[str, str], Candidate] = {}
    recalled = ""
    for turn in turns:
        for sentence in split_clauses(_FOREIGN.sub("", turn.query)):
            text = one_line(sentence)
            one = None if text.rstrip(" .!").lower() in recalled else _candidate(text, turn.number)
            if one is not None:
                found.setdefault((one.relation, one.value.lower()), one)
        recalled += "\n" + one_line(turn.answer).lower()
    return list(found.values())[-_MOST:]


def _candidate(text: str, turn: int) -> Candidate | None:
    if is_question(text):
        return None
    for one in find_statements(text):
        return Candidate(one.relation, one.value, text, turn, one.sure) if one.entity is None else None
    match = _DOING.match(text.rstrip(" .!…"))
    if match is None:
        return None
    verb, rest = match["verb"].lower(), match["rest"]
    if _COUNTED.fullmatch(verb) and _HAVING.match(text):
        verb, rest = "have", f"{match['verb']} {rest}"
    content = None if _TALK.fullmatch(verb) else _named(rest.lower())
    return Candidate(f"{verb}_{content}", rest, text, turn, False) if content else None


def _named(words: str) -> str | None:
    """The noun that words begin with: of "an old Volvo V70 with a dent" the last word before "with"."""
    found = re.findall(r"[^\W_]+", words)
    begin = next((word for word in found if not _SMALL.fullmatch(word)), None)
    if begin is None:
        return None
    first = _NAME_ENDS.split(words[words.index(begin) :], 1)[0]
    return str(re.findall(r"[^\W_]+", first)[-1])


def choose_facts(
    candidates: Sequence[Candidate],
    turns: Sequence[SaidTurn],
    ask: Ask,
    lasts: Callable[[Candidate], bool],
    warn: Callable[[str], None],
) -> list[Candidate]:
    """
    The candidates that are worth proposing.

    Args:
        candidates: As find_candidates gave them; at least one.
        turns: The turns.
        ask: Asks the recipe.
        lasts: Whether a candidate is meant to last, for models that only choose.
        warn: Told of what was refused.

    Returns:
        Those that were chosen, in the order of the reply; key and value as a model that writes has worded
        them, if the value stands in the sentence.

    Raises:
        HaltError: A model call failed.
    """
    known = {f"s{n}": one for n, one in enumerate(candidates, 1)}
    options = [
        Option(id_, one.text, (f"turn:{one.turn}",), 1.0 if lasts(one) else 0.0) for id_, one in known.items()
    ]
    said = "\n".join(f"Turn {turn.number}: {one_line(turn.query)}" for turn in turns)
    values = ask("memory_reflect", options={"keep": options}, extra={"turns": said})
    found: dict[str, Candidate] = {}
    for fact in values["facts"]:
        one = known[fact["keep"]]
        value = one_line(fact.get("value", one.value))
        if value.lower() not in one.text.lower():
            warn(f"not proposed: {value!r} does not stand in turn {one.turn}")
            continue
        found.setdefault(fact["keep"], replace(one, relation=fact.get("key", one.relation), value=value))
    return list(found.values())
