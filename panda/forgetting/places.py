"""Where something that was told stands: in every file of a store and of the cache."""

import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from panda.documents.context import ContextDocument, Meta, Text, parse_context, render_context
from panda.documents.memory_file import parse_memory_file
from panda.errors import FileFormatError, PandaError, StoreError
from panda.memory.fact import Assertion, id_of, parse_assertion
from panda.recipes.calls import text_digest
from panda.storage.files import read_bytes
from panda.storage.formats import json_problems
from panda.storage.index_sources import users_of
from panda.storage.layout import (
    CONTENT_MD,
    CONTEXT_MD,
    EXTRACTED_JSON,
    FACTS_MD,
    GATHERED_CONTEXT_JSON,
    MANIFEST_JSON,
    MEMORY_JSONL,
    METADATA_JSON,
    PREFERENCES_MD,
    RUN_TURNS_JSONL,
    STAGED_MEMORY_JSON,
    SUMMARY_JSON,
    Layout,
    turn_number,
)
from panda.storage.links import may_pass
from panda.storage.records import load_object, turn_directories, visit_directories

SHORT_CHARS = 4  # a text with fewer characters counts only as a word of its own
_QUOTATION_CHARS = 16  # so long a line of a forgotten turn or page is a quotation wherever it stands
_DERIVED = {".db", ".db-wal", ".db-shm", ".state", ".gguf", ".png", ".jpg"}
_FIXED = re.compile(
    r"[0-9a-f]{12,}|fact-[0-9a-f]{16}|[0-9]+\.[0-9]{3}|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"
)
"""Digests, ids, clock readings and instants: no part of them was told."""

_WORDED: Mapping[str, Any] = {
    "expected": None,
    "received": None,
    "raw_output": None,
    "details": {},
    "findings": [],
    "different": {},
    "misses": [],
}
"""What records of a turn hold of its words, and what is there instead; None is the mark."""

Owner = tuple[str, int]  # user and number of a turn


@dataclass(frozen=True)
class Secret:
    """A text that is to be forgotten, and where it is."""

    text: str  # not blank
    own: frozenset[Owner] = frozenset()  # turns in which it goes wherever it stands
    near: tuple[str, ...] = ()  # elsewhere it goes from lines that hold one of these too
    is_free: bool = False  # whether it goes wherever it stands, in the whole store
    whole_words: bool = True  # whether it counts only where it is no part of a longer word
    instead: str | None = None  # what stands there then; None is the mark

    @property
    def is_coded(self) -> bool:
        """Whether it is more than words, as passwords are: then it is looked for in lower case as well."""
        return not self.text.replace(" ", "").isalpha()

    @property
    def forms(self) -> tuple[str, ...]:
        """The text as files may hold it: joined to one line, in JSON within JSON, in a URL, normalised."""
        plain = dict.fromkeys(
            [self.text, " ".join(self.text.split()), unicodedata.normalize("NFKC", self.text)]
        )
        found = dict.fromkeys(plain)
        for text in plain:
            for coded in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
                found |= dict.fromkeys([coded, json.dumps(coded)[1:-1]])
            found |= dict.fromkeys([quote(text, errors="replace"), quote_plus(text, errors="replace")])
        return tuple(sorted(found, key=len, reverse=True))

    def pattern(self, *, lower: bool) -> re.Pattern[str]:
        """Finds each form; with *lower* in lower case as well, as derived files may hold it."""
        forms = dict.fromkeys([*self.forms, *(one.lower() for one in self.forms if lower)])
        bounded = self.whole_words or len(self.text) < SHORT_CHARS
        return re.compile("|".join(_bounded(one) if bounded else re.escape(one) for one in forms))


def _bounded(text: str) -> str:
    before, after = (
        (r"(?<!\w)" if re.match(r"\w", text) else ""),
        (r"(?!\w)" if re.search(r"\w\Z", text) else ""),
    )
    return f"{before}{re.escape(text)}{after}"


@dataclass(frozen=True)
class Request:
    """What is to be forgotten."""

    secrets: tuple[Secret, ...] = ()  # texts
    facts: frozenset[str] = frozenset()  # ids of assertions of which nothing but the key stays
    turns: frozenset[Owner] = frozenset()  # turns of which nothing but the number stays
    directories: tuple[Path, ...] = ()  # directories that go as a whole: pages as they were read
    users: tuple[str, ...] = ()  # whose files lose it; others' are left alone


