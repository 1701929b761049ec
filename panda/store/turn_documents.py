"""The documents of a turn: what was handed over with its query, kept as text beside a manifest of them."""

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from msgspec import structs

from panda.errors import FileFormatError, NotFoundError
from panda.store.files import make_directory, read_text, write_atomic
from panda.store.layout import DOCUMENTS, DOCUMENTS_JSON, TurnPaths
from panda.store.node_id import NodeKind
from panda.store.records import TurnDocument, TurnDocuments, find, save

_NAME_CHARS = 80
_NO_NAME = "document"
_FIX = "restore it, or ask the query as a new turn"


@dataclass(frozen=True)
class DocumentText:
    """A document with the text that was read of it."""

    record: TurnDocument
    text: str

    @property
    def name(self) -> str:
        return self.record.name


def document_name(title: str, taken: Collection[str]) -> str:
    """
    Return a name for a document, by the name of its file or page, that no other one of the turn has.

    >>> document_name("My contract (2026).pdf", ())
    'My-contract-2026-.pdf'
    >>> document_name("notes.md", {"notes.md"}), document_name("../.env", ())
    ('notes-2.md', 'env')
    """
    name = re.sub(r"[^\w.-]+", "-", title).strip("-").lstrip("-.")[-_NAME_CHARS:].lstrip("-.") or _NO_NAME
    files = {other.removesuffix(".txt").casefold() for other in taken}
    stem, dot, suffix = name.rpartition(".") if "." in name else (name, "", "")
    number = 1
    while name.removesuffix(".txt").casefold() in files:
        number += 1
        name = f"{stem}-{number}{dot}{suffix}"
    return name


def document_node(turn: int, name: str) -> str:
    """
    >>> document_node(813, "contract.pdf")
    'document:813/contract.pdf'
    """
    return NodeKind.DOCUMENT.id(f"{turn}/{name}")


def digest_of(data: bytes) -> str:
    """Return the sha256 of some bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write_documents(directory: Path, documents: Sequence[DocumentText], at: datetime) -> None:
    """Write the documents that are handed over at an instant into the directory of a new turn."""
    make_directory(directory / DOCUMENTS)
    records = tuple(structs.replace(document.record, added_at=at) for document in documents)
    for document in documents:
        write_atomic(directory / document.record.file, document.text)
    save(TurnDocuments(documents=records), directory / DOCUMENTS_JSON)


def find_documents(paths: TurnPaths) -> tuple[TurnDocument, ...]:
    """Return the records of a turn's documents, in the order of handing over; () for most turns."""
    record = find(TurnDocuments, paths.directory)
    return record.documents if record else ()


def load_document(paths: TurnPaths, name: str) -> DocumentText:
    """
    Return a document of a turn.

    Raises:
        NotFoundError: The turn has none of that name.
        FileFormatError: Its text is not the one that was handed over.
    """
    for record in find_documents(paths):
        if record.name == name:
            return DocumentText(record, _read_text(paths, record))
    raise NotFoundError(f"the turn has no document {name!r}", where=str(paths / DOCUMENTS_JSON))


def load_documents(paths: TurnPaths) -> list[DocumentText]:
    """Return all documents of a turn, in the order of handing over (raises as load_document)."""
    return [DocumentText(record, _read_text(paths, record)) for record in find_documents(paths)]


def check_documents(paths: TurnPaths, count: int | None) -> None:
    """
    Raise unless the documents of a turn are all there, as many as were handed over.

    Raises:
        FileFormatError: documents.json or the text of a document is missing, or has changed.
    """
    path = paths / DOCUMENTS_JSON
    if count and not path.exists():
        raise FileFormatError("the documents of the turn are missing", where=str(path), fix=_FIX)
    load_documents(paths)


def _read_text(paths: TurnPaths, record: TurnDocument) -> str:
    path = paths / record.file
    if not path.exists():
        message = f"the document {record.name} of the turn is missing"
        raise FileFormatError(message, where=str(path), fix=_FIX)
    text = read_text(path)
    if record.text_sha256 is not None and digest_of(text.encode()) != record.text_sha256:
        raise FileFormatError(
            "the document has changed since it was handed over",
            where=str(path),
            fix=_FIX,
        )
    return text
