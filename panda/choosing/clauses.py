"""The clauses of a message as options: which of them ask, order or tell is chosen of each."""

from panda.choosing.decision import Option
from panda.documents.text import shorten
from panda.language.sentences import split_sentences
from panda.language.statements import split_clauses

_MOST, _SHOWN_CHARS = 12, 80


def clause_options(query: str) -> list[Option]:
    """
    The clauses of a message in order, each once; one that is a part of its sentence has that as title.

    >>> [(one.text, one.title) for one in clause_options("I am 9, my dog is 7. Hi")]
    [('I am 9', 'I am 9, my dog is 7.'), ('my dog is 7.', 'I am 9, my dog is 7.'), ('Hi', '')]
    """
    sentences = {part: one for one in split_sentences(query) for part in split_clauses([one])}
    return [
        Option(f"c{n}", text, title="" if text == sentence else sentence, shown=shorten(text, _SHOWN_CHARS))
        for n, (text, sentence) in enumerate(list(sentences.items())[:_MOST], 1)
    ]