@dataclass(frozen=True)
class Place:
    """A file that holds some of it."""

    path: Path  # the file
    count: int  # number of occurrences; of what goes as a whole 1
    left: str | None = None  # why only the user can remove it; None where panda does


@dataclass
class Sieve:
    """
    Takes texts out of the content of files.

    Args:
        mark: What stands there then.
    """

    request: Request
    mark: str
    count: int = 0  # how much was taken out so far
    _patterns: Sequence[tuple[Secret, re.Pattern[str], re.Pattern[str]]] = field(init=False)
    _any: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        secrets = self.request.secrets
        self._patterns = [(one, one.pattern(lower=False), one.pattern(lower=True)) for one in secrets]
        texts = dict.fromkeys(form.lower() for one in secrets for form in one.forms)
        self._any = re.compile("|".join(map(re.escape, texts)) if texts else r"(?!)")

    def file(self, path: Path, data: bytes, owner: Owner | None) -> tuple[bytes, int]:
        """
        A file's content without the texts, and how many there were.

        Args:
            path: Its name tells the format.
            owner: The turn that it belongs to.
        """
        text = data.decode("utf-8", "surrogateescape")
        is_log = path.name == MEMORY_JSONL
        of_turn = bool(self.request.turns) and (
            path.parent.name == "interventions" or path.name == RUN_TURNS_JSONL
        )
        if owner is not None and owner[0] not in self.request.users:
            return data, 0
        if not self._any.search(text.lower()) and not (is_log and self.request.facts) and not of_turn:
            return data, 0
        self.count = 0
        if path.suffix == ".jsonl":
            made = "\n".join(self._json_line(line, owner, is_log) for line in text.split("\n"))
        elif path.suffix == ".json":
            made = self._json(text, owner)
        elif path.name == CONTEXT_MD:
            made = self._context(text, owner)
        else:
            made = self.text(text, owner)
        return made.encode("utf-8", "surrogateescape"), self.count

    def text(self, text: str, owner: Owner | None, beside: str = "") -> str:
        """A text without them; *beside* counts as standing in each of its lines."""
        is_fixed = _FIXED.fullmatch(text) is not None
        for secret, exact, loose in self._patterns:
            if is_fixed and secret.instead is None:
                continue
            is_own = owner is not None and owner in secret.own
            pattern = loose if is_own or secret.is_coded else exact
            if secret.is_free or is_own:
                text = self._sub(secret, pattern, text)
            elif secret.near and pattern.search(text):
                near = re.compile("|".join(map(_bounded, secret.near)), re.IGNORECASE)
                is_near = near.search(beside) is not None
                lines = (
                    self._sub(secret, pattern, line) if is_near or near.search(line) else line
                    for line in text.split("\n")
                )
                text = "\n".join(lines)
        return text

    def _sub(self, secret: Secret, pattern: re.Pattern[str], text: str) -> str:
        made, count = pattern.subn(lambda _: self.mark if secret.instead is None else secret.instead, text)
        self.count += count if secret.instead is None else 0
        return made

    def value(self, value: Any, owner: Owner | None, beside: str = "") -> Any:
        """A JSON value without them."""
        if isinstance(value, str):
            return self.text(value, owner, beside)
        if isinstance(value, list):
            return [self.value(one, owner, beside) for one in value]
        if not isinstance(value, dict):
            return value
        beside = f"{beside} {' '.join(_texts(value))}"
        if value.get("type") == "number" and "v" in value:
            said = self.text(str(value["v"]), owner, beside)
            return value if said == str(value["v"]) else {"type": "string", "v": self.mark}
        made = {self.text(key, owner): self.value(one, owner, beside) for key, one in value.items()}
        if made.get("content") != value.get("content") and isinstance(made.get("sha256"), str):
            made["sha256"] = text_digest(made["content"])
        return made

    def _json(self, text: str, owner: Owner | None) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text, owner)
        made = self._record(value, owner)
        if made == value:
            return text
        if "\n  " in text:
            return json.dumps(made, ensure_ascii=False, indent=2) + "\n"
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"

    def _json_line(self, line: str, owner: Owner | None, is_log: bool) -> str:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return self.text(line, owner)
        if is_log and isinstance(value, dict):
            made = self.assertion(value, owner)
        else:
            made = self._record(value, owner)
        return line if made == value else json.dumps(made, ensure_ascii=False)

    def _record(self, value: Any, owner: Owner | None) -> Any:
        """A JSON document or line; one about a turn that goes as a whole keeps none of its words."""
        about = _owner_of(value)
        if about is not None and about[0] not in self.request.users:
            return value
        made = self.value(value, about or owner)
        if about in self.request.turns and isinstance(made, dict):
            worded = [name for name in _WORDED if made.get(name) and made[name] != self.mark]
            self.count += len(worded)
            made |= {name: _WORDED[name] if _WORDED[name] is not None else self.mark for name in worded}
            made |= {"outcome": None} if made.get("outcome") else {}
        return made

    def assertion(self, raw: Mapping[str, Any], owner: Owner | None) -> Mapping[str, Any]:
        """A line of memory.jsonl: with nothing left to say it retracts; its id is that of what it says."""
        turn = raw.get("source_turn")
        turn = (owner[0], turn) if owner and isinstance(turn, int) else None
        if raw.get("id") in self.request.facts:
            self.count += not _is_mark(raw["value"])
            value = raw["value"] if _is_mark(raw["value"]) else {"type": "string", "v": self.mark}
            made = {**raw, "value": value, "confidence": 0.0}
        else:
            plain = {name: one for name, one in raw.items() if name not in ("value", "id")}
            near = f"{raw.get('relation')}: {raw.get('source')}"
            made = {**raw, **self.value(plain, turn), "value": self.value(raw["value"], turn, near)}
            if made["value"] != raw["value"] and _is_mark(made["value"]):
                made["confidence"] = 0.0
        if made["value"] == raw["value"]:
            return made
        try:
            before, after = parse_assertion(raw, where="").fact, parse_assertion(made, where="").fact
        except FileFormatError:
            return made
        return {**made, "id": id_of(after)} if before.id == id_of(before) else made

    def _context(self, text: str, owner: Owner | None) -> str:
        try:
            document = parse_context(text, where="")
        except PandaError:
            return self.text(text, owner)
        sections = []
        for section in document.sections:
            blocks = [
                Meta(self.value(dict(block.values), owner))
                if isinstance(block, Meta)
                else Text(self.text(block.text, owner))
                for block in section.blocks
            ]
            sections.append(replace(section, blocks=tuple(blocks)))
        made = ContextDocument(document.front, tuple(sections))
        return text if made == document else render_context(made)


