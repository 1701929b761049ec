"""What a query asks the index for: its words without the commonest ones. Pure."""

import re
from calendar import month_name

from panda.documents.sentences import split_sentences
from panda.language.lexicon import FUNCTION_WORDS
from panda.language.stemming import split_words

_ADDRESS = re.compile(r"\bhttps?://(?:[^\s/@]*@)?(?P<host>[^\s/?#]*)(?P<path>[^\s?#]*)\S*", re.IGNORECASE)
_PAGE_KIND = re.compile(r"\.(?:html?|php|aspx?|jsp)$", re.IGNORECASE)
_MONTHS = tuple(month_name[number].lower() for number in range(1, 13))


def find_query_words(query: str) -> list[str]:
    """
    The words to search for, each once, in order.

    Args:
        query: Any text.

    Returns:
        Words and numbers without the commonest words; if nothing else is there, those.

    >>> find_query_words("What is the price of the RTX 4050 laptop with 16GB?")
    ['price', 'RTX', '4050', 'laptop', '16GB']
    >>> find_query_words("who are you?")
    ['who', 'are', 'you']
    >>> find_query_words("Read https://www.shop.example/tents/blue.html?from=mail")
    ['Read', 'shop', 'tents', 'blue']
    """
    words = list(dict.fromkeys(split_words(_ADDRESS.sub(_telling_words, query))))
    return [word for word in words if word.lower() not in FUNCTION_WORDS] or words


def _telling_words(address: re.Match[str]) -> str:
    """What an address says of its page: its host without www and ending, its path; no number of a machine."""
    host = address["host"].lower().partition(":")[0].removeprefix("www.").rpartition(".")[0]
    named = "" if host.replace(".", "").isdigit() else host.replace(".", " ")
    return f"{named} {_PAGE_KIND.sub('', address['path'])}"


def find_names(query: str) -> list[str]:
    """
    Capitalised words that may name people or things: not the first word of a sentence if it is common.

    >>> find_names("When did Caroline meet the Lenovo people in May?")
    ['Caroline', 'Lenovo']
    """
    words = re.findall(r"\b[A-Z][\w'’]*[a-z][\w]*", query)
    names = (re.sub(r"['’]s$", "", word) for word in words)
    return [name for name in dict.fromkeys(names) if name.lower() not in (*FUNCTION_WORDS, *_MONTHS)]


def find_capitalised(query: str) -> set[str]:
    """
    Capitalised words in small letters, "HP" too: neither the first of a sentence nor the commonest words.

    >>> sorted(find_capitalised("What does the HP Victus 15 cost?"))
    ['hp', 'victus']
    >>> find_capitalised("Thanks. Is the laptop that I saw still in stock?")
    set()
    """
    words = [word for sentence in split_sentences(query) for word in split_words(sentence)[1:]]
    return {word.lower() for word in words if word[0].isupper() and word.lower() not in FUNCTION_WORDS}
