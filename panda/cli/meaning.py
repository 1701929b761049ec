"""The encoder of the index commands: opened, filled in with a bar, or done without."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from panda.cli.contract import Invocation
from panda.errors import ModelFileError, UntrustedError
from panda.models.kept_encoder import KeptEncoder
from panda.retrieval.meaning import IMPORT_TEXTS, Meaning, say_missing
from panda.storage.index import Index
from panda.storage.vector_store import VectorStore
from panda.trust import open_layers


@contextmanager
def opened_meaning(invocation: Invocation, index: Index) -> Iterator[Meaning | None]:
    """What finds by meaning; None without an encoder, with a warning if there is one that may not be used."""
    settings, layout = invocation.settings, invocation.store()
    with ExitStack() as stack:
        encoder = None
        try:
            layers = invocation.layers or stack.enter_context(open_layers(settings, invocation.environ))
            encoder = layers.encoder()
        except (UntrustedError, ModelFileError) as exc:
            invocation.reporter.warn(f"by words alone, without an encoder: {exc.message}")
        if encoder is None:
            yield None
        else:
            yield Meaning(KeptEncoder(encoder, VectorStore(layout)), index, layout, settings.clock)


def fill_imported(invocation: Invocation, users: Sequence[str]) -> None:
    """Fill in the first vectors of users who have new turns, and tell how many are missing."""
    index = Index(invocation.store())
    with opened_meaning(invocation, index) as meaning:
        missing = [meaning.fill(user, most=IMPORT_TEXTS) for user in users] if meaning is not None else []
    index.close()
    if any(missing):
        invocation.reporter.warn(say_missing(sum(missing)))


def fill_vectors(invocation: Invocation, index: Index, users: Sequence[str], *, full: bool) -> None:
    """
    Fill in all vectors that are missing, with a bar; what was kept stays when that is interrupted.

    Args:
        invocation: The run of the command.
        index: The index whose rows they are of.
        users: Whose rows.
        full: Whether these are all users, and other vectors are dropped.
    """
    started = time.monotonic()
    with opened_meaning(invocation, index) as meaning:
        if meaning is None:
            return
        missing = sum(meaning.count_missing(user) for user in users)
        with invocation.reporter.progress("vectors", missing) as advance:
            for user in users:
                meaning.fill(user, watch=advance)
        if full:
            meaning.drop_others(users)
    if missing:
        invocation.reporter.step(f"vectors of {missing:,} sources, {time.monotonic() - started:.1f} s")
