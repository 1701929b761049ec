"""Whether a message wants the whole of a list, or which step of one. Pure."""

import re
from dataclasses import dataclass

from panda.language.lexicon import NOT_COUNTED
from panda.language.stemming import split_words, stem
from panda.language.text_front import plain_signs
from panda.language.word_lists import read_groups

_WHOLE = re.compile(
    r"""\b(?:all(?!\ (?:right|day|night|week|year|time|the\ time|along)\b)
      | every(?!\ (?:day|night|week|month|year|time|morning|evening|so)\b)
      | the\ (?:whole|entire|full|complete) | each\ of | one\ by\ one | step\ by\ step | everything)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_WHOLE = re.compile(r"\b(?:at|after|above|not|that'?s|is that|in) all\b", re.IGNORECASE)
_LIST = re.compile(r"\bon (?:the|my|our|your) (?:[\w'’-]+ )?list\b", re.IGNORECASE)
_STEPS = re.compile(
    r"^(?:(?:and|so|but|then) )?"
    r"(?:how (?:do|does|can|should|to)|what (?:do|should|must|can) (?:I|we|you) do)\b",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"^\W*(?:(?:and|so|but|then) )?(?:which|what)(?P<be> are| were)?(?P<words>(?: [\w'’-]+){1,5})",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"^(?:is|are|was|were|do|does|did|has|have|can|could|will|would|should|may)\b", re.IGNORECASE
)
_BEHIND_KIND = frozenset(
    """
    are were do does did have has had can could will would should must shall might i we you they he she
    of there left
    """.split()  # noqa: SIM905
)
_BEFORE_ORDERS = frozenset("please now ok okay so and then can could would you just again".split())  # noqa: SIM905
_FROM_WHERE = frozenset("i we you he she they that which who from in on at for of with by about".split())  # noqa: SIM905
_PEOPLE = frozenset(("people", "men", "women", "children", "feet", "teeth"))
_STEP_WORDS = frozenset(
    "step point number again please tell show say read ok okay what s comes come next previous final".split()  # noqa: SIM905
)
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()  # noqa: SIM905
_NO_PLURALS = frozenset(("news", "always", "has", "was", "does", "goes"))


def wants_whole(query: str) -> bool:
    """
    Whether a query asks for all there are of a kind, or all steps, not for one or what sets some apart.

    >>> asked = ("Which hotels did friends recommend?", "how do we put up the tent", "every step pls")
    >>> [wants_whole(query) for query in asked]
    [True, True, True]
    >>> asked = ("Which hotel has a pool?", "Is all packed?", "which fruit makes her ill?", "not at all")
    >>> [wants_whole(query) for query in asked]
    [False, False, False, False]
    """
    text = plain_signs(query).strip()
    if _YES_OR_NO.match(text):
        return False
    if _WHOLE.search(_NOT_WHOLE.sub("", text)) or _LIST.search(text) or _STEPS.match(text):
        return True
    if any(map(_is_plural, things_to_show(text))):
        return True
    kind = _KIND.match(text)
    words = kind["words"].lower().split() if kind else []
    for word, following in zip(words, [*words[1:], None], strict=False):
        if word in _BEHIND_KIND and word != "of":
            return False
        if _is_plural(word) and kind:
            return bool(kind["be"]) or following is None or following in _BEHIND_KIND
    return False


def things_to_show(query: str) -> list[str]:
    """
    The words for what a message orders to show, up to where that comes from; none if it orders nothing such.

    >>> things_to_show("please show me the copy shops I wrote down"), things_to_show("what do we have")
    (['me', 'the', 'copy', 'shops'], [])
    """
    words = [word.lower() for word in split_words(plain_signs(query))]
    while words and words[0] in _BEFORE_ORDERS:
        words = words[1:]
    verbs = read_groups("narrowing_words.txt")["shows"].split()
    behind = words[1:] if words and words[0] in verbs else []
    end = next((at for at, word in enumerate(behind) if word in _FROM_WHERE), len(behind))
    return behind[:end]


def _is_plural(word: str) -> bool:
    ends = word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return word in _PEOPLE or (ends and word not in _NO_PLURALS and stem(word) != word)


@dataclass(frozen=True)
class StepAsked:
    """A step that a query asks for."""

    place: int
    """Its number, or how many steps behind the last one that was quoted; -1 is the last of all."""
    is_relative: bool
    """Whether it is counted from there."""
    alone: bool
    """Whether the query names nothing else, so that it goes on with the steps at hand."""

    def number(self, quoted: int, count: int) -> int:
        """Its number, where step *quoted* was quoted last, of *count*."""
        if self.is_relative:
            return quoted + self.place
        return count if self.place < 0 else self.place


def asked_step(query: str) -> StepAsked | None:
    """
    The step that a query asks for, by its number or its place.

    >>> asked_step("and what is step 3?"), asked_step("3 eggs?")
    (StepAsked(place=3, is_relative=False, alone=True), None)
    >>> [asked_step(text).place for text in ("and the next step?", "the step before that", "the second step")]
    [1, -1, 2]
    >>> asked_step("read me step 4 of the muffins").alone, asked_step("who comes next week?")
    (False, None)
    """
    words = [word.lower() for word in split_words(query)]
    named = [word for word in words if word not in NOT_COUNTED and word not in _STEP_WORDS]
    numbers = [int(word) for word in named if word.isascii() and word.isdigit() and len(word) < 5]
    ordinals = [_ORDINALS.index(word) + 1 for word in words if word in _ORDINALS]
    alone = all(word.isdigit() or word in _ORDINALS for word in named)
    if "step" in words or "point" in words:
        if len(numbers) == 1 or len(ordinals) == 1:
            return StepAsked((numbers or ordinals)[0], False, alone)
        if "next" in words or "after" in words:
            return StepAsked(1, True, alone)
        if "before" in words or "previous" in words:
            return StepAsked(-1, True, alone)
        return StepAsked(-1, False, alone) if "last" in words or "final" in words else None
    return StepAsked(1, True, True) if "next" in words and alone and not numbers else None
