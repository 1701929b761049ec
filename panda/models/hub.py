"""Model files from a hub such as Hugging Face; its client is an extra, `panda-turns[hub]`."""

import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from panda.documents.progress import Advance, progress
from panda.errors import ModelFileError, NotFoundError, Problem, StoreError, TryAgainError, UsageError
from panda.models.llama.gguf import GgufFile
from panda.store.files import held_lock, make_directory, output_mode, store_errors

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

_USUAL_ADDRESS = "https://huggingface.co"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_ANSWER_SECONDS = 10.0
_MEGABYTE = 1_000_000
_MAX_FILE_BYTES = 50_000_000_000
_SPARE_BYTES = 100_000_000
"""What a disk must have free beside the file."""


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """One file of a repository of a hub, as the hub tells of it."""

    repository: str  # OWNER/NAME
    name: str  # path in the repository
    revision: str  # commit
    size_bytes: int
    sha256: str | None  # hex; None if the hub tells none


@dataclass(frozen=True, kw_only=True)
class Hub:
    """A hub that files are downloaded from."""

    address: str = _USUAL_ADDRESS  # base URL
    token: str | None = None  # for repositories that want one

    def find_file(self, repository: str, name: str) -> HubFile:
        """
        Return what the hub tells of a file.

        Raises:
            NotFoundError: There is no such repository or file, or only for who may read it.
            TryAgainError: The hub does not answer.
            UsageError: Its client is not installed.
        """
        facts = self._read_facts(repository, name)
        if facts.size is None or facts.commit_hash is None:
            message = f"the hub tells no size or revision of {name}"
            raise NotFoundError(message, where=self.address, fix="check that HF_ENDPOINT is a hub")
        digest = facts.etag if facts.etag and _SHA256.fullmatch(facts.etag) else None
        return HubFile(
            repository=repository,
            name=name,
            revision=facts.commit_hash,
            size_bytes=facts.size,
            sha256=digest,
        )

    def download(self, hub_file: HubFile, directory: Path, *, cache_dir: Path) -> Path:
        """
        Return the path of a file below a directory, downloaded if it is not there; what an interrupted
        download left is gone on with.

        Raises:
            UsageError: Another file of that name is there, or the disk is too full.
            ModelFileError: What came has another checksum; it is removed.
            TryAgainError: The connection broke, or another process downloads the file.
        """
        path = directory / hub_file.name
        if _is_there(hub_file, path, cache_dir=cache_dir):
            return path
        _check_room(hub_file, directory)
        identity = (hub_file.sha256 or hub_file.revision)[:16]
        partial_path = path.with_name(f".{path.name}.{identity}.part")
        lock = cache_dir / "downloads" / f"{identity}.lock"
        make_directory(path.parent, mode=output_mode(directory=True))
        with (
            held_lock(lock, holder=f"panda models add (pid {os.getpid()})", wait_seconds=0),
            store_errors(partial_path, "write"),
            partial_path.open("ab") as stream,
        ):
            self._fetch(hub_file, stream)
        if hub_file.sha256 is not None and GgufFile(partial_path, cache_dir).sha256 != hub_file.sha256:
            partial_path.unlink()
            message = f"{path.name} came with another checksum than the hub tells, and is removed"
            raise ModelFileError(message, str(path), fix="give the command again")
        with store_errors(path, "write"):
            partial_path.replace(path)
        return path

    def _fetch(self, hub_file: HubFile, stream: BinaryIO) -> None:
        """Write what is missing of a file behind what a stream has of it."""
        facts = self._read_facts(hub_file.repository, hub_file.name, revision=hub_file.revision)
        from huggingface_hub import get_token
        from huggingface_hub.file_download import http_get

        headers: dict[str, str] = {}
        token = self.token or get_token()
        if token and urlsplit(facts.location).netloc == urlsplit(self.address).netloc:
            headers["Authorization"] = f"Bearer {token}"  # which a store of files behind the hub is not told
        with (
            progress(
                f"downloading {Path(hub_file.name).name} (MB)", hub_file.size_bytes // _MEGABYTE
            ) as advance,
            _translated(self, hub_file.repository, hub_file.name, stream=stream),
        ):
            http_get(
                facts.location,
                stream,
                resume_size=stream.tell(),
                headers=headers,
                expected_size=hub_file.size_bytes,
                displayed_filename=hub_file.name,
                tqdm_class=_bar_class(advance),
            )

    def _read_facts(self, repository: str, name: str, *, revision: str | None = None) -> "HfFileMetadata":
        _check_installed()
        from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url

        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # what is wrong is told by us
        constants.HF_HUB_DISABLE_TELEMETRY = True  # else it asks another host who started it
        with _translated(self, repository, name):
            url = hf_hub_url(repository, name, revision=revision, endpoint=self.address)
            return get_hf_file_metadata(url, token=self.token, timeout=_ANSWER_SECONDS, endpoint=self.address)


