"""
The tools git.*, answered without anything that a repository brings along.

Git never sees the repository's own directory. It is given one that is made for the question: a configuration
written here, a copy of the index, the commit of HEAD, and the place of the objects. Whatever could start a
program (filters, hooks, fsmonitor, external diffs, helpers, included files, lazy fetches) is named in a
configuration, and none but ours is read. The only values taken over are some that say how to compare files,
each one of a few words.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from panda.errors import UsageError
from panda.store.files import look_beneath, read_beneath, work_directory
from panda.store.records import Claim
from panda.tools.contract import Arguments, ToolContext, ToolResult, tool
from panda.tools.processes import MOST_OUTPUT_BYTES, Ran, run_process
from panda.tools.project import Project, written_name

_WORDS = frozenset(
    {
        *("true", "false", "yes", "no", "on", "off", "1", "0"),
        *("input", "lf", "crlf", "native", "default", "minimal", "sha1", "sha256"),
    }
)
_TAKEN_OVER = frozenset(
    {
        *(
            "core.autocrlf",
            "core.eol",
            "core.filemode",
            "core.ignorecase",
            "core.symlinks",
            "core.trustctime",
        ),
        *("core.checkstat", "core.precomposeunicode", "extensions.objectformat"),
    }
)
_WITHOUT_MEANING_HERE = frozenset(
    {"extensions.noop", "extensions.partialclone", "extensions.preciousobjects", "extensions.worktreeconfig"}
)
_OURS = (
    *("safe.bareRepository=explicit", "protocol.allow=never", "core.fsmonitor=false", "core.quotePath=false"),
    *("core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null"),
    *("core.pager=cat", "core.untrackedCache=false", "submodule.recurse=false", "gc.auto=0"),
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH = re.compile(r"ref: (refs/[^\x00-\x20\x7f~^:?*\[\\]+)")
_MOST_TEXT_BYTES = 1_000_000
_MOST_PACKED_REFS_BYTES = 100_000_000
_MOST_INDEX_BYTES = 500_000_000
_MOST_LINKS = 64
_MOST_NAME_BYTES = 50_000_000
_MOST_SHOWN = 500


class _Status(TypedDict):
    changes: list[str]
    left_out: int


class _Diff(TypedDict):
    diff: str
    files: int
    left_out_bytes: int


@tool("git.status", "read", "List the files of the project that differ from the last commit.", _Status)
def show_status(given: Arguments, context: ToolContext) -> ToolResult:
    """An entry for each file: two letters as `git status --porcelain` has them, and its name."""
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all")
    ran = _ask_git(context, *words, most_bytes=_MOST_NAME_BYTES)
    entries = _entries(ran.output)
    shown = entries[:_MOST_SHOWN]
    at_least = "at least " if ran.left_out_bytes else ""
    count = f"{at_least}{len(entries)} files differ from the last commit"
    return ToolResult(
        "success",
        data=_Status(changes=shown, left_out=len(entries) - len(shown)),
        claims=(Claim(count if entries else "nothing has changed", 1.0, "git status"),),
        text="\n".join(shown),
    )


def _entries(said: bytes) -> list[str]:
    """The entries of `git status -z`, less one that is cut off; former names stand behind new ones."""
    entries, names = [], iter(said.split(b"\0")[:-1])
    for name in names:
        former = next(names, None) if name[:1] in b"RC" or name[1:2] in b"RC" else None
        origin = f" (was {written_name(former)})" if former else ""
        entries.append(f"{name[:3].decode('ascii')}{written_name(name[3:])}{origin}")
    return entries


@tool("git.diff", "read", "Show what has changed in the project since the last commit.", _Diff)
def show_diff(given: Arguments, context: ToolContext) -> ToolResult:
    """A unified diff of the files that git knows, or the beginning of it."""
    has_commit = _head_commit(_find_repository(context.open_project())) is not None
    base = "HEAD" if has_commit else _EMPTY_TREE
    words = ("diff", base, "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
    names = _ask_git(context, *words, "--name-only", "-z", most_bytes=_MOST_NAME_BYTES)
    ran = _ask_git(context, *words, most_bytes=MOST_OUTPUT_BYTES)
    files = names.output.count(b"\0")
    at_least = "at least " if names.left_out_bytes else ""
    diff = ran.output.decode("utf-8", errors="replace")
    last = "differ from the last commit" if has_commit else "are to be in the first commit"
    claims = [Claim(f"{at_least}{files} files {last}", 1.0, "git diff")]
    if ran.left_out_bytes:
        diff = diff[: diff.rfind("\n") + 1]
        left = f"{ran.left_out_bytes:,} bytes at the end of the diff are left out"
        claims.append(Claim(left, 1.0, "git diff"))
    return ToolResult(
        "success",
        data=_Diff(diff=diff, files=files, left_out_bytes=ran.left_out_bytes),
        claims=tuple(claims),
        text=diff.rstrip(),
    )


_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What a repository holds before its first commit; git knows it without having it."""
GIT_TOOLS = (show_status, show_diff)


