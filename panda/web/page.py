"""A page as a server sent it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    url: str  # as it was asked for, normalised
    final_url: str  # the URL that answered, after redirects
    media_type: str  # text/html, application/json, …; "" if not modified
    charset: str | None  # in which the text was read; None if not modified
    text: str | None  # the body; None if it is the same as at the earlier visit (304)
    etag: str | None  # ETag as given
    last_modified: str | None  # Last-Modified as given
