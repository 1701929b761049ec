"""git.status and git.diff with real repositories that would have git run something."""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.tool_project import SOURCE, ToolProject

PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


def both(code: ToolProject, **environ: str) -> tuple[Any, Any]:
    """Return what git.status and git.diff give."""
    return code.use("git.status", environ=environ), code.use("git.diff", environ=environ)


def git(directory: Path, *words: str) -> str:
    """Run git and return its output."""
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


def program(root: Path) -> Path:
    """A program that leaves a file `ran` beside the project, and what it was told."""
    path = root / "program.sh"
    path.write_text(f'#!/bin/sh\necho "$0 $@" >> "{root}/ran"\nexit 1\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def edited(project: Path) -> None:
    """A file that git must look into: same size and other content."""
    (project / "totals.py").write_text(SOURCE.replace("add_up", "summed"), encoding="utf-8")


def config(*entries: str, attributes: str = "", lacks_blob: bool = False) -> Callable[[Path, Path], None]:
    """
    Sets keys of the repository; an included file `more` has git run something, too.

    Args:
        entries: KEY=VALUE each, with PROGRAM and PROJECT in it.
        attributes: Of files, in no commit.
        lacks_blob: Whether the repository lacks something that it takes from elsewhere.
    """

    def act(project: Path, run: Path) -> None:
        (project / "more").write_text(f"[core]\n\tfsmonitor = {run}\n", encoding="utf-8")
        (project / ".git" / "info").mkdir(exist_ok=True)
        (project / ".git" / "info" / "attributes").write_text(attributes, encoding="utf-8")
        lacking = ("core.repositoryformatversion=1", "extensions.partialClone=origin")
        all_entries = (*entries, *lacking) if lacks_blob else entries
        for entry in all_entries:
            key, _, value = entry.replace("PROGRAM", str(run)).replace("PROJECT", str(project)).partition("=")
            git(project, "config", *key.split(), value)
        if lacks_blob:
            git(project, "config", "remote.origin.promisor", "true")
            blob = git(project, "rev-parse", "HEAD:totals.py").strip()
            (project / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    return act


def hooks(folder: str, *entries: str) -> Callable[[Path, Path], None]:
    """Hooks that git runs as soon as it writes the index."""

    def act(project: Path, run: Path) -> None:
        (project / folder).mkdir(exist_ok=True)
        for name in ("post-index-change", "fsmonitor-watchman", "post-checkout"):
            os.link(run, project / folder / name)
        config(*entries)(project, run)
        later = (project / "totals.py").stat().st_mtime + 100
        os.utime(project / "totals.py", (later, later))

    return act


def submodule(project: Path, run: Path) -> None:
    """A submodule whose own configuration has a filter."""
    inner = project.parent / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "a.txt").write_text("a\n", encoding="utf-8")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "first")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "inner")
    git(project, "commit", "-qm", "second")
    (project / "inner" / "a.txt").write_text("b\n", encoding="utf-8")
    git(project / "inner", "config", "filter.x.clean", str(run))
    (project / ".git" / "modules" / "inner" / "info").mkdir(exist_ok=True)
    (project / ".git" / "modules" / "inner" / "info" / "attributes").write_text("* filter=x\n")


RUNS_SOMETHING: dict[str, Callable[[Path, Path], None]] = {
    "fsmonitor": config("core.fsmonitor=PROGRAM"),
    "clean": config("filter.x.clean=PROGRAM", attributes="* filter=x\n"),
    "clean of another name": config("filter.a.b/c.clean=PROGRAM", attributes="*.py filter=a.b/c\n"),
    "process": config("filter.x.process=PROGRAM", "filter.x.required=true", attributes="* filter=x\n"),
    "textconv": config("diff.x.textconv=PROGRAM", attributes="* diff=x\n"),
    "diff driver": config("diff.x.command=PROGRAM", attributes="* diff=x\n"),
    "external diff": config("diff.external=PROGRAM"),
    "include": config("include.path=../more"),
    "includeIf": config("includeIf.gitdir:**.path=../more"),
    "config.worktree": config(
        "core.repositoryformatversion=1",
        "extensions.worktreeConfig=true",
        "--worktree core.fsmonitor=PROGRAM",
    ),
    "hooks": hooks(".git/hooks"),
    "hooksPath": hooks("hooks", "core.hooksPath=PROJECT/hooks"),
    "sshCommand": config("remote.origin.url=ssh://a.invalid/x", "core.sshCommand=PROGRAM", lacks_blob=True),
    "gitProxy": config("remote.origin.url=git://a.invalid/x", "core.gitProxy=PROGRAM", lacks_blob=True),
    "ext::": config("remote.origin.url=ext::PROGRAM %S", "protocol.ext.allow=always", lacks_blob=True),
    "uploadpack": config("remote.origin.url=PROJECT", "remote.origin.uploadpack=PROGRAM", lacks_blob=True),
    "submodule": submodule,
}


