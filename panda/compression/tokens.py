"""Budget tokens: the unit of every token budget in recipes and sections."""

from panda.models.cl100k import count_cl100k


def count_tokens(text: str) -> int:
    """
    Length of a text in budget tokens, which are tiktoken's cl100k_base.

    Args:
        text: Any text. May be empty.

    Raises:
        ModelFileError: The vocabulary is missing or not the known one.

    Source:
        S3 §21.1.

    >>> count_tokens("")
    0
    >>> count_tokens("hello world")
    2
    """
    return count_cl100k(text)
