"""`panda view`: what it serves, writes and refuses."""

import base64
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.api import Ended, run_here
from tests.builders import tree
from tests.serving.servers import running


def status_of(url: str, **headers: str) -> int:
    """Status of what a server answers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def test_the_address_names_the_page(demo: Path) -> None:
    """A turn that is named is the page whose address is told; others are beside it."""
    with running("view", "811", "--no-open", "--root", str(demo), "--user", "demo") as server:
        assert server.url.endswith("/turns/demo/811")
        assert status_of(server.url) == 200
        assert server.stop() in (0, 143)


def test_another_host_name_is_refused(demo: Path) -> None:
    """A page of another site that got a name for this machine reads nothing."""
    with running("view", "--no-open", "--root", str(demo), "--user", "demo") as server:
        assert status_of(server.url, Host="evil.example") == 421


def test_a_token_is_asked_for_like_a_password(demo: Path) -> None:
    """With PANDA_TOKEN set a browser asks its user, and programs send it as they do to panda serve."""
    words = ("view", "--no-open", "--root", str(demo), "--user", "demo")
    with running(*words, environ={"PANDA_TOKEN": "secret"}) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(server.url)
        assert refused.value.code == 401
        assert refused.value.headers["www-authenticate"].startswith("Basic ")
        refused.value.close()
        good, bad = (base64.b64encode(one).decode() for one in (b"me:secret", b"secret:"))
        assert status_of(server.url, Authorization="Bearer secret") == 200
        assert status_of(server.url, Authorization=f"Basic {good}") == 200
        for wrong in (f"Basic {bad}", "Basic !", "Basic", "Bearer wrong"):
            assert status_of(server.url, Authorization=wrong) == 401


def test_a_store_that_may_only_be_read(recorded: Path, tmp_path: Path) -> None:
    """Pages, search and files need no right to write: the store stays byte for byte as it was."""
    root = shutil.copytree(recorded, tmp_path / "store")
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(root)
    try:
        with running("view", "--no-open", "--root", str(root), "--user", "demo") as server:
            for address in ("", "?q=laptop", "turns/demo/813"):
                assert status_of(server.url + address) == 200
        words = ["view", "--out", str(tmp_path / "site"), "--root", str(root), "--user", "demo"]
        assert run_here(words).code == 0
        assert tree(root) == before
    finally:
        for path in [root, *root.rglob("*")]:
            os.chmod(path, 0o755 if path.is_dir() else 0o644)  # noqa: PTH101 - pytest removes it


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["811", "812"], 2, "more than one turn to begin with"),
        (["9999"], 2, "user demo has no turn 9999"),
        (["811-812"], 2, "is no turn number"),
        (["--out", "{tmp}/a", "--port", "1"], 2, "--port does not go with --out"),
        (["--out", "{tmp}"], 2, "is not an empty directory"),
        (["--out", "{tmp}/file"], 2, "is not an empty directory"),
        (["--out", "{tmp}/file/x"], 2, "there is no directory"),
        (["--out", "{root}/site"], 2, "not written into the store"),
        (["--out", "{tmp}/a", "500-600"], 2, "the selection holds no turn"),
        (["--host", "0.0.0.0", "--no-open"], 2, "there is no token"),
        (["--host", "no such host", "--no-open"], 2, "there is no token"),
        (["--json"], 2, "json"),
    ],
)
def test_wrong_usage_is_told(
    demo: Path,
    tmp_path: Path,
    words: list[str],
    code: int,
    message: str,
) -> None:
    """What cannot be shown or written is refused, with the reason, before anything is served or written."""
    (tmp_path / "file").write_text("mine")
    given = [word.format(tmp=tmp_path, root=demo) for word in words]
    done: Ended = run_here(["view", *given, "--root", str(demo), "--user", "demo"])
    assert done.code == code, done.err
    assert message in done.err + done.out
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_out_tells_what_was_written(demo: Path, tmp_path: Path) -> None:
    """--json names the first page and every file."""
    words = [
        "view",
        "--out",
        str(tmp_path / "site"),
        "810-811",
        "--json",
        "--root",
        str(demo),
        "--user",
        "demo",
    ]
    data = run_here(words).value["data"]
    assert sorted(data["files"]) == sorted(tree(tmp_path / "site"))
    assert Path(data["first"]).read_text().startswith("<!doctype html>")
