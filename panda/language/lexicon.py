"""Which words of English are ordinary, and which only hold a sentence together."""

from functools import cache
from pathlib import Path

from panda.language.stemming import stem

FUNCTION_WORDS = frozenset(
    """
    a about also am an and any are as at be been being but by can could d did do does doing don for from had
    has have having he her here him his how i if in into is it its just ll m many may me might more most much
    my no not of on or our re s shall she should so some t than that the their them then there these they this
    those to us ve very was we were what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a hundred words are easier to read so
)
"""The commonest words: a search looks for others, and none of them is what a number counts."""
_BESIDE_NUMBERS = frozenset(
    """
    above across after again ago all almost along already altogether among another apart apiece approximately
    around available average away back because before behind below beneath beside besides between beyond both
    cannot cheaper costs cost daily down during each either else even ever every except extra fewer first
    further gets goes hence however hourly inside instead last late later least left less like mine monthly
    must near nearly neither never next nightly nor now off often old once one ones only onto onwards other
    out outside over own per plus remaining same since still such through thus together too total toward
    towards under unless until up upon via weekly well whereas whether while within without worth yearly yet
    """.split()  # noqa: SIM905
)
NOT_COUNTED = FUNCTION_WORDS | _BESIDE_NUMBERS
"""Words that end the run of words behind a number: none of them is, or leads to, what is counted."""
LABELS = frozenset(
    """
    aisle apartment box building bus carriage chapter class coach day desk episode exit figure flat flight
    floor gate grade highway house item level line lot number page part platform question room route row
    season seat section shelf size slide stall step suite table track train tram turn type unit
    volume week zone
    """.split()  # noqa: SIM905
)
"""Words that a number behind them only tells apart: "room 12" is no twelve of anything."""
_HONORIFICS = frozenset("dr mr mrs ms prof st sir madam mx".split())  # noqa: SIM905
_ACRONYMS = frozenset(
    """
    ac ai am api atm bc bce ce ceo cfo cpu cto css csv dc diy dna dvd eta etc ev faq fm fps fyi gdp
    gmt gpa gps gpu hd hdd hdmi hr html http https id ids it json lan lcd led mba mp3 mpg nfc ok oled os pc
    pcs pdf phd pin pm ppm ps psi pto qr ram rgb rna rpm rsvp sim sms sql ssd svg tba tbd tv tvs ui un
    url urls usb utc uv ux vat vpn vs wc wi fi wifi xl xml yaml
    """.split()  # noqa: SIM905
)
"""Short forms of kinds of things, units and places that everybody writes; none names one maker or person."""
_WORDS = Path(__file__).with_name("ordinary_words.txt")


@cache
def _stems() -> frozenset[str]:
    return frozenset(_WORDS.read_text(encoding="ascii").split())


@cache
def is_ordinary(word: str) -> bool:
    """
    Whether an English word is written small when it stands within a sentence.

    The list beside this file was drawn from two tokenizers' vocabularies: words that occur in small letters
    more often than with a capital (docs/decisions/0014).

    Args:
        word: One word, in any case; what is not English is not ordinary.

    >>> [word for word in ("Breakfast", "Currently", "Dell", "Lisbon", "Booked") if not is_ordinary(word)]
    ['Dell', 'Lisbon']
    """
    small = word.lower().partition("'")[0]
    if not (small.isascii() and small.isalpha()):
        return False
    if len(small) == 1 or small in NOT_COUNTED or small in _HONORIFICS or stem(small) in _stems():
        return True
    base = small.removesuffix("ly")  # an adverb is as ordinary as what it is made of; "Waverly" is none
    return base != small and len(base) > 4 and not base.endswith("er") and stem(base) in _stems()


def is_acronym(word: str) -> bool:
    """
    Whether capitals stand for a kind of thing, not for a name.

    >>> is_acronym("RAM"), is_acronym("IBM")
    (True, False)
    """
    return word.lower() in _ACRONYMS or word.lower() in FUNCTION_WORDS


def is_honorific(word: str) -> bool:
    """Whether a word is a title before a name, as "Dr"."""
    return word.lower().rstrip(".") in _HONORIFICS
