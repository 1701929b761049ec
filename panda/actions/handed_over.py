"""Documents for a turn: files, standard input and web pages as text, before the turn claims a number."""

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from panda.documents.document_text import HTML, PDF, content_type_of
from panda.documents.json_text import whole_characters
from panda.documents.pdf import has_pdf_reader, read_pdf
from panda.errors import FileFormatError, UsageError
from panda.isolation import WorkerLimits, run_isolated
from panda.models.cl100k import count_tokens
from panda.store.files import store_errors
from panda.store.records import TurnDocument
from panda.store.turn_documents import DocumentText, digest_of, document_name

if TYPE_CHECKING:
    from panda.web.client import WebClient
    from panda.web.page import Page

MAX_BYTES = 20_000_000
"""Size of the largest document that is taken."""
MAX_TEXT_BYTES = 2_000_000
"""Size of the longest text that is read of one."""
MAX_DOCUMENTS = 20
"""Most documents of one turn."""
WAIT_SECONDS = 2.0
"""How long something is waited for before that is told."""
STANDARD_INPUT = "standard input"
_PDF_LIMITS = WorkerLimits(seconds=60, memory_bytes=1_000_000_000)
_UNTIMED = datetime(2000, 1, 1, tzinfo=UTC)  # replaced when the turn claims its number
_URL_SCHEMES = ("http://", "https://")
_TERMINAL_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def gather_documents(
    sources: Sequence[str],
    piped: bytes | None,
    open_web: "Callable[[], WebClient]",
    *,
    tell: Callable[[str], None],
) -> list[DocumentText]:
    """
    Return what is handed over with a query, as text.

    Args:
        sources: Files and URLs in the order of the command line; "-" stands for standard input.
        piped: What standard input holds; it comes last unless *sources* has a place for it. None: nothing.
        open_web: Gives the client that reads pages.
        tell: Is told of a file that is waited for, as a FIFO is until something is written to it.

    Raises:
        UsageError: There are too many, or one is no text, empty or too large.
        FileFormatError: One cannot be read as what it is.
        StoreError: A file cannot be read.
        WebError: A page cannot be had.
    """
    places = list(dict.fromkeys(sources))
    if piped is not None and "-" not in places:
        places.append("-")
    if len(places) > MAX_DOCUMENTS:
        message = f"{len(places)} documents are given, more than the {MAX_DOCUMENTS} that a turn may have"
        raise UsageError(
            message, where="--with", fix="put them into one file, or below knowledge/ of the user"
        )
    documents: list[DocumentText] = []
    for place in places:
        names = [document.name for document in documents]
        if place == "-":
            documents.append(_read_data(piped or b"", STANDARD_INPUT, None, names))
        elif place.lower().startswith(_URL_SCHEMES):
            documents.append(_read_page(place, open_web().fetch(place), names))
        else:
            documents.append(_read_file(place, names, tell))
    return documents


def _read_file(place: str, taken: Sequence[str], tell: Callable[[str], None]) -> DocumentText:
    path = Path(place).expanduser()
    waiting = Timer(WAIT_SECONDS, tell, [f"Waiting for {place}: nothing has been written to it."])
    waiting.daemon = True
    with ExitStack() as stack:
        stack.enter_context(store_errors(path, "read"))
        waiting.start()
        try:
            file = stack.enter_context(path.open("rb"))
            file.peek(1)
        finally:
            waiting.cancel()
        data = file.read(MAX_BYTES + 1)
    return _read_data(data, place, path.name, taken)


def _check_size(data: bytes, source: str) -> None:
    if len(data) > MAX_BYTES:
        message = f"{source} has more than {MAX_BYTES:,} bytes, the most that a document may have"
        raise UsageError(message, where=source, fix="give a part of it, or split it into several files")


def _read_data(data: bytes, source: str, file_name: str | None, taken: Sequence[str]) -> DocumentText:
    """Return the document of some bytes, named by the file that they come from."""
    _check_size(data, source)
    if not data.strip():
        raise UsageError(f"{source} is empty", where=source, fix="give a document that holds text")
    title = file_name or STANDARD_INPUT
    if data.startswith(b"%PDF-"):
        return _document(
            title, source, content_type=PDF, data=data, text=_pdf_text(data, source), taken=taken
        )
    if file_name is not None and content_type_of(file_name, "") == HTML:
        text = _decoded_page(data, source)
    else:
        text = _decoded(data, source)
    content_type = content_type_of(file_name, text)
    if content_type == HTML:
        text = _page_text(_page_of(text, source), source)
    return _document(title, source, content_type=content_type, data=data, text=text, taken=taken)