def parse_hub_path(text: str) -> tuple[str, str]:
    """Return repository and file of OWNER/REPO/FILE.gguf. Raises UsageError: it is no such path."""
    owner, _, rest = text.partition("/")
    repository, _, name = rest.partition("/")
    parts = [owner, repository, *name.split("/")]
    if not name.lower().endswith(".gguf") or not all(_PART.fullmatch(part) for part in parts):
        fix = "name a file of a repository, as in hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf"
        raise UsageError(f"{text!r:.120} is no model file of a hub", where="SOURCE", fix=fix)
    return f"{owner}/{repository}", name


def _check_installed() -> None:
    if find_spec("huggingface_hub") is None:
        fix = "pip install 'panda-turns[hub]'"
        raise UsageError("the client of the hub is not installed", where="hf:", fix=fix)


def _is_there(hub_file: HubFile, path: Path, *, cache_dir: Path) -> bool:
    """Say whether a file has been downloaded. Raises UsageError: another one of that name is there."""
    if not path.exists():
        return False
    is_same = path.stat().st_size == hub_file.size_bytes
    if is_same and hub_file.sha256 is not None:
        is_same = GgufFile(path, cache_dir).sha256 == hub_file.sha256
    if not is_same:
        message = "another file of that name is there"
        raise UsageError(message, where=str(path), fix="move it away, or add it by its path")
    return True


def _check_room(hub_file: HubFile, directory: Path) -> None:
    """Raises UsageError where a file does not fit on the disk, or cannot come in one piece."""
    if hub_file.size_bytes > _MAX_FILE_BYTES:
        message = (
            f"{hub_file.size_bytes:,} bytes are more than the {_MAX_FILE_BYTES:,} that can be downloaded"
        )
        raise UsageError(message, where=hub_file.name, fix="choose a smaller file, or download it by hand")
    top = next(place for place in (directory, *directory.parents) if place.is_dir())
    free_bytes = shutil.disk_usage(top).free
    if free_bytes < hub_file.size_bytes + _SPARE_BYTES:
        message = f"{hub_file.size_bytes:,} bytes do not fit on the disk, which has {free_bytes:,} free"
        raise UsageError(message, where=str(directory), fix="make room, or choose a smaller file")


@contextmanager
def _translated(hub: Hub, repository: str, name: str, *, stream: BinaryIO | None = None) -> Iterator[None]:
    """Raise what the hub's client raises as problems that say what to do; *stream* has what has come."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    where = f"{hub.address}/{repository}"
    try:
        yield
    except GatedRepoError as exc:
        fix = "accept its terms on its page, and export HF_TOKEN with your token"
        raise NotFoundError("the repository is open only to who has agreed to it", where, fix=fix) from exc
    except RepositoryNotFoundError as exc:
        fix = "check how it is spelt; for a private one export HF_TOKEN"
        raise NotFoundError(f"the hub has no repository {repository}", where, fix=fix) from exc
    except LocalEntryNotFoundError as exc:
        raise TryAgainError("the hub does not answer", where, fix=_again(stream)) from exc
    except (EntryNotFoundError, RevisionNotFoundError) as exc:
        fix = "check how it is spelt, on the page of the repository"
        raise NotFoundError(f"the repository has no file {name}", where, fix=fix) from exc
    except HfHubHTTPError as exc:
        status = exc.response.status_code
        if status in (401, 403):
            fix = "export HF_TOKEN with a token that may read it"
            raise NotFoundError(f"the hub refuses it (HTTP {status})", where, fix=fix) from exc
        raise TryAgainError(f"the hub fails (HTTP {status})", where, fix=_again(stream)) from exc
    except HTTPError as exc:
        raise TryAgainError(f"the hub does not answer: {str(exc)[:200]}", where, fix=_again(stream)) from exc
    except OSError as exc:
        raise _of_disk(exc, where, _again(stream)) from exc


def _again(stream: BinaryIO | None) -> str:
    """Return what to do where a hub fails, before or after bytes of a file have come."""
    if stream is not None and stream.tell() > 0:
        return "give the same command again: what has come is kept"
    return "check the network and HF_ENDPOINT, then give the same command again"


def _of_disk(disk_error: OSError, where: str, again: str) -> Problem:
    if disk_error.errno is None:  # the client tells so that the size was wrong
        return TryAgainError(f"the download broke off: {str(disk_error)[:200]}", where, fix=again)
    return StoreError(
        f"the file cannot be written: {disk_error.strerror}", where, fix="make room, or mend the disk"
    )


def _bar_class(advance: Advance) -> Any:
    """Return what the hub's client takes for tqdm, which says how many megabytes have come."""

    class Bar:
        def __init__(self, *parts: object, initial: int = 0, **unused: object) -> None:
            self._pending_bytes = 0
            self.update(initial)

        def update(self, count: float | None = 1) -> None:
            self._pending_bytes += int(count or 0)
            whole = self._pending_bytes // _MEGABYTE
            if whole > 0:
                advance(whole)
                self._pending_bytes -= whole * _MEGABYTE

        def close(self) -> None:
            pass

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *error: object) -> None:
            self.close()

    return Bar