def _values(one: Assertion) -> list[str]:
    """The texts that an assertion's value is made of; what is only true, false or nothing has none."""
    said = one.fact.value.to_json().get("v")
    parts = said if isinstance(said, list) else [said]
    told = [str(part).strip() for part in parts if not isinstance(part, bool | None)]
    return [text for text in told if text and not MARK.fullmatch(text)]


def _texts_of(node: str, value: object) -> Iterator[str]:
    """The texts in a JSON value that name this node as their only source."""
    if isinstance(value, list):
        for part in value:
            yield from _texts_of(node, part)
    elif isinstance(value, dict):
        text = value.get("text")
        is_of_node = value.get("node_ids") == [node] or value.get("node_id") == node
        if is_of_node and isinstance(text, str) and not MARK.search(text):
            yield text
        yield from _texts_of(node, list(value.values()))


def _leaves(value: object) -> Iterator[str]:
    """All texts and numbers of a JSON value."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _object(path: Path) -> dict[str, Any]:
    with suppress(FileFormatError, StoreError):
        return load_object(path) if path.is_file() else {}
    return {}


def _texts(value: Mapping[str, Any]) -> Iterator[str]:
    for one in value.values():
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            yield from (part for part in one if isinstance(part, str))


def _is_mark(value: object) -> bool:
    """Whether nothing but marks is left of a typed value."""
    said = value.get("v") if isinstance(value, dict) else None
    parts = said if isinstance(said, list) else [said]
    return bool(parts) and all(isinstance(one, str) and MARK.fullmatch(one) for one in parts)


MARK = re.compile(r"\[forgotten \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\]")
"""What stands where something was forgotten."""


def _owner_of(value: object) -> Owner | None:
    """The turn that a record says that it is of."""
    if not isinstance(value, dict):
        return None
    user, turn = value.get("user_id", value.get("user")), value.get("turn")
    return (user, turn) if isinstance(user, str) and isinstance(turn, int) else None


def owner_of_path(layout: Layout, path: Path) -> tuple[Owner | None, Path | None]:
    """
    The turn that a file belongs to, be it the saved one or one of a run, and its directory.

    For a file of a user that belongs to no turn: the user with turn 0.
    """
    parts = path.relative_to(layout.root).parts if path.is_relative_to(layout.root) else ()
    for n, part in enumerate(parts[:-1]):
        number = turn_number(part)
        if number is not None and n >= 2:
            user = parts[n - 2] if parts[n - 1] == "turns" else parts[n - 1]
            return (user, number), layout.root.joinpath(*parts[: n + 1])
    return ((parts[1], 0) if len(parts) > 2 and parts[0] == "users" else None), None


def files_below(directory: Path) -> Iterator[Path]:
    """All regular files below a directory, behind links that may be followed too; sorted."""
    seen: set[str] = set()
    for place, below, names in os.walk(directory, followlinks=True):
        real = os.path.realpath(place)
        if real in seen or not may_pass(Path(place)):
            below[:] = []
            continue
        seen.add(real)
        below.sort()
        yield from (path for name in sorted(names) if (path := Path(place, name)).is_file())


class Finder:
    """Finds the places of what is to be forgotten; nothing is written."""

    def __init__(self, layout: Layout, caches: Sequence[Path]) -> None:
        self.layout = layout
        self.caches = tuple(dict.fromkeys(one for one in caches if one.is_dir()))

    def is_note(self, path: Path) -> bool:
        """Whether a file is the user's own."""
        parts = path.relative_to(self.layout.root).parts if path.is_relative_to(self.layout.root) else ()
        return len(parts) > 3 and parts[0] == "users" and parts[2] == "knowledge"

    def files(self) -> Iterator[Path]:
        """All files of the store that could hold a text, notes included, but for those that are derived."""
        for path in files_below(self.layout.root):
            if path.suffix not in _DERIVED and not path.name.endswith(".lock"):
                yield path

    def cached(self) -> Iterator[tuple[Path, bool]]:
        """The files of the cache, and whether it cannot be told what they are made of: kept states."""
        for cache in self.caches:
            for path in files_below(cache):
                if path.suffix == ".state" or path.parent.name not in ("models", "digests"):
                    yield path, path.suffix == ".state"

    def of_text(self, text: str) -> Request:
        """Exactly this text, wherever it stands."""
        secret = Secret(text, is_free=True, whole_words=len(text) < SHORT_CHARS)
        return Request((secret,), users=tuple(users_of(self.layout)))

    def of_facts(self, user: str, facts: Sequence[Assertion], derived: Sequence[Assertion] = ()) -> Request:
        """
        What assertions say: in the turns that said it, and wherever they are quoted.

        A value that other turns hold too, which quote none of them, is a word like any other there: it goes
        only from lines that quote.

        Args:
            derived: Assertions that may have been taken out of them; their values that stand in none stay.
        """
        whole = "\n".join(value for one in facts for value in _values(one))
        taken = {one.fact.id: [v for v in _values(one) if re.search(_bounded(v), whole)] for one in derived}
        facts = [*facts, *(one for one in derived if taken[one.fact.id])]
        own = frozenset((user, one.source_turn) for one in facts if one.source_turn is not None)
        said = [text for owner in sorted(own) for text in self._told(owner)]
        texts: dict[str, list[str]] = {}
        for one in facts:
            key = one.subject.key(user)
            names = [f"{key}:", f"{one.fact.relation}:", f"memory:{key}", f"fact:{key}"]
            names += [f"{one.fact.relation.replace('_', ' ')}:"]
            for value in taken.get(one.fact.id) or _values(one) or self._worded(user, one, key):
                texts.setdefault(value, []).extend(names)
        secrets = []
        for value, names in texts.items():
            quoting = [text for text in said if Secret(value).pattern(lower=True).search(text)]
            near = tuple(dict.fromkeys([*names, *quoting]))
            if len(value) < SHORT_CHARS:
                secrets.append(Secret(value, near=near))
            elif self._is_told_only(Secret(value, own, near), user):
                secrets.append(Secret(value, own, is_free=True))
                secrets += self._pieces(value, own, near, user)
            else:
                secrets.append(Secret(value, own, near))
        ids = frozenset(one.fact.id for one in facts if taken.get(one.fact.id, _values(one)) == _values(one))
        return Request(tuple(secrets), ids, users=(user,))

    def of_turn(self, user: str, number: int, facts: Sequence[Assertion]) -> Request:
        """
        A whole turn: what was said in it, what was remembered of it, and where it is quoted.

        Args:
            facts: The assertions of which it is the source.
        """
        node = f"turn:{number}"
        near = (node, f"Turn {number}:")
        others = {query for owner, query in self._queries(user) if owner != (user, number)}
        told = [*self._told((user, number)), *self._cited(user, node)]
        secrets = [
            Secret(text, near=near, is_free=len(text) >= _QUOTATION_CHARS and text not in others)
            for text in dict.fromkeys(told)
        ]
        of_facts = self.of_facts(user, facts)
        turns = frozenset([(user, number)])
        return Request((*secrets, *of_facts.secrets), of_facts.facts, turns, users=(user,))

    def of_visit(self, user: str, visit_id: str) -> Request | None:
        """A page as it was read, and what its turn and others quote of it; None if there is none."""
        for number, turn in turn_directories(self.layout.turns(user)):
            for directory in visit_directories(turn):
                manifest = _object(directory / MANIFEST_JSON)
                if manifest.get("visit_id") != visit_id:
                    continue
                content = read_there(directory / CONTENT_MD).decode("utf-8", "replace")
                lines = [line.strip("-*# \t\r") for line in content.split("\n")]
                texts = [*self._cited(user, f"visit:{visit_id}"), *lines]
                near = (visit_id, str(manifest.get("url")))
                own = frozenset([(user, number)])
                long = [text for text in dict.fromkeys(texts) if len(text) >= _QUOTATION_CHARS]
                secrets = [Secret(text, own, near) for text in long]
                fields = dict.fromkeys(_leaves(_object(directory / EXTRACTED_JSON)))
                secrets += [Secret(text, near=near) for text in fields if len(text) >= SHORT_CHARS]
                return Request(tuple(secrets), directories=(directory,), users=(user,))
        return None

    def _told(self, owner: Owner) -> list[str]:
        """What was said in a turn, as its files hold it: the query, what was staged, what it came to."""
        paths = self.layout.turn(*owner)
        staged = _object(paths / STAGED_MEMORY_JSON).get("staged")
        statements = [one.get("text") for one in staged or () if isinstance(one, dict)]
        found = [_object(paths / METADATA_JSON).get("query"), *statements]
        found += [_object(paths / SUMMARY_JSON).get("turn_summary")]
        return [text for text in found if isinstance(text, str) and text.strip() and not MARK.search(text)]

    def _worded(self, user: str, one: Assertion, key: str) -> Iterator[str]:
        """The sentence of an assertion whose value is no text, and how files show it."""
        if one.source_turn is not None:
            staged = _object(self.layout.turn(user, one.source_turn) / STAGED_MEMORY_JSON).get("staged")
            for said in staged or ():
                if said.get("relation") == one.fact.relation and isinstance(said.get("text"), str):
                    yield said["text"]
        yield f"{key}: {json.dumps(one.fact.value.to_json().get('v'))}"

    def _queries(self, user: str) -> Iterator[tuple[Owner, str]]:
        for number, turn in turn_directories(self.layout.turns(user)):
            yield (user, number), str(_object(turn / METADATA_JSON).get("query"))

    def _cited(self, user: str, node: str) -> Iterator[str]:
        """What turns have gathered, or found with a tool, of a node and of no other."""
        for _, turn in turn_directories(self.layout.turns(user)):
            for path in (turn / GATHERED_CONTEXT_JSON, *sorted(turn.glob("steps/*.json"))):
                yield from _texts_of(node, _object(path))

    def _is_told_only(self, secret: Secret, user: str) -> bool:
        """
        Whether no turn holds the text but those that said it and those that quote that, and no page; of what
        is made of letters alone, no note either: that is a word that others use too.
        """
        sieve, pattern = Sieve(Request((secret,), users=(user,)), ""), secret.pattern(lower=True)
        holding: dict[Path, bool] = {}
        for path in files_below(self.layout.user(user)):
            owner, directory = owner_of_path(self.layout, path)
            is_note, is_page = self.is_note(path), "webpage_cache" in path.parts
            if path.suffix in _DERIVED or (is_note and secret.is_coded) or not (is_note or directory):
                continue
            if owner in secret.own and not is_page:
                continue
            data = read_there(path)
            if not pattern.search(data.decode("utf-8", "replace")):
                continue
            if directory is None or is_page:
                return False
            holding[directory] = holding.get(directory, False) or sieve.file(path, data, owner)[1] > 0
        return all(holding.values())

    def _pieces(
        self, value: str, own: frozenset[Owner], near: tuple[str, ...], user: str
    ) -> Iterator[Secret]:
        """The parts of a password-like value that turns hold by themselves, as topics: told nowhere else."""
        parts = [part for part in re.split(r"\W+", value) if part != value and len(part) >= SHORT_CHARS]
        for part in parts if " " not in value else ():
            if self._is_told_only(Secret(part, own, (*near, value)), user):
                yield Secret(part, own, is_free=True)

    def places(self, request: Request, mark: str) -> list[Place]:
        """Every place, by path; those that only the user can remove last."""
        sieve, found, left = Sieve(request, mark), [], []
        told = tuple(one for one in request.secrets if one.is_free)
        notes = Sieve(replace(request, secrets=told), mark)
        for path in self.files():
            owner, directory = owner_of_path(self.layout, path)
            if self.is_note(path):
                _, count = notes.file(path, read_there(path), owner)
                if count:
                    left.append(Place(path, count, "a note is your own file: change or delete it by hand"))
            elif goes_whole(request, path, owner, directory):
                found.append(Place(path, 1))
            else:
                data = read_there(path)
                made, count = sieve.file(path, data, owner)
                fault = find_fault(path, data, made) if made != data else None
                if fault:
                    left.append(Place(path, count, f"without it the file would be damaged: {fault}"))
                elif count:
                    found.append(Place(path, count))
            named = [one for one in request.secrets if one.is_free and one.instead is None]
            if any(one.pattern(lower=True).search(path.name) for one in named):
                left.append(Place(path, 1, "its name holds the text: rename it by hand"))
        for path in sorted(self.layout.indexes.glob("*_index.db*")):
            data = read_there(path)
            count = sum(data.count(one.text.encode()) for one in request.secrets if one.is_free)
            found += [Place(path, count)] if count else []
        for path, is_state in self.cached():
            _, count = (b"", 0) if is_state else sieve.file(path, read_there(path), None)
            found += [Place(path, count)] if count else []
        return [*found, *left]