@dataclass(frozen=True)
class _Repository:
    """Where the parts of a repository are."""

    work_tree: Path  # top of its files
    own: Path  # what belongs to this work tree: HEAD and index
    shared: Path  # what all work trees share: objects, refs, configuration


def _ask_git(context: ToolContext, *words: str, most_bytes: int) -> Ran:
    """What git says of the project's own directory, which may be a part of a larger repository."""
    project = context.open_project()
    program, repository = _find_git(project), _find_repository(project)
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
        found = shutil.which("git", path=name) if Path(name).is_absolute() else None
        if found is not None and not Path(found).resolve().is_relative_to(project.top):
            return found
    raise UsageError("git is not installed", fix="install git, outside of the project")


def _find_repository(project: Project) -> _Repository:
    """The repository whose work tree the project is, or is a part of."""
    for top in (project.top, *project.top.parents):
        entry = look_beneath(top, [".git"])
        if entry is None:
            continue
        own = top / ".git" if stat.S_ISDIR(entry.st_mode) else _pointed_to(top)
        common = _line(own, "commondir")
        shared = Path(os.path.normpath(own / common)) if common else own
        if shared != own and shared / "worktrees" != own.parent:
            raise UsageError(f"{own} shares files with {shared}, to which it does not belong")
        if shared.is_relative_to(project.top) and ".git" not in shared.relative_to(project.top).parts:
            raise UsageError(f"{shared} is a place for git that tools could write")
        for name in ("objects", "refs"):
            kind = look_beneath(shared, [name])
            if kind is None or not stat.S_ISDIR(kind.st_mode):
                raise UsageError(f"{shared} is no git directory: it has no {name}")
        if look_beneath(shared, ["objects", "info", "alternates"]) is not None:
            fix = "git repack -ad; then delete the file"
            raise UsageError(f"{shared} takes objects from elsewhere", fix=fix)
        return _Repository(top, own, shared)
    raise UsageError("the project is in no git repository", fix="git init")


def _pointed_to(top: Path) -> Path:
    """The directory that a `.git` file names, and that names the work tree in turn."""
    place = top / ".git"
    text = _line(top, ".git")
    if not text.startswith("gitdir: "):
        raise UsageError(f"{place} is neither a directory nor a pointer to one")
    target = Path(os.path.normpath(top / text.removeprefix("gitdir: ")))
    if target != target.resolve():
        raise UsageError(f"{place} points to {target}, which passes a symlink")
    config = os.fsdecode(_read(target, "config"))
    named = [f"{found}/.git" for found in re.findall(r"(?m)^\s*worktree\s*=\s*(.*\S)\s*$", config)]
    if back := _line(target, "gitdir"):
        named.append(back)
    if place not in (Path(os.path.normpath(target / name)) for name in named):
        raise UsageError(f"{place} points to {target}, which belongs to another work tree")
    return target


