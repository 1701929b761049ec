"""
The tools git.*, answered without anything that a repository brings along.

Git never sees the repository's own directory. It is given one that is made for the question: an empty
configuration, a copy of the index, the commit of HEAD, and the place of the objects. Whatever could start a
program (filters, hooks, fsmonitor, external diffs, helpers, included files, lazy fetches) is named in a
configuration, and none but ours is read.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from panda.addons.code.processes import MOST_OUTPUT_BYTES, Ran, run_process
from panda.addons.code.project import Project, project_of, written_name
from panda.documents.safe_text import count_noun
from panda.errors import UsageError
from panda.store.files import look_beneath, read_beneath, work_directory
from panda.store.records import ToolClaim
from panda.tools.tool_contract import Arguments, ToolContext, ToolResult, tool

_OURS = (
    *("safe.bareRepository=explicit", "protocol.allow=never", "core.fsmonitor=false", "core.quotePath=false"),
    *("core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null"),
    *("core.pager=cat", "core.untrackedCache=false", "submodule.recurse=false", "gc.auto=0"),
)
_Git = Callable[..., Ran]
"""Runs git in a directory with words, and says what it wrote of at most *most_bytes*."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH = re.compile(r"ref: (refs/[^\x00-\x20\x7f~^:?*\[\\]+)")
_MOST_TEXT_BYTES = 1_000_000
_MOST_PACKED_REFS_BYTES = 100_000_000
_MOST_INDEX_BYTES = 500_000_000
_MOST_LINKS = 64
_SHA256_DIGITS = 64
_MOST_NAME_BYTES = 50_000_000
_MOST_SHOWN = 500


class _Status(TypedDict):
    changes: list[str]
    left_out: int


class _Diff(TypedDict):
    diff: str
    files: int
    left_out_bytes: int


@tool(
    "git.status",
    "read",
    "List the files of the project that differ from the last commit.",
    _Status,
    uses_workspace=True,
)
def show_status(arguments: Arguments, context: ToolContext) -> ToolResult:
    """An entry for each file: two letters as `git status --porcelain` has them, and its name."""
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all")
    ran = _ask_git(context, *words, most_bytes=_MOST_NAME_BYTES)
    entries = _entries(ran.output)
    shown_entries = entries[:_MOST_SHOWN]
    at_least = "at least " if ran.left_out_bytes else ""
    verb = "differs" if len(entries) == 1 else "differ"
    count = f"{at_least}{count_noun(len(entries), 'file')} {verb} from the last commit"
    return ToolResult(
        "success",
        data=_Status(changes=shown_entries, left_out=len(entries) - len(shown_entries)),
        claims=(ToolClaim(count if entries else "nothing has changed", 1.0, "git status"),),
        text="\n".join(shown_entries),
    )


def _entries(output: bytes) -> list[str]:
    entries = []
    names = iter(output.split(b"\0")[:-1])
    for name in names:
        former = next(names, None) if name[:1] in b"RC" or name[1:2] in b"RC" else None
        origin = f" (was {written_name(former)})" if former else ""
        entries.append(f"{name[:3].decode('ascii')}{written_name(name[3:])}{origin}")
    return entries


@tool(
    "git.diff",
    "read",
    "Show what has changed in the project since the last commit.",
    _Diff,
    uses_workspace=True,
)
def show_diff(arguments: Arguments, context: ToolContext) -> ToolResult:
    has_commit = _head_commit(_find_repository(project_of(context))) is not None
    base = "HEAD" if has_commit else _EMPTY_TREE
    words = ("diff", base, "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
    names = _ask_git(context, *words, "--name-only", "-z", most_bytes=_MOST_NAME_BYTES)
    ran = _ask_git(context, *words, most_bytes=MOST_OUTPUT_BYTES)
    files = names.output.count(b"\0")
    at_least = "at least " if names.left_out_bytes else ""
    diff = ran.output.decode("utf-8", errors="replace")
    if has_commit:
        verb = "differs from the last commit" if files == 1 else "differ from the last commit"
    else:
        verb = "is to be in the first commit" if files == 1 else "are to be in the first commit"
    claims = [ToolClaim(f"{at_least}{count_noun(files, 'file')} {verb}", 1.0, "git diff")]
    if ran.left_out_bytes:
        diff = diff[: diff.rfind("\n") + 1]
        left = f"{ran.left_out_bytes:,} bytes at the end of the diff are left out"
        claims.append(ToolClaim(left, 1.0, "git diff"))
    return ToolResult(
        "success",
        data=_Diff(diff=diff, files=files, left_out_bytes=ran.left_out_bytes),
        claims=tuple(claims),
        text=diff.rstrip(),
    )


_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What a repository holds before its first commit; git knows it without having it."""
GIT_TOOLS = (show_status, show_diff)


def _ask_git(context: ToolContext, *words: str, most_bytes: int) -> Ran:
    project = project_of(context)
    program = _find_git(project)
    repository = _find_repository(project)
    excluded = (f":(exclude,literal){name}" for name in project.store_names())
    settings = (word for setting in _OURS for word in ("-c", setting))
    asked = ("--no-optional-locks", "--no-pager", *settings, *words, "--", ".", *excluded)
    with _own_directory(program, repository, context.limit_seconds) as git:
        ran = git(project.top, *asked, most_bytes=most_bytes)
    if ran.exit_code != 0:
        last = (ran.errors.strip().splitlines() or ["no output"])[0]
        raise UsageError(f"git {words[0]} ended with {ran.exit_code}: {last}")
    return ran


def _find_git(project: Project) -> str:
    """The program, from outside of what tools can write."""
    for name in project.environ.get("PATH", os.defpath).split(os.pathsep):
        program = shutil.which("git", path=name) if Path(name).is_absolute() else None
        if program is not None and not Path(program).resolve().is_relative_to(project.top):
            return program
    raise UsageError("git is not installed", fix="install git, outside of the project")


def _find_repository(project: Project) -> Path:
    for top in (project.top, *project.top.parents):
        entry = look_beneath(top, [".git"])
        place = top / ".git"
        if entry is None:
            continue
        if not stat.S_ISDIR(entry.st_mode) or look_beneath(place, ["commondir"]) is not None:
            message = f"{place} is that of a linked work tree or submodule, and its files lie elsewhere"
            raise UsageError(message, fix="ask in the repository itself")
        for name in ("objects", "refs"):
            kind = look_beneath(place, [name])
            if kind is None or not stat.S_ISDIR(kind.st_mode):
                raise UsageError(f"{place} is no git directory: it has no {name}")
        if look_beneath(place, ["reftable"]) is not None:
            raise UsageError(f"{place} is of a form that is not known here: reftable")
        if look_beneath(place, ["objects", "info", "alternates"]) is not None:
            fix = "git repack -ad; then delete the file"
            raise UsageError(f"{place} takes objects from elsewhere", fix=fix)
        return place
    raise UsageError("the project is in no git repository", fix="git init")


@contextmanager
def _own_directory(program: str, place: Path, limit_seconds: float) -> Iterator[_Git]:
    """Git for one question, with a git directory that is made for it, and nothing of the user's."""
    with work_directory("git") as directory:
        name = str(directory)
        head = _head_commit(place)
        for part in ("objects", "refs", "info"):
            (directory / part).mkdir()
        config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
        if head is not None and len(head) == _SHA256_DIGITS:
            config += "[extensions]\n\tobjectformat = sha256\n"
        (directory / "HEAD").write_text(f"{head or 'ref: refs/heads/none'}\n", encoding="utf-8")
        (directory / "config").write_text(config, encoding="utf-8")
        (directory / "info" / "exclude").write_bytes(_read(place, "info", "exclude"))
        for index in ("index", *sorted(path.name for path in place.glob("sharedindex.*"))):
            if (entry := look_beneath(place, [index])) is not None:  # its time tells what to look at again
                (directory / index).write_bytes(_read(place, index, most_bytes=entry.st_size + 1))
                os.utime(directory / index, ns=(entry.st_atime_ns, entry.st_mtime_ns))
        environ = {
            "PATH": str(Path(program).parent),
            "HOME": name,
            "XDG_CONFIG_HOME": name,
            "LC_ALL": "C",
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(place.parent),
            "GIT_OBJECT_DIRECTORY": str(place / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "false",
            "GIT_PAGER": "cat",
        }

        def git(directory: Path, *words: str, most_bytes: int) -> Ran:
            asked = (program, *words)
            limit = limit_seconds
            return run_process(
                asked, directory, environ, limit_seconds=limit, keep="start", most_bytes=most_bytes
            )

        _check_index(git, place)
        yield git


def _check_index(git: _Git, place: Path) -> None:
    """Raises UsageError if the index names a file outside of the work tree: git would look at it."""
    listed = git(place.parent, "ls-files", "-z", "--full-name", most_bytes=_MOST_INDEX_BYTES)
    if listed.exit_code != 0 or listed.left_out_bytes:
        raise UsageError(f"{place / 'index'} cannot be read: {listed.errors.strip()[:200]}")
    for name in listed.output.split(b"\0")[:-1]:
        if not {b"", b".", b"..", b".git"}.isdisjoint(name.lower().split(b"/")):
            readable_name = written_name(name)[:200]
            raise UsageError(f"{place / 'index'} names {readable_name!r}, which is no file of the work tree")


def _head_commit(place: Path) -> str | None:
    text = os.fsdecode(_read(place, "HEAD")).rstrip("\r\n")
    for _ in range(_MOST_LINKS):
        if _COMMIT.fullmatch(text):
            return text
        branch = _BRANCH.fullmatch(text)
        parts = branch[1].split("/") if branch else []
        if branch is None or not all(parts) or ".." in parts or "." in parts:
            raise UsageError(f"{place} is no git directory: its HEAD names no branch or commit")
        loose = read_beneath(place, parts, most_bytes=_MOST_TEXT_BYTES)
        if loose is None:
            packed = _read(place, "packed-refs", most_bytes=_MOST_PACKED_REFS_BYTES)
            match = re.search(rb"(?m)^([0-9a-f]{40,64}) " + re.escape(branch[1].encode()) + rb"$", packed)
            return match[1].decode() if match else None
        text = os.fsdecode(loose).rstrip("\r\n")
    raise UsageError(f"HEAD of {place} leads in a circle")


def _read(place: Path, *parts: str, most_bytes: int = _MOST_TEXT_BYTES) -> bytes:
    return read_beneath(place, parts, most_bytes=most_bytes) or b""