@pytest.mark.parametrize("name", RUNS_SOMETHING)
def test_nothing_runs(repository: ToolProject, tmp_path: Path, name: str) -> None:
    """
    A program that a repository would have git run is not run; git itself runs it, so that the test can tell.
    """
    project = repository.home
    run = program(tmp_path)
    edited(project)
    RUNS_SOMETHING[name](project, run)
    before = {path: path.read_bytes() for path in (project / ".git").rglob("*") if path.is_file()}
    assert both(repository)[0]["status"] == "success"
    assert not (tmp_path / "ran").exists()
    assert {p: p.read_bytes() for p in (project / ".git").rglob("*") if p.is_file()} == before
    writes_index = [("add", ".")] if name.startswith("hooks") else []  # status need not write it
    for words in (("status",), ("diff", "HEAD"), *writes_index):
        subprocess.run(["git", *words], cwd=project, env=PLAIN, capture_output=True, timeout=60, check=False)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_EXTERNAL_DIFF": "PROGRAM"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "PROGRAM"},
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='PROGRAM'"},
        {"GIT_CONFIG_GLOBAL": "HOME/.gitconfig"},
        {"GIT_CONFIG_SYSTEM": "HOME/.gitconfig"},
        {"HOME": "HOME"},
        {"XDG_CONFIG_HOME": "HOME/xdg"},
    ],
    ids=lambda variables: ",".join(variables),
)
def test_nothing_of_the_environment_runs(
    repository: ToolProject, tmp_path: Path, variables: dict[str, str]
) -> None:
    """Neither variables of git nor the user's own configuration have anything run."""
    project = repository.home
    run = program(tmp_path)
    home = tmp_path / "home"
    for path in (home / ".gitconfig", home / "xdg" / "git" / "config"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[core]\n\tfsmonitor = {run}\n", encoding="utf-8")
    edited(project)
    own = {
        key: value.replace("PROGRAM", str(run)).replace("HOME", str(home)) for key, value in variables.items()
    }
    status, diff = both(repository, **own)
    assert (status["status"], diff["data"]["files"]) == ("success", 1)
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "diff", "HEAD"], cwd=project, env=PLAIN | own, capture_output=True, check=False)
    assert (tmp_path / "ran").exists()


def test_git_of_the_project_is_not_run(repository: ToolProject, tmp_path: Path) -> None:
    """A program `git` that lies in the project is not taken for git, nor one of the current directory."""
    project = repository.home
    run = program(tmp_path)
    (project / "bin").mkdir()
    (tmp_path / "bin").mkdir()
    for place in (project / "git", project / "bin" / "git"):
        os.link(run, place)
    (tmp_path / "bin" / "git").symlink_to(project / "git")
    path = os.pathsep.join([".", "", str(project / "bin"), str(tmp_path / "bin"), os.environ["PATH"]])
    assert both(repository, PATH=path)[0]["status"] == "success"
    assert not (tmp_path / "ran").exists()


def bare(project: Path, run: Path, folder: str) -> None:
    """Text files that make a directory a bare repository, which fetches what it lacks with a program."""
    contents = {
        "HEAD": "ref: refs/heads/main\n",
        "objects/x": "",
        "refs/heads/main": "1" * 40,
        "config": f"""[core]
            repositoryformatversion = 1
            bare = false
            worktree = "."
            sshCommand = {run}
            [extensions]
            partialClone = origin
            [remote "origin"]
            promisor = true
            url = ssh://a.invalid/x
            """,
    }
    for name, text in contents.items():
        path = project / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("folder", [".", "sub"])
def test_directory_that_looks_like_a_repository(code: ToolProject, tmp_path: Path, folder: str) -> None:
    """Only a `.git` makes a repository: files of the project that git would take for one are files."""
    project = code.home
    run = program(tmp_path)
    bare(project, run, folder)
    for result in both(code.at(project / folder)):
        assert "in no git repository" in result["error"]
    assert not (tmp_path / "ran").exists()
    words = ["git", "diff", "HEAD", "--"]
    subprocess.run(words, cwd=project / folder, env=PLAIN, capture_output=True, timeout=60, check=False)
    assert (tmp_path / "ran").exists()


def test_part_of_a_repository(repository: ToolProject) -> None:
    """A project that is a part of a repository sees its own files, by the repository's git directory."""
    project = repository.home
    (project / "part").mkdir()
    (project / "part" / "a.txt").write_text("a\n", encoding="utf-8")
    edited(project)
    status, diff = both(repository.at(project / "part"))
    assert (status["data"]["changes"], diff["data"]["files"]) == (["?? part/a.txt"], 0)