@contextmanager
def _own_directory(program: str, repository: _Repository, limit_seconds: float) -> Iterator["_Git"]:
    """Git for one question, with a git directory that is made for it, and nothing of the user's."""
    with work_directory("git") as directory:
        name = str(directory)
        for part in ("objects", "refs", "info"):
            (directory / part).mkdir()
        head = _head_commit(repository)
        (directory / "HEAD").write_text(f"{head or 'ref: refs/heads/none'}\n", encoding="utf-8")
        (directory / "config").write_text("[core]\n\trepositoryformatversion = 0\n", encoding="utf-8")
        environ = {
            "PATH": str(Path(program).parent),
            "HOME": name,
            "XDG_CONFIG_HOME": name,
            "LC_ALL": "C",
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(repository.work_tree),
            "GIT_OBJECT_DIRECTORY": str(repository.shared / "objects"),
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
        git = _Git(program, environ, limit_seconds)
        (directory / "theirs").write_bytes(_read(repository.shared, "config"))
        listed = git(
            directory, "config", "--file", str(directory / "theirs"), "--no-includes", "--null", "--list"
        )
        if listed.exit_code != 0:
            raise UsageError(f"{repository.shared / 'config'} cannot be read: {listed.errors.strip()[:200]}")
        (directory / "config").write_text(_configuration(listed.output, repository), encoding="utf-8")
        _copy_index(repository.own, directory)
        (directory / "info" / "exclude").write_bytes(_read(repository.shared, "info", "exclude"))
        _check_index(git, repository)
        yield git


@dataclass(frozen=True)
class _Git:
    """Git as it is asked here."""

    program: str
    environ: Mapping[str, str]  # its whole environment
    limit_seconds: float

    def __call__(self, directory: Path, *words: str, most_bytes: int = _MOST_TEXT_BYTES) -> Ran:
        """What it says; of a long answer the beginning."""
        asked = (self.program, *words)
        limit = self.limit_seconds
        return run_process(
            asked, directory, self.environ, limit_seconds=limit, keep="start", most_bytes=most_bytes
        )


def _check_index(git: _Git, repository: _Repository) -> None:
    """Raises UsageError if the index names a file outside of the work tree: git would look at it."""
    listed = git(repository.work_tree, "ls-files", "-z", "--full-name", most_bytes=_MOST_INDEX_BYTES)
    if listed.exit_code != 0 or listed.left_out_bytes:
        raise UsageError(f"{repository.own / 'index'} cannot be read: {listed.errors.strip()[:200]}")
    for name in listed.output.split(b"\0")[:-1]:
        if not {b"", b".", b"..", b".git"}.isdisjoint(name.lower().split(b"/")):
            shown = written_name(name)[:200]
            raise UsageError(f"{repository.own / 'index'} names {shown!r}, which is no file of the work tree")


def _configuration(listed: bytes, repository: _Repository) -> str:
    """Our configuration, with what is taken over from theirs."""
    sections: dict[str, dict[str, str]] = {"core": {"repositoryformatversion": "0", "bare": "false"}}
    for entry in listed.decode("utf-8", "replace").split("\0")[:-1]:
        key, has_value, value = entry.partition("\n")
        word = value.lower() if has_value else "true"
        section, _, variable = key.partition(".")
        if key in _TAKEN_OVER and word in _WORDS:
            sections.setdefault(section, {})[variable] = word
        elif (key == "extensions.refstorage" and word == "files") or key in _WITHOUT_MEANING_HERE:
            continue
        elif section == "extensions" or (key == "core.repositoryformatversion" and word not in ("0", "1")):
            what = written_name(entry.encode()).replace("\\x0a", " = ")[:200]
            raise UsageError(f"{repository.shared} is of a form that is not known here: {what}")
    if "extensions" in sections:
        sections["core"]["repositoryformatversion"] = "1"
    return "".join(
        f"[{section}]\n" + "".join(f"\t{name} = {word}\n" for name, word in values.items())
        for section, values in sections.items()
    )


def _copy_index(own: Path, made: Path) -> None:
    """The index, with its time, which tells git which of its entries to look at again; and what it shares."""
    for name in ("index", *sorted(place.name for place in own.glob("sharedindex.*"))):
        if (found := look_beneath(own, [name])) is not None:
            (made / name).write_bytes(_read(own, name, most_bytes=found.st_size + 1))
            os.utime(made / name, ns=(found.st_atime_ns, found.st_mtime_ns))


def _head_commit(repository: _Repository) -> str | None:
    """The commit that HEAD means; None if there is none yet."""
    text = _line(repository.own, "HEAD")
    for _ in range(_MOST_LINKS):
        if _COMMIT.fullmatch(text):
            return text
        branch = _BRANCH.fullmatch(text)
        parts = branch[1].split("/") if branch else []
        if branch is None or not all(parts) or ".." in parts or "." in parts:
            raise UsageError(f"{repository.own} is no git directory: its HEAD names no branch or commit")
        loose = read_beneath(repository.shared, parts, most_bytes=_MOST_TEXT_BYTES)
        if loose is None:
            packed = _read(repository.shared, "packed-refs", most_bytes=_MOST_PACKED_REFS_BYTES)
            found = re.search(rb"(?m)^([0-9a-f]{40,64}) " + re.escape(branch[1].encode()) + rb"$", packed)
            return found[1].decode() if found else None
        text = os.fsdecode(loose).rstrip("\r\n")
    raise UsageError(f"HEAD of {repository.own} leads in a circle")


def _read(place: Path, *parts: str, most_bytes: int = _MOST_TEXT_BYTES) -> bytes:
    """A file below a directory, no symlink passed; b"" if there is none."""
    return read_beneath(place, parts, most_bytes=most_bytes) or b""


def _line(place: Path, *parts: str) -> str:
    return os.fsdecode(_read(place, *parts)).rstrip("\r\n")
