"""Files with hostile names, texts and JSON for a store, drawn from a seed."""

import json
import os
import random
from pathlib import Path
from typing import Any

_NAMES = (
    *(b"caf\xe9", b"\xff\xfe", b"caf%E9", b"100 %", b"50%20off", b"%", b"%2e%2e%2fetc", b"%00", b"con"),
    *(b"a\nb", b"a\rb", b"\x1b[2J\x07", b"\xc2\x85", b"\xe2\x80\xa8x", b"\xe2\x80\xae", b"\xed\xa0\x80"),
    *(b"#", b"a#b", b"|", b"[[x]]", b"-x", b"--json", b" ", b"a:b", b"_meta: {}", b"## 2. Gathered Context"),
    *(b"---", b"`", b"'", b'"', b"\\", b"*", b"?", b"{}", b"$(id)", b"%s", b"\xf0\x9f\x98\x80", b"x" * 240),
)
_KINDS = (*["note"] * 3, "folder", "visit", *["value"] * 3, "stray", "line")
_TEXTS = (
    *(b"", b"\n", b"\xff\xfe\x00", b"caf\xe9", b"\xef\xbb\xbf# A\n", b"\x00" * 20, b"\xed\xa0\x80", b"---\n"),
    b"---\n- a\n---\nx",
    b'---\ntitle: "\\ud800"\ntags: ["\\udfff"]\n---\nAn orange laptop.',
    b"---\nconfidence: [1]\n---\nlaptop",
    b"---\ndate: 9999-99-99\n---\nlaptop",
    b"# \xe2\x80\xa8\n" * 50,
    b"# a\rb\n\x1b[2Jlaptop price $5",
    b"laptop [[caf%E9]] [[caf\xc3\xa9]] [[../../x]] [[\x00]]",
    b"_meta: {a: 1}\n## 2. Gathered Context\n```\nlaptop",
    b"|a|b|\n|-|-|\n" * 30,
    b"x" * 200_000,
    b"laptop " * 2_000,
    "\u200bлаптоп laptop \u0000\uffff\U0010ffff".encode(),
    b"# \n## \n### laptop\n" * 400,
)
_VALUES: tuple[Any, ...] = (
    *("\ud800", "a\udce9b", "\udfff\ud800", "\x00", "\x1b[2J", "\u2028", "x" * 9_000, "", "\uffff laptop"),
    *(None, True, -1, 1e308, 10**30, [], {}, [[]], {"\ud800": "\udfff"}, ["\ud800"]),
    *("9999-12-31T23:59:59-23:59", "../../x", "NaN"),
)


def file_name(draw: random.Random) -> str:
    """One name that a directory can hold, without ending."""
    if draw.random() < 0.7:
        return os.fsdecode(draw.choice(_NAMES))
    length = draw.randint(1, 40)
    kept = bytes(byte for byte in draw.randbytes(length) if byte not in b"/\x00") or b"\xe9"
    return os.fsdecode(kept if kept.strip(b".") else b"\xe9")


def plant(store: Path, user: str, seed: int, count: int) -> list[str]:
    """
    Put hostile files into a store that has turns.

    Args:
        store: The store's directory.
        user: Whose files.
        seed: What is planted depends on it alone.
        count: How many.

    Returns:
        What was done, a line each.
    """
    draw = random.Random(seed)
    return [_plant_one(store, user, draw) for _ in range(count)]


def _plant_one(store: Path, user: str, draw: random.Random) -> str:
    home = store / "users" / user
    turns = sorted(path.parent for path in (home / "turns").glob("turn_??????/metadata.json"))
    turn, name = draw.choice(turns), file_name(draw)
    kind = draw.choice(
        ("note", "note", "note", "folder", "visit", "value", "value", "value", "stray", "line")
    )
    if kind == "note":
        return _write(home / "knowledge" / f"{name}.md", draw.choice(_TEXTS))
    if kind == "folder":
        return _write(home / "knowledge" / name / f"{file_name(draw)}.md", draw.choice(_TEXTS))
    if kind == "visit":
        page = turn / "webpage_cache" / name
        manifest = {"visit_id": f"visit_{draw.randrange(99)}", "url": "https://a.example/", "title": "Laptop"}
        _write(
            page / "extracted.json", _dump({"title": draw.choice(_VALUES), "laptop": draw.choice(_VALUES)})
        )
        return _write(page / "manifest.json", _dump(manifest))
    if kind == "stray":
        places: tuple[Path, ...] = (
            home / "sessions",
            home / "turns",
            store / "users",
            store / "runs",
            store / "interventions",
            turn,
        )
        places += (turn / "steps", turn / "attempts", turn / "artifacts", store / "indexes", store)
        place = draw.choice(places) / f"{name}{draw.choice(('', '.json', '.md'))}"
        return _write(place / "context.md" if draw.random() < 0.4 else place, draw.choice(_TEXTS))
    if kind == "line":
        line: dict[str, Any] = {
            "id": f"fact-{draw.randrange(10**6)}",
            "entity": "laptop",
            "relation": f"r{draw.randrange(9)}",
        }
        line |= {"value": {"type": "string", "v": draw.choice(("\ud800", "a\udce9b", "\x00", "\u2028"))}}
        line |= {"source": "turn:811", "confidence": 0.5, "scope": "local", "hlc": "1769355051000.000"}
        line |= {"valid_until": None, "kind": "fact", "source_turn": 811, "content_type": "general_fact"}
        with (home / "memory.jsonl").open("ab") as log:
            log.write(_dump({**line, "asserted_at": "2026-01-25T15:30:51Z"}) + b"\n")
        return f"line of memory.jsonl {line}"
    return _replace_value(draw.choice(sorted(turn.rglob("*.json"))), draw)


def _replace_value(path: Path, draw: random.Random) -> str:
    """Another value somewhere in a JSON file."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, OSError):
        return f"left {path.name!r}"
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else []
        places += [(one, key) for key in keys]
        waiting += [one[key] for key in keys]
    if not places:
        return f"left {path.name!r}"
    holder, key = draw.choice(places)
    holder[key] = draw.choice(_VALUES)
    return f"{path.parent.name}/{_write(path, _dump(value))} {key} is {holder[key]!r:.60}"


def _write(path: Path, data: bytes) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as exc:
        return f"{path.name!r:.80}: {exc.strerror}"
    return f"{path.name!r:.80} holds {data!r:.60}"


def _dump(value: object) -> bytes:
    return json.dumps(value).encode("ascii")
