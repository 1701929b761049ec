"""`panda view`: what it serves, writes and refuses."""

import base64
import urllib.error
import urllib.request
from contextlib import AbstractContextManager

import pytest

from tests.api import Panda, tree
from tests.serving.servers import Server, running
from tests.view.sites import write_run


def status_of(url: str, **headers: str) -> int:
    """Status of what a server answers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def viewing(panda: Panda, *words: str, **environ: str) -> AbstractContextManager[Server]:
    """The pages over a store, served by the command."""
    return running("view", *words, "--no-open", environ={**panda.environ, **environ})


def test_the_address_names_the_page(panda: Panda) -> None:
    """A turn or run that is named is the page whose address is told; a page of another site reads nothing."""
    run = write_run(panda, {811: {}}).name
    for word, page in (("811", "turns/demo/811"), (run, f"runs/{run}"), ("last", f"runs/{run}")):
        with viewing(panda, word) as server:
            assert server.url.endswith(f"/{page}")
            assert status_of(server.url) == 200
            assert status_of(server.url, Host="evil.example") == 421
            assert server.stop() in (0, 143)


def test_a_token_is_asked_for_like_a_password(panda: Panda) -> None:
    """With PANDA_TOKEN set a browser asks its user, and programs send it as they do to panda serve."""
    with viewing(panda, PANDA_TOKEN="secret") as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(server.url)
        assert refused.value.code == 401
        assert refused.value.headers["www-authenticate"].startswith("Basic ")
        refused.value.close()
        good, bad = (base64.b64encode(pair).decode() for pair in (b"me:secret", b"secret:"))
        assert status_of(server.url, Authorization="Bearer secret") == 200
        assert status_of(server.url, Authorization=f"Basic {good}") == 200
        for wrong in (f"Basic {bad}", "Basic !", "Basic", "Bearer wrong"):
            assert status_of(server.url, Authorization=wrong) == 401


def test_a_store_that_may_only_be_read(panda: Panda) -> None:
    """Pages, search and files need no right to write: the store stays byte for byte as it was."""
    places = [panda.store, *panda.store.rglob("*")]
    for path in reversed(places):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(panda.store)
    try:
        with viewing(panda) as server:
            for address in ("", "?q=laptop", "turns/demo/813"):
                assert status_of(server.url + address) == 200
        assert panda("view", "--out", "site").code == 0
        assert tree(panda.store) == before
    finally:
        for path in places:
            path.chmod(0o755 if path.is_dir() else 0o644)  # pytest removes it


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["811", "812"], "more than one turn to begin with"),
        (["9999"], "user demo has no turn 9999"),
        (["811-812"], "is no turn number"),
        (["--out", "a", "--port", "1"], "--port does not go with --out"),
        (["--out", "."], "is not an empty directory"),
        (["--out", "file"], "is not an empty directory"),
        (["--out", "file/x"], "there is no directory"),
        (["--out", "store/site"], "not written into the store"),
        (["--out", "a", "500-600"], "the selection holds no turn"),
        (["--host", "0.0.0.0", "--no-open"], "there is no token"),
        (["--host", "no such host", "--no-open"], "there is no token"),
        (["--json"], "json"),
    ],
)
def test_wrong_usage_is_told(panda: Panda, words: list[str], message: str) -> None:
    """What cannot be shown or written is refused, with the reason, before anything is served or written."""
    panda.write("file", "mine")
    before = tree(panda.home)
    ended = panda("view", *words)
    assert ended.code == 2, ended.err
    assert message in ended.err + ended.out
    assert tree(panda.home) == before
