"""Running text into sentences, without losing a character inside one."""

import re

_NEVER_LAST = frozenset(
    {"e.g", "i.e", "vs", "cf", "approx", "dr", "mr", "mrs", "ms", "prof", "st", "nos", "vol", "fig", "ca"}
)
_MONTHS = frozenset({"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"})
_SOMETIMES_LAST = frozenset(
    {
        "etc",
        "jr",
        "sr",
        "inc",
        "ltd",
        "co",
        "corp",
        "no",
        "al",
        "dept",
        "est",
        "u.s",
        "u.k",
        "a.m",
        "p.m",
        "ph.d",
    }
)
_ABBREVIATIONS = _NEVER_LAST | _MONTHS | _SOMETIMES_LAST
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]+[」』”]*")
_SPAN_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|[。！？]++[」』”]*+")
_LOOK_CHARS = 60
_CITATION = re.compile(
    r"(?:(?<=[.!?,;:)\"”'])|[ \t]+)\[\d{1,3}(?:\s*,\s*\d{1,3})*\](?:[ \t]*\[\d{1,3}\])*(?=[\s.,;:!?)]|$)"
)
_SOURCES_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s*)?[*_]*(?:sources?|source references|references)[*_]*:?[*_]*\s*$", re.I
)
_SOURCE_LINE = re.compile(r"^\s*(?:[-*]\s*)?\[\d{1,3}\]:?\s+\S")


def one_line(text: str) -> str:
    """
    The text with every run of white space made one space.

    >>> one_line("  a\\r\\n\\tb  ")
    'a b'
    """
    return " ".join(text.split())


def shorten(text: str, most_chars: int, mark: str = "…") -> str:
    """
    The text as one line, cut after a word where it is longer, with a mark that counts too.

    >>> shorten("what does\\n it cost?", 13), shorten("what does it cost?", 18), shorten("x" * 30, 5)
    ('what does it…', 'what does it cost?', 'xxxx…')
    """
    line = one_line(text)
    if len(line) <= most_chars:
        return line
    head = line[: most_chars - len(mark)]
    words = head.rpartition(" ")[0] if line[len(head) : len(head) + 1].strip() else head
    return (words or head).rstrip() + mark


def split_sentences(text: str) -> list[str]:
    """
    The sentences of running text, in order.

    Args:
        text: One paragraph; line breaks in it count as spaces.

    Returns:
        Sentences with their end marks, each one line, none empty. Dots inside numbers, URLs, file names,
        abbreviations and initials end none.

    >>> split_sentences("It costs $697.00, e.g. at bestbuy.com. Updated 1.2 hours ago! See https://a.io/x.y?z")
    ['It costs $697.00, e.g. at bestbuy.com.', 'Updated 1.2 hours ago!', 'See https://a.io/x.y?z']
    >>> split_sentences("Dr. J. Smith lives in the U.S. and likes it. So do I")
    ['Dr. J. Smith lives in the U.S. and likes it.', 'So do I']
    >>> split_sentences('He said "no." Then he left.')
    ['He said "no."', 'Then he left.']
    >>> split_sentences("  ")
    []
    """
    line = one_line(text)
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(line):
        if _ends_sentence(line[start : end.start()], end.group(), line[end.end() :].lstrip()):
            sentences.append(line[start : end.end()].strip())
            start = end.end()
    if line[start:].strip():
        sentences.append(line[start:].strip())
    return sentences


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """
    Where the sentences of running text begin and end, for callers that must not change a character.

    Args:
        text: One paragraph, line breaks as they are; of any length, read in linear time.

    Returns:
        Start and end of each sentence, white space around it left out.

    >>> text = "It costs $697.00.\\n Why? See a.io"
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['It costs $697.00.', 'Why?', 'See a.io']
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _SPAN_END.finditer(text):
        before = text[max(start, end.start() - _LOOK_CHARS) : end.start()]
        after = text[end.end() : end.end() + _LOOK_CHARS].lstrip()
        if _ends_sentence(before, end.group(), after):
            spans.append((start, end.end()))
            start = end.end()
    spans.append((start, len(text)))
    trimmed = []
    for first, last in spans:
        inner = text[first:last]
        if inner.strip():
            trimmed.append(
                (first + len(inner) - len(inner.lstrip()), last - len(inner) + len(inner.rstrip()))
            )
    return trimmed


def _ends_sentence(before: str, mark: str, after: str) -> bool:
    if not before.strip() or not after:
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return not after[0].islower() or mark[0] not in ".…"
    word = re.split(r"[\s(\[\"“]", before)[-1].lower()
    if word in _NEVER_LAST or (len(word) == 1 and word.isalpha() and word != "i"):
        return False
    if word in _ABBREVIATIONS:
        return after[0].isupper()
    if word.isdigit() and not before[: -len(word)].strip():
        return False  # "1. First" is the number of a list item
    return not after[0].islower()


def strip_citations(text: str) -> str:
    """
    An answer without its marks like [1] and without its list of sources.

    Args:
        text: An answer as rendered: sentences with marks, a list of sources at the end or none.

    Returns:
        The text with marks and source lists taken out, everything else as it was.

    >>> strip_citations("It costs $697.00 [1][2].\\n\\nSources:\\n- [1] turn:811\\n- [2] visit:a\\n")
    'It costs $697.00.\\n'
    >>> strip_citations("Sources:\\n- my aunt\\n- the library\\n")
    'Sources:\\n- my aunt\\n- the library\\n'
    >>> strip_citations("Use items[1] here.")
    'Use items[1] here.'
    """
    kept: list[str] = []
    heading: list[str] = []  # with the blank lines below it: only above a list of sources it is theirs
    in_sources = False
    for line in text.split("\n"):
        if _SOURCE_LINE.match(line):
            heading, in_sources = [], True
        elif _SOURCES_HEADING.match(line):
            kept += heading
            heading, in_sources = [line], False
        elif not line.strip() and (heading or in_sources):
            heading += [line] if heading else []
        else:
            kept += [*heading, _CITATION.sub("", line)]
            heading, in_sources = [], False
    kept += heading
    stripped = "\n".join(kept).rstrip("\n")
    return stripped + "\n" if text.endswith("\n") and stripped else stripped