def _decoded(data: bytes, source: str) -> str:
    """Return a text in UTF-8 or marked UTF-16; UsageError for anything else."""
    charset = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    fix = "give text, Markdown, HTML, JSON, CSV, code or PDF"
    try:
        text = data.decode(charset)
    except UnicodeDecodeError as exc:
        if b"\0" in data[:100_000]:
            raise UsageError(f"{source} is no text", where=source, fix=fix) from exc
        message = f"{source} is not UTF-8: byte {exc.start:,} is 0x{data[exc.start]:02x}"
        raise UsageError(
            message, where=source, fix="convert it first, as iconv -f latin1 -t utf8 does"
        ) from exc
    if "\0" in text:
        raise UsageError(f"{source} is no text: it holds a null byte", where=source, fix=fix)
    return text


def _pdf_text(data: bytes, source: str) -> str:
    if not has_pdf_reader():
        message = f"{source} is a PDF, and the library that reads these is not installed"
        raise UsageError(message, where=source, fix="pip install 'panda-turns[pdf]', or give its text")
    fix = "give its text, as pdftotext or a viewer saves it"
    text = run_isolated(
        partial(_read_pdf, data, source), limits=_PDF_LIMITS, where=source, error=FileFormatError, fix=fix
    )
    if not text.strip():
        raise FileFormatError(f"{source} holds no text: its pages are pictures", where=source, fix=fix)
    return text


def _read_pdf(data: bytes, source: str) -> str:
    try:
        return read_pdf(data)
    except ValueError as exc:
        raise FileFormatError(f"{source} cannot be read: {exc}", where=source, fix="save it anew") from exc


def _decoded_page(data: bytes, source: str) -> str:
    """Return the text of a saved page, in the charset that it names."""
    from panda.web.page_worker import decode_page

    text, _ = decode_page(data, HTML, where=source)
    if "\0" in text:
        raise UsageError(f"{source} is no text", where=source, fix="give an HTML file")
    return text


def _page_of(text: str, source: str) -> "Page":
    from panda.web.page import Page

    return Page(source, source, media_type=HTML, charset=None, text=text, etag=None, last_modified=None)


def _page_text(page: "Page", source: str) -> str:
    """Return what a page says, as Markdown below its title."""
    from panda.web.page_worker import read_page

    extraction = read_page(page)
    head = f"# {extraction.title}\n\n" if extraction.title else ""
    if not extraction.content.strip():
        fix = "open it in a browser and save what it says as text"
        raise FileFormatError(f"{source} says nothing that can be read", where=source, fix=fix)
    return head + extraction.content


def _read_page(url: str, page: "Page", taken: Sequence[str]) -> DocumentText:
    """Return a page as it was fetched; its name is that of its site with the last part of its path."""
    text = page.text or ""
    parts = urlsplit(page.final_url)
    title = "-".join(filter(None, [parts.hostname or "", parts.path.rstrip("/").rpartition("/")[2]]))
    content_type = page.media_type
    if content_type in (HTML, "application/xhtml+xml"):
        return _document(
            title, url, content_type=HTML, data=text.encode(), text=_page_text(page, url), taken=taken
        )
    if not text.strip():
        raise UsageError(f"{url} is empty", where=url, fix="give a page that holds text")
    kind = content_type_of(parts.path.rpartition("/")[2] or None, text)
    return _document(title, url, content_type=kind, data=text.encode(), text=text, taken=taken)


def _plain_text(text: str) -> str:
    """Return a text without terminal colours, null bytes and halves of characters, which no file holds."""
    plain: str = whole_characters(text)
    return _TERMINAL_SEQUENCES.sub("", plain).replace("\0", "")


def _document(
    title: str, source: str, content_type: str, data: bytes, text: str, taken: Sequence[str]
) -> DocumentText:
    text = _plain_text(text)
    encoded = text.encode()
    if len(encoded) > MAX_TEXT_BYTES:
        message = (
            f"{source} has {len(encoded):,} bytes of text, more than the {MAX_TEXT_BYTES:,} that are read"
        )
        raise UsageError(message, where=source, fix="give a part of it, or split it into several files")
    record = TurnDocument(
        name=document_name(title, taken),
        source=source,
        content_type=content_type,
        bytes=len(data),
        sha256=digest_of(data),
        text_sha256=digest_of(encoded),
        tokens=count_tokens(text),
        added_at=_UNTIMED,
    )
    return DocumentText(record, text)
