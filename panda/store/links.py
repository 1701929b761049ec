"""
Symbolic links of a store that lead out of it: followed only if the user has said so.

The one check of every path of a store, asked by store_errors before anything is opened. Which stores there
are is kept for the whole process, like the umask, because a path does not know what it belongs to.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from panda.errors import Location, UntrustedError

FIX = "look at it with panda trust --dry-run, then panda trust"
"""What to do about anything that is not trusted yet."""

_MOST_HOPS = 40


@dataclass(frozen=True)
class _Store:
    """A store whose links are watched."""

    real: str  # its root without links
    allows: Callable[[str, str], bool]  # whether a link, by its own path, may lead to a path outside
    fix: str  # what to do about one that may not


_stores: dict[str, _Store] = {}  # by root, both as it is named and without links


def watch_store(root: Path, allows: Callable[[str, str], bool], fix: str = FIX) -> None:
    """
    From now on check every path below a root for links that lead out of it.

    Args:
        root: A store's root; it need not be there yet.
        allows: Whether a link may be followed. It is given the path of the link, without links before its
            last part, and that of what it leads to.
        fix: What to do about a link that may not.
    """
    real = os.path.realpath(root)
    _stores[os.path.normpath(root)] = _stores[real] = _Store(real, allows, fix)


def forget_store(root: Path) -> None:
    """Check no path below a root any more."""
    for name in (os.path.normpath(root), os.path.realpath(root)):
        _stores.pop(name, None)


def check_links(path: Path | str, _hops: int = 0) -> None:
    """
    Let a path pass, unless it is below a watched store and a link on the way leads out that may not.

    Raises:
        UntrustedError: It does.
    """
    text = os.fspath(path)
    root = max((root for root in _stores if _is_below(text, root)), key=len, default=None)
    if root is None:
        return
    if ".." in text[len(root) :].split("/"):
        text = os.path.normpath(text)
        if not _is_below(text, root):
            raise UntrustedError(f"{path} leads out of the store", where=str(path), fix="leave out ..")
    store = _stores[root]
    parts = [part for part in text[len(root) :].split("/") if part]
    at = inside = store.real
    for number, part in enumerate(parts):
        at = f"{at}/{part}"
        try:
            if not stat.S_ISLNK(os.lstat(at).st_mode):
                continue
            hop = _one_hop(Path(at))
        except OSError:
            return  # nothing there: whoever opens it will be told
        if _hops < _MOST_HOPS and any(_is_below(hop, other) for other in _stores):
            check_links("/".join([hop, *parts[number + 1 :]]), _hops + 1)
            return
        at, link = os.path.realpath(at), at
        if not (_is_below(at, inside) or any(_is_below(at, other.real) for other in _stores.values())):
            if not store.allows(link, at):
                raise UntrustedError(f"this link leads out of the store, to {at}", where=link, fix=store.fix)
            inside = at


def watch_also(root: Path, *, like: Path) -> None:
    """Check every path below a root as below another one."""
    if (store := _stores.get(os.path.realpath(like))) is not None:
        watch_store(root, store.allows, store.fix)


def check_store(root: str, *, named_in: Path, key: str) -> None:
    """Let a store pass that a file names: a watched one, or one that may be reached as if by a link."""
    at, target = os.path.realpath(named_in), os.path.realpath(root.replace("\0", "/"))
    if target in _stores:
        return
    own = _stores.get(max((one for one in _stores if _is_below(at, one)), key=len, default=""))
    if own is None or not own.allows(named_place(at, target), target):
        message = f"it names another store, {target}"
        raise UntrustedError(message, where=Location(named_in, key=key), fix=own.fix if own else FIX)
    watch_store(Path(target), own.allows, own.fix)


def named_place(path: str, target: str) -> str:
    """A place that a file names, as the link that it amounts to."""
    return f"{path} ({target})"


def may_pass(path: Path | str) -> bool:
    """Whether check_links lets a path pass."""
    try:
        check_links(path)
    except UntrustedError:
        return False
    return True


def leaving_links(root: Path, allows: Callable[[str, str], bool]) -> list[tuple[str, str]]:
    """
    Every link below a root that leads out of it. Behind one that may not be followed nothing is looked for.

    Args:
        root: A store's root.
        allows: As for watch_store.

    Returns:
        Path of the link, without links before its last part, and of what it leads to; sorted.
    """
    real = os.path.realpath(root)
    found: dict[str, str] = {}
    todo, seen = [(real, real)], {real}
    while todo:
        directory, inside = todo.pop()
        for entry in _entries(directory):
            if not entry.is_symlink():
                if entry.is_dir(follow_symlinks=False):
                    todo.append((entry.path, inside))
                continue
            target = os.path.realpath(entry.path)
            if _is_below(target, real) or _is_below(target, inside):
                continue
            found[entry.path] = target
            if target not in seen and Path(target).is_dir() and allows(entry.path, target):
                seen.add(target)
                todo.append((target, target))
    return sorted(found.items())


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []  # whoever reads it will be told


def _one_hop(link: Path) -> str:
    """Where a link leads at first; "" if that cannot be said without asking the disk again."""
    target = link.readlink()
    down = dropwhile("..".__eq__, target.parts)
    return "" if ".." in down else os.path.normpath(link.parent / target)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else root + "/")
