"""A hub of model files on loopback: the little of its protocol that a download needs."""

import hashlib
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer:
    """
    Gives files of repositories by range, with size, commit and checksum; a context manager.

    Args:
        files: Content by path, as "ann/tiny/small.gguf".
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.tampered: set[str] = set()
        """Paths whose content comes otherwise than the checksum says."""
        self.stall_after: int | None = None
        """So many bytes come, and then nothing more."""
        self.ranges: list[str | None] = []
        """What each GET asked for by Range."""
        self.tokens: list[str | None] = []
        """What each request had as Authorization."""
        self._is_closing = threading.Event()
        hub = self

        class HubHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                with suppress(OSError):  # the client has gone
                    super().handle()

            def do_HEAD(self) -> None:
                self._give(with_body=False)

            def do_GET(self) -> None:
                hub.ranges.append(self.headers.get("Range"))
                with suppress(OSError):
                    self._give(with_body=True)

            def _give(self, *, with_body: bool) -> None:
                hub.tokens.append(self.headers.get("Authorization"))
                repository, _, name = self.path.lstrip("/").partition("/resolve/")
                path = f"{repository}/{name.partition('/')[2]}"
                is_there = any(file.startswith(f"{repository}/") for file in hub.files)
                if path not in hub.files:
                    code = "EntryNotFound" if is_there else "RepoNotFound"
                    self.send_response(404)
                    self.send_header("X-Error-Code", code)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                whole = hub.files[path]
                sent = bytes(reversed(whole)) if path in hub.tampered else whole
                start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
                self.send_response(206 if start else 200)
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("ETag", f'"{hashlib.sha256(whole).hexdigest()}"')
                self.send_header("Content-Length", str(len(sent) - start))
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(sent) - 1}/{len(sent)}")
                self.end_headers()
                if with_body:
                    end = len(sent) if hub.stall_after is None else hub.stall_after
                    self.wfile.write(sent[start:end])
                    self.wfile.flush()
                    if hub.stall_after is not None:
                        hub._is_closing.wait(60)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
