"""The text of a PDF, page by page. Runs in a worker; pypdf is an extra, `panda-turns[pdf]`."""

from importlib.util import find_spec
from io import BytesIO


def has_pdf_reader() -> bool:
    """Return whether the library that reads a PDF is installed."""
    return find_spec("pypdf") is not None


def read_pdf(data: bytes) -> str:
    """
    Return the text of a PDF as Markdown, a heading for each page that has text; "" if none has.

    Raises:
        ValueError: It is damaged, or wants a password; says so.
    """
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is wrong with it is told by us
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ValueError("it wants a password")
        pages = [page.extract_text().strip() for page in reader.pages]
    except (PyPdfError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ValueError(f"it is damaged: {exc}") from exc
    return "\n\n".join(f"# Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text)