def goes_whole(request: Request, path: Path, owner: Owner | None, directory: Path | None) -> bool:
    """Whether a file is of a turn or page that goes as a whole; a turn's metadata.json stays as its mark."""
    if any(path.is_relative_to(one) for one in request.directories):
        return True
    return directory is not None and owner in request.turns and path.name not in (METADATA_JSON, CONTEXT_MD)


def find_fault(path: Path, before: bytes, after: bytes) -> str | None:
    """What would be wrong with a file that was sound before."""
    fault = _fault(path, after)
    return fault if fault and _fault(path, before) is None else None


def _fault(path: Path, data: bytes) -> str | None:
    text = data.decode("utf-8", "replace")
    try:
        if path.suffix in (".json", ".jsonl"):
            for line in text.split("\n") if path.suffix == ".jsonl" else [text]:
                name = f"{path.parent.name}/{path.name}"
                for problem in json_problems(name, json.loads(line), path=str(path)) if line.strip() else ():
                    return f"{problem.key}: {problem.message}"
        elif path.name in (PREFERENCES_MD, FACTS_MD):
            parse_memory_file(text, where=str(path))
    except (ValueError, RecursionError) as exc:
        return str(exc)
    except PandaError as exc:
        return exc.message
    return None


def read_there(path: Path) -> bytes:
    """A file's content; b"" of one that is gone."""
    return read_bytes(path) if path.is_file() else b""