def test_linked_work_tree_and_submodule(repository: ToolProject, tmp_path: Path) -> None:
    """Linked work trees and submodules are refused: their git directory lies elsewhere."""
    project = repository.home
    git(project, "worktree", "add", "-q", str(tmp_path / "linked"))
    submodule(project, program(tmp_path))
    for place in (tmp_path / "linked", project / "inner"):
        for result in both(repository.at(place)):
            assert "a linked work tree or submodule" in result["error"]
    assert not (tmp_path / "ran").exists()


def pointer(target: str) -> Callable[[Path, Path], None]:
    def act(project: Path, other: Path) -> None:
        (project / ".git").write_text(f"gitdir: {target.replace('OTHER', str(other))}\n", encoding="utf-8")

    return act


def linked(project: Path, other: Path) -> None:
    (project / ".git").symlink_to(other / ".git")


def half(*parts: str) -> Callable[[Path, Path], None]:
    """A real `.git` of which parts lie elsewhere."""

    def act(project: Path, other: Path) -> None:
        git(project, "init", "-q")
        for part in parts:
            place = project / ".git" / part
            subprocess.run(["rm", "-rf", str(place)], check=True)
            place.symlink_to(other / ".git" / part)

    return act


def written(name: str, text: str) -> Callable[[Path, Path], None]:
    """A real `.git` with a file that leads elsewhere."""

    def act(project: Path, other: Path) -> None:
        git(project, "init", "-q")
        (project / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / ".git" / name).write_text(text.replace("OTHER", str(other)), encoding="utf-8")

    return act


def own_pointer(project: Path, other: Path) -> None:
    """A `.git` file and a place for it, both in the project."""
    bare(project, other, "place")
    (project / ".git").write_text("gitdir: place\n", encoding="utf-8")
    (project / "place" / "gitdir").write_text(str(project / ".git"), encoding="utf-8")


@pytest.mark.parametrize(
    "leads",
    [
        pointer("OTHER/.git"),
        pointer("../project/../other/.git"),
        pointer("/dev/null"),
        pointer("x"),
        own_pointer,
        linked,
        half("HEAD"),
        half("objects"),
        half("refs"),
        half("index"),
        written("HEAD", "ref: refs/../../../other/.git/refs/heads/master\n"),
        written("HEAD", "ref: ../../other/.git/HEAD\n"),
        written("HEAD", "../../other/secret"),
        written("commondir", "OTHER/.git"),
        written("objects/info/alternates", "OTHER/.git/objects\n"),
        written("reftable/tables.list", "x\n"),
    ],
)
def test_git_directory_that_leads_elsewhere(
    repository: ToolProject, tmp_path: Path, leads: Callable[[Path, Path], None]
) -> None:
    """A git directory that leads to another repository, or to a place that tools could write, is refused."""
    project = repository.home
    other = project.rename(tmp_path / "other")
    (other / "secret").write_text("a secret\n", encoding="utf-8")
    project.mkdir()
    leads(project, other)
    for result in both(repository):
        assert result["status"] == "error"
        assert "secret" not in result["error"]


@pytest.mark.parametrize("name", ["../other/secret", "/./other/secret", "a/./ther/secret", ".git/her/secret"])
def test_index_that_names_a_file_outside(code: ToolProject, tmp_path: Path, name: str) -> None:
    """An index that somebody made by hand, with a path that leads outside, is refused and shows nothing."""
    project = code.home
    (project / "xx" / "other").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("a secret\n", encoding="utf-8")
    (project / "xx" / "other" / "secret").write_text("b\n", encoding="utf-8")
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "add", ".")
    index = project / ".git" / "index"
    changed = index.read_bytes()[:-20].replace(b"xx/other/secret", name.encode())
    index.write_bytes(changed + hashlib.sha1(changed).digest())
    for result in both(code):
        assert "no file of the work tree" in result["error"]
    if name.startswith(".."):
        assert "a secret" in git(project, "diff", "HEAD")


def test_index_with_a_file_behind_a_link(repository: ToolProject, tmp_path: Path) -> None:
    """A file of the index whose directory has become a link is gone: what is behind the link is not read."""
    project = repository.home
    (project / "sub").mkdir()
    (project / "sub" / "a.txt").write_text("a\n", encoding="utf-8")
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")
    (project / "sub").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "a.txt").write_text("a secret\n", encoding="utf-8")
    (project / "sub").symlink_to(tmp_path / "elsewhere")
    status, diff = both(repository)
    assert " D sub/a.txt" in status["data"]["changes"]
    assert "a secret" not in diff["data"]["diff"]


