"""Text from the command line or from stdin, checked to be text."""

from typing import BinaryIO

from panda.errors import UsageError


def read_argument(argument: str, stdin: BinaryIO) -> str:
    r"""
    An argument that is a text, or `-` for all of stdin.

    Args:
        argument: As given on the command line; bytes that are not UTF-8 came in as halves of characters.
        stdin: Where `-` reads, to its end.

    Raises:
        UsageError: The bytes are not UTF-8.

    >>> from io import BytesIO
    >>> read_argument("-", BytesIO(b"what\n")), read_argument("why", BytesIO(b""))
    ('what\n', 'why')
    """
    if argument == "-":
        return _decoded(stdin.read(), "stdin")
    return _decoded(argument.encode("utf-8", errors="surrogateescape"), "command line")


def read_lines(stdin: BinaryIO) -> list[str]:
    r"""
    The lines of stdin, without their ends.

    Raises:
        UsageError: The bytes are not UTF-8.

    >>> from io import BytesIO
    >>> read_lines(BytesIO(b"a\nb\n"))
    ['a', 'b']
    """
    lines = _decoded(stdin.read(), "stdin").split("\n")
    return lines if lines[-1] else lines[:-1]


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        message = f"not UTF-8: byte {exc.start} is 0x{data[exc.start]:02x}"
        raise UsageError(message, where=where, fix="convert the text to UTF-8 first") from exc
