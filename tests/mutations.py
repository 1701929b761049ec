"""Damage for turn directories, drawn from a seed."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    10**400,
    1e308,
    "",
    "\ud800",
    "\x00\x1b[2J",
    "x" * 100_000,
    [],
    {},
    [[{}]],
    {"_meta": {"a": [1]}},
    "9999-99-99T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "../../../etc/passwd",
)
_TEXTS = (
    b"",
    b"\n",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"9" * 10_000,
    b"1e999",
    b"NaN",
    b"null",
    b"[]",
    b'{"turn": ' + b"9" * 5_000 + b"}",
    b'{"\\ud800": "\\udfff"}',
    b"---\na: &a [*a]\n---\n",
    b"---\nturn: !!int x\n---\n",
    b"---\nturn: !!timestamp 99999-01-01\n---\n",
    b"---\n? [a, b]\n: c\n---\n",
    b"x" * 3_000_000,
)
_METAS = (
    b"&a [*a]",
    b"!!python/object:os.system x",
    b"!!binary x",
    b"!!set {a, b}",
    b".inf",
    b"0x" + b"f" * 5_000,
    b"9" * 5_000,
    b"1:" * 3_000 + b"1",
    b"{" * 2_000,
    b"- " * 2_000,
    b"{a: &a [x, x, x, x, x, x, x, x, x], "
    + b", ".join(
        b"%c: &%c [%s]" % (i + 1, i + 1, b", ".join([b"*%c" % i] * 9)) for i in range(ord("a"), ord("j"))
    )
    + b"}",
)


def mutate(turn: Path, seed: int) -> str:
    """
    Damage a turn directory in one to three ways.

    Args:
        turn: Its directory.
        seed: What is done depends on it alone.

    Returns:
        What was done, in words.
    """
    draw = random.Random(seed)
    done = []
    for _ in range(draw.randint(1, 3)):
        files = sorted(path for path in turn.rglob("*") if path.is_file() and not path.is_symlink())
        if not files:
            break
        path, change = draw.choice(files), draw.choice(_CHANGES)
        change(path, draw)
        done.append(f"{change.__name__} {path.relative_to(turn)}")
    return ", ".join(done)


def _flip_bytes(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(min(len(data), draw.choice((1, 3, 30)))):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)


def _drop_lines(path: Path, draw: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if draw.random() < 0.8))


def _shuffle_lines(path: Path, draw: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    draw.shuffle(lines)
    path.write_bytes(b"".join(lines))


def _double_lines(path: Path, draw: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line * draw.choice((1, 1, 2)) for line in lines))


def _cut(path: Path, draw: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randint(0, len(data))])


def _swap(path: Path, draw: random.Random) -> None:
    files = [one for one in path.parent.iterdir() if one.is_file() and not one.is_symlink()]
    other = draw.choice(sorted(files))
    mine, others = path.read_bytes(), other.read_bytes()
    path.write_bytes(others)
    other.write_bytes(mine)


def _replace_text(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.choice(_TEXTS))


def _insert_text(path: Path, draw: random.Random) -> None:
    data = path.read_bytes()
    place = draw.randint(0, len(data))
    path.write_bytes(data[:place] + draw.choice(_TEXTS[:-1]) + data[place:])


def _replace_meta(path: Path, draw: random.Random) -> None:
    """A value of some `key: value` line, where the file has one."""
    lines = path.read_bytes().split(b"\n")
    keyed = [i for i, line in enumerate(lines) if b": " in line]
    if keyed:
        chosen = draw.choice(keyed)
        lines[chosen] = lines[chosen].split(b": ")[0] + b": " + draw.choice(_METAS)
    path.write_bytes(b"\n".join(lines))


def _replace_value(path: Path, draw: random.Random) -> None:
    """A value inside a JSON file by one of another type or size."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        _replace_text(path, draw)
        return
    places: list[tuple[Any, Any]] = []
    open_: list[Any] = [value]
    while open_:
        one = open_.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else []
        places += [(one, key) for key in keys]
        open_ += [one[key] for key in keys]
    if places:
        holder, key = draw.choice(places)
        if isinstance(holder, dict) and draw.random() < 0.2:
            del holder[key]
        else:
            holder[key] = draw.choice(_VALUES)
    path.write_text(json.dumps(value), encoding="utf-8")


def _remove(path: Path, draw: random.Random) -> None:
    path.unlink()


def _make_directory(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _make_loop(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _make_link_up(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to(draw.choice(("..", "/", "missing", "/dev/zero", "/proc/self/mem")))


def _make_fifo(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _rename(path: Path, draw: random.Random) -> None:
    names = ("a\nb.json", "\udcff.md", "-x", "step_99999999999999999999.json", "x" * 250, "metadata.json")
    target = path.with_name(draw.choice(names))
    if not target.exists():
        path.rename(target)


def _replace_parent(path: Path, draw: random.Random) -> None:
    """The directory of the file by a file, if it is one inside of the turn."""
    if path.parent.name in ("steps", "webpage_cache") or path.parent.parent.name == "webpage_cache":
        moved = path.parent.with_name("moved")
        if not moved.exists():
            path.parent.rename(moved)
            path.parent.write_bytes(b"{}")


def _add_attempt(path: Path, draw: random.Random) -> None:
    directory = path.parent / "attempts" / draw.choice(("x", "1", "-1", "9" * 30))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "context.md").write_bytes(draw.choice(_TEXTS))


_CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    *(_flip_bytes, _drop_lines, _shuffle_lines, _double_lines, _cut, _swap, _replace_text, _insert_text),
    *(_replace_meta, _replace_meta, _replace_value, _replace_value, _replace_value, _remove),
    *(_make_directory, _make_loop, _make_link_up, _make_fifo, _rename, _replace_parent, _add_attempt),
)