def test_as_git_says(repository: ToolProject) -> None:
    """Without filters and helpers, the answers are git's own: renamed, deleted, ignored, modes, CRLF."""
    project = repository.home
    (project / "b c.txt").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    (project / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (project / ".gitignore").write_text("*.log\n", encoding="utf-8")
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")
    git(project, "mv", "b c.txt", "d e.txt")
    (project / "crlf.txt").touch()
    (project / "x.log").write_text("x", encoding="utf-8")
    (project / ".git" / "info" / "exclude").write_text("*.tmp\n", encoding="utf-8")
    (project / "y.tmp").write_text("x", encoding="utf-8")
    (project / "totals.py").chmod(0o755)
    (project / "check_totals.py").unlink()
    (project / "größe.txt").write_text("neu\n", encoding="utf-8")
    git(project, "add", "-N", "größe.txt")
    expected = git(project, "-c", "core.quotePath=false", "status", "--porcelain", "--untracked-files=all")
    status, diff = both(repository)
    renamed = 'R  "b c.txt" -> "d e.txt"'
    assert renamed in expected
    assert status["data"]["changes"] == [
        "R  d e.txt (was b c.txt)" if line == renamed else line for line in expected.splitlines()
    ]
    assert diff["data"]["diff"] == git(project, "-c", "core.quotePath=false", "diff", "HEAD")
    assert diff["data"]["files"] == len(git(project, "diff", "HEAD", "--name-only").splitlines())


@pytest.mark.parametrize("way", ["split index", "packed refs", "detached", "sparse", "sha256", "unborn"])
def test_forms_of_repositories(repository: ToolProject, way: str) -> None:
    """The usual forms of index, refs and objects are understood."""
    project = repository.home
    if way == "split index":
        git(project, "update-index", "--split-index")
    elif way == "packed refs":
        git(project, "pack-refs", "--all")
    elif way == "detached":
        git(project, "checkout", "-q", "--detach")
    elif way == "sparse":
        (project / "away").mkdir()
        (project / "away" / "a.txt").write_text("a\n", encoding="utf-8")
        git(project, "add", ".")
        git(project, "commit", "-qm", "second")
        git(project, "sparse-checkout", "set", "--cone", "--sparse-index", "nothing")
        assert not (project / "away").exists()
    else:
        subprocess.run(["rm", "-rf", str(project / ".git")], check=True)
        options = ["--object-format=sha256"] if way == "sha256" else []
        git(project, "init", "-q", *options)
        git(project, "add", ".")
        if way == "sha256":
            git(project, "commit", "-qm", "first")
    edited(project)
    status, diff = both(repository)
    changes = status["data"]["changes"]
    if way == "unborn":
        assert "AM totals.py" in changes
        assert diff["data"]["files"] == len(git(project, "ls-files").splitlines())
    else:
        assert (changes, diff["data"]["files"]) == ([" M totals.py"], 1)


def test_many_changes(repository: ToolProject) -> None:
    """A status of more than 200 kB is counted to the last file, and each entry that is shown is whole."""
    project = repository.home
    for number in range(3000):
        (project / f"{number:04d}_{'x' * 90}.txt").write_text("", encoding="utf-8")
    status = repository.use("git.status")
    assert status["claims"][0]["text"] == "3,000 files differ from the last commit"
    assert status["data"]["left_out"] == 2500
    assert status["data"]["changes"][0] == f"?? 0000_{'x' * 90}.txt"


def test_hostile_names(repository: ToolProject) -> None:
    """Names are bytes: line breaks, quotes and other encodings make one line each."""
    project = repository.home
    names = [b"a\nb.txt", b"caf\xe9.txt", b'"q".txt', b" s .txt", b"\x1b[31m.txt", b"## 2. x", b"a -> b"]
    for name in names:
        (project / os.fsdecode(name)).write_text("x", encoding="utf-8")
    status = repository.use("git.status")
    assert sorted(status["data"]["changes"]) == sorted(
        [
            *(
                "?? a\\x0ab.txt",
                "?? caf\\xe9.txt",
                '?? "q".txt',
                "??  s .txt",
                "?? \\x1b[31m.txt",
                "?? ## 2. x",
            ),
            "?? a -> b",
        ]
    )


def test_long_diff(repository: ToolProject) -> None:
    """A diff that is too long is cut at the end, after a whole line; all its files are counted."""
    project = repository.home
    (project / "a.txt").write_text("diff --git a b\n" * 20_000, encoding="utf-8")
    git(project, "add", ".")
    edited(project)
    diff = repository.use("git.diff")
    assert diff["claims"][0]["text"] == "2 files differ from the last commit"
    assert diff["data"]["diff"].startswith("diff --git a/a.txt b/a.txt\n")
    assert diff["data"]["diff"].endswith("\n+diff --git a b\n")
    assert "bytes at the end of the diff are left out" in diff["claims"][1]["text"]
