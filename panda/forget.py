"""Forgetting: what was told is taken out of every file of a store and of the cache, with what tells it."""

import errno
import html
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from panda.documents.context import ContextDocument, FrontMatter, Meta, Text, parse_context, render_context
from panda.documents.memory_file import is_statement
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, LockHeldError, Problem, StoreError, UntrustedError
from panda.language.statements import clause_texts
from panda.memory.fact import Assertion, id_of, parse_assertion
from panda.memory.files import Projection, Showing
from panda.recipes.book import RecipeBook
from panda.recipes.versions import version_in_force
from panda.session.file import fold_turns, saved_turns, write_session
from panda.store import layout as names
from panda.store.files import (
    held_lock,
    held_log,
    is_temporary,
    may_pass,
    read_bytes,
    remove_tree,
    render_json,
    store_errors,
    sweep_below,
    sync_path,
    write_atomic,
)
from panda.store.interventions import intervention_id
from panda.store.layout import (
    CALLS_JSONL,
    CONTEXT_MD,
    MEMORY_JSONL,
    METADATA_JSON,
    Layout,
    TurnPaths,
    UserStore,
    users_of,
)
from panda.store.records import format_of, json_problems
from panda.store.seals import SEAL, seal_files
from panda.store.turns import CONTEXT_SCHEMA
from panda.store.visits import load_object, turn_directories, visit_directories, visit_id, visit_slug

SHORT_CHARS = 4  # a text with fewer characters counts only as a word of its own
_LINE_CHARS = 16  # so long a line of a forgotten turn or page is a quotation in whatever it made
_CUT_CHARS = 24  # such a line, cut after so many characters or more, is one too if "…" stands soon behind it
_DERIVED = {".db", ".db-wal", ".db-shm", ".db-journal", ".lock"}
_MEMORY = {names.PREFERENCES_MD, names.FACTS_MD, MEMORY_JSONL}
_OF_USER = _MEMORY | {names.CONFLICTS_JSONL, names.PROPOSED_FACTS_JSONL, "memory.shown.json", "turn_counter"}
_QUERIES_JSONL = "queries.jsonl"
_MARK = re.compile(r"\[forgotten( \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?\]")

_NAMES = {"id", "item", "session", "session_id", "user", "user_id", "entity", "relation", "key"}
"""JSON keys whose values are names that others refer to: never removed, but told."""
_CHOSEN = _NAMES | {
    *("schema", "status", "mode", "kind", "type", "source_type", "recipe", "model", "model_layer", "layer"),
    *("tool", "step_type", "method", "property", "role", "finish_reason", "content_type", "action", "scope"),
    *("directory", "root", "turn_id", "version"),
}
"""These, and JSON keys whose values panda chose."""
_FREE = {"arguments", "data", "details", "specs", "products", "offers", "parameters"}
"""JSON keys whose values have keys of their own, which are texts like any other."""
_ENTITIES = {"entities", "topics", "entities_created", "entities_updated", "entities_deleted"}
_FIXED = re.compile(
    r"[0-9a-f]{12,}|(fact|conflict)-[0-9a-f]+|\d+\.\d{3}|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"
    r"|(memory|fact|turn|visit|research|step):\S*"
)
"""Digests, ids, clock readings, instants and nodes: no part of them was told."""
_DIGEST = re.compile(r"[0-9a-f]{16,64}")
_VISIT = re.compile(r"visit_[0-9a-f]{12}|[a-z0-9-]+-[0-9a-f]{10}(-\d+)?")
"""Ids and directories of visits as panda names them; what a stranger has named is replaced nowhere."""
_BLANK = r"(?:\s|\\+[nrt]|%(?:25)*(?:20|0A|0D|09|C2%(?:25)*A0)|\+|&nbsp;|&#160;|(?<=[\nn])>)+"
_TITLE = re.compile(r"(?m)^(### .*)$")

_NOTE = "a note is your own file: change or delete it by hand"
_ELSEWHERE = "it is said there independently, too: --text takes that as well"
_NAMED = "it is part of the name of a key, user, session or item: these are never removed"

Owner = tuple[str, int]  # user and number of a turn; 0 for what belongs to none


def find_forms(texts: Iterable[str], cut: Iterable[str] = ()) -> re.Pattern[str]:
    r"""
    Finds texts as files may hold them: in any case, composed or not, over any blanks and line breaks, escaped
    as in JSON (within JSON), a URL, HTML or Markdown; those of *cut* also cut short, with "…".

    >>> bool(find_forms(["4711 blé"]).search('{"a": "it is 4711\\nBL\\u00c9"}'))
    True
    """
    forms = [form for text in sorted(set(texts), key=len, reverse=True) for form in _forms(text)]
    long = [text[:_CUT_CHARS] for text in cut if len(text) > _CUT_CHARS]
    forms += [f"{form}[^\n…]{{0,300}}…" for text in long for form in _forms(text)]
    return re.compile("|".join(dict.fromkeys(forms)) or r"(?!)", re.IGNORECASE)


def _forms(text: str) -> Iterator[str]:
    for form in dict.fromkeys(unicodedata.normalize(how, text) for how in ("NFC", "NFD", "NFKC")):
        made = _BLANK.join("".join(map(_char, word)) for word in form.split())
        if len(text) < SHORT_CHARS:
            before = r"(?:(?<!\w)|(?<=\\[nrt]))" if re.match(r"\w", form) else ""
            made = before + made + (r"(?!\w)" if re.search(r"\w\Z", form) else "")
        yield made


def _char(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    plain = rf"(?:(?<!\\)\\+)?{re.escape(char)}" if char.isascii() else re.escape(char)
    coded = (form for case in {char, char.lower(), char.upper()} for form in _coded(case))
    return f"(?:{'|'.join([plain, *coded])})"


def _coded(text: str) -> Iterator[str]:
    units = re.findall("....", text.encode("utf-16-be", "surrogatepass").hex())
    yield "".join(rf"\\+u{unit}" for unit in units)
    yield "".join(rf"%(?:25)*{octet:02x}" for octet in text.encode("utf-8", "surrogatepass"))
    yield "".join(rf"&#(?:0*{ord(char)}|x0*{ord(char):x});" for char in text)
    yield html.escape(text) if len(html.escape(text)) > len(text) else re.escape(text)


def _core(text: str) -> bytes:
    """The longest part of a text that no escaping changes, in lower case."""
    runs = re.findall("[a-z0-9]+", unicodedata.normalize("NFC", text).lower())
    return max(runs, key=len, default="").encode()


@dataclass(frozen=True)
class Wanted:
    """What is to be forgotten, and where."""

    said: tuple[str, ...] = ()  # texts; where they stand that is not to be changed is told
    quoted: tuple[str, ...] = ()  # texts that only what is to be changed loses
    users: tuple[str, ...] = ()  # whose files are looked at
    own: frozenset[Owner] | None = None  # the turns that said it; None: it goes wherever it stands
    nodes: tuple[str, ...] = ()  # nodes that say it: a turn that names one has it from there
    facts: frozenset[str] = frozenset()  # ids of assertions of which only the key stays
    turn: Owner | None = None  # a turn of which only the number stays
    visit: Path | None = None  # a directory that goes


@dataclass(frozen=True)
class Place:
    """A file that holds some of it."""

    path: Path  # the file, or a turn's directory
    count: int  # number of occurrences; of what goes as a whole 1
    left: str | None = None  # why it stays there; None where panda removes it


class _Eraser:
    def __init__(self, wanted: Wanted, at: str) -> None:
        texts = [*wanted.said, *wanted.quoted]
        self.pattern, self.said = find_forms(texts, wanted.quoted), find_forms(wanted.said)
        mark = f"[forgotten {at}]"
        self.at, self.mark = at, "[forgotten]" if self.pattern.search(mark) else mark
        self._wanted, self._lower = wanted, "\n".join(texts).casefold()
        heads = [*wanted.said, *(text[:_CUT_CHARS] for text in wanted.quoted)]
        self._cores = tuple(dict.fromkeys(map(_core, heads)))
        self._has_record = False  # whether a record says where a number may be a text
        self.count = self.names = 0  # texts taken out, and names left, since the last `reset`
        self.fault: str | None = None

    def reset(self) -> None:
        self.count, self.names, self.fault = 0, 0, None

    def may_hold(self, data: bytes) -> bool:
        low = data.lower()
        return any(core in low for core in self._cores) and bool(self.pattern.search(_decode(data)))

    def clean(self, path: Path, data: bytes, *, scrub: bool = False) -> bytes:
        """Content without the texts; with *scrub* without entities, topics and digests either."""
        self.reset()
        self._has_record = format_of(f"{path.parent.name}/{path.name}") is not None
        text = _decode(data)
        if path.name == CALLS_JSONL and scrub:
            made = self._calls(text)
        elif path.suffix == ".jsonl":
            made = "\n".join(self._json(path, line, scrub) for line in text.split("\n"))
        elif path.suffix == ".json":
            made = self._json(path, text, scrub)
        elif path.name == CONTEXT_MD:
            made = self._context(text, scrub)
        else:
            made = self.text(text)
            if made != text and "\0" in text:
                self.fault = "it is no text: delete it by hand"
        return data if self.fault else made.encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        made, count = self.pattern.subn(lambda _: self.mark, text)
        self.count += count
        return made

    def value(self, value: Any, key: str = "", *, free: bool = False) -> Any:
        """A JSON value without the texts; *free*: within a value whose keys are not panda's."""
        if isinstance(value, str):
            is_fixed = _FIXED.fullmatch(value) and not self.pattern.fullmatch(value)
            if not is_fixed and (free or key not in _CHOSEN):
                return self.text(value)
            is_named = self._wanted.own is None and (key in _NAMES or ":" in value)
            self.names += is_named and self.pattern.search(value) is not None
        elif isinstance(value, list):
            return [self.value(one, key, free=free) for one in value]
        elif isinstance(value, dict):
            if value.get("type") == "number" and self._is_told(value.get("v")):
                return {"type": "string", "v": self.text(str(value["v"]))}
            pairs = [(name, self.value(one, name, free=free or name in _FREE)) for name, one in value.items()]
            return {self.text(name) if free else name: one for name, one in pairs}
        elif self._has_record and self._is_told(value):
            return self.text(str(value))
        return value

    def _is_told(self, value: object) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and any(self.said.fullmatch(text) for text in (str(value), f"{value:g}"))

    def holds(self, value: Any) -> bool:
        if isinstance(value, dict | list):
            return any(map(self.holds, value.values() if isinstance(value, dict) else value))
        return self.pattern.search(value) is not None if isinstance(value, str) else self._is_told(value)

    def _json(self, path: Path, text: str, scrub: bool) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        made = self.value(value)
        made = _scrubbed(made) if scrub else made
        name = f"{path.parent.name}/{path.name}"
        if made == value:
            return text
        if self._has_record and not json_problems(name, value, path=""):
            for problem in json_problems(name, made, path=""):
                _put_back((problem.key or "").split("."), value, made)
            for problem in json_problems(name, made, path=""):
                self.fault = f"without it the file would be damaged: {problem.key}: {problem.message}"
        if "\n  " in text:
            return json.dumps(made, ensure_ascii=False, indent=2) + "\n"
        return json.dumps(made, ensure_ascii=False) + ("\n" if text.endswith("\n") else "")

    def _calls(self, text: str) -> str:
        """Calls that held it, refer to a message that did, or score words of it: what they cost is left."""
        made: list[str] = []
        held: set[str] = set()  # digests of messages that held it
        spelt: dict[str, str] = {}
        known: set[str] = set()  # digests that a line which stays spells out
        for line in text.split("\n"):
            if "kind" not in (call := _load_line(line)):
                made.append(self.text(line))
                continue
            parts = [part for part in (call.get("prefix"), *(call.get("messages") or ())) if part]
            digests = {part["sha256"] for part in parts if "sha256" in part}
            for part in parts:
                if "sha256" in part and "content" in part:
                    spelt[part["sha256"]] = part["content"]
                    held |= {part["sha256"]} if self.holds(part["content"]) else set()
            words = [str(one.get("continuation")).strip().casefold() for one in call.get("options") or ()]
            is_held = any(len(word) >= SHORT_CHARS and word in self._lower for word in words)
            if call["kind"] != "forgotten" and (is_held or self.holds(call) or digests & held):
                self.count += 1
                kept = {key: call[key] for key in ("n", "recipe", "usage", "seconds") if key in call}
                line = json.dumps({**kept, "kind": "forgotten", "forgotten_at": self.at})
            elif lacking := [one for one in parts if "content" not in one and one.get("sha256") not in known]:
                for part in lacking:  # the line that spelt it out is gone
                    part["content"] = spelt.get(part["sha256"], "")
                line = json.dumps(call, ensure_ascii=False)
            known |= digests if not is_held else set()
            made.append(line)
        return "\n".join(made)

    def _context(self, text: str, scrub: bool) -> str:
        try:
            document = parse_context(text, where="")
        except Problem:
            return self.text(text)
        sections = []
        for section in document.sections:
            blocks: list[Meta | Text] = []
            for block in section.blocks:
                if isinstance(block, Meta):
                    values = self.value(dict(block.values))
                    blocks.append(Meta(_scrubbed(values) if scrub else values))
                else:  # the titles of §2 are panda's
                    parts = _TITLE.split(block.text) if section.number == 2 else [block.text]
                    blocks.append(Text("".join(p if n % 2 else self.text(p) for n, p in enumerate(parts))))
            sections.append(replace(section, blocks=tuple(blocks)))
        made = ContextDocument(document.front, tuple(sections))
        return text if made == document else render_context(made)

    def assertion(self, raw: Mapping[str, Any], *, is_own: bool) -> dict[str, Any]:
        """A line of memory.jsonl: with nothing left to say it retracts; its id is that of what it says."""
        made = dict(raw)
        if raw.get("id") in self._wanted.facts:
            made["value"] = {"type": "string", "v": self.mark} if not _is_mark(raw["value"]) else raw["value"]
        elif is_own:
            made |= self.value({key: one for key, one in raw.items() if key != "id"})
        if made["value"] == raw["value"]:
            return made
        self.count += raw.get("id") in self._wanted.facts
        made["confidence"] = 0.0 if _is_mark(made["value"]) else made.get("confidence")
        with suppress(FileFormatError):
            before, after = parse_assertion(raw, where="").fact, parse_assertion(made, where="").fact
            made["id"] = id_of(after) if before.id == id_of(before) else before.id
        return made


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _is_mark(value: Mapping[str, Any]) -> bool:
    parts = said if isinstance(said := value.get("v"), list) else [said]
    return bool(parts) and all(isinstance(one, str) and _MARK.fullmatch(one) for one in parts)


def _scrubbed(value: Any, *, free: bool = False) -> Any:
    """A value of a turn that held it, without entities and topics, and without digests of what tools gave."""
    if isinstance(value, list):
        return [_scrubbed(one, free=free) for one in value]
    if not isinstance(value, dict):
        return None if free and isinstance(value, str) and _DIGEST.fullmatch(value) else value
    made = {key: _scrubbed(one, free=free or key in _FREE) for key, one in value.items()}
    made |= {key: [] for key in _ENTITIES & made.keys() if isinstance(made[key], list)}
    return made | ({"etag": None} if "etag" in made else {})


def _put_back(way: Sequence[str], value: Any, made: Any) -> None:
    with suppress(KeyError, IndexError, ValueError, TypeError):
        for part in way[:-1]:
            value, made = (one[int(part) if isinstance(one, list) else part] for one in (value, made))
        place: Any = int(way[-1]) if isinstance(made, list) else way[-1]
        made[place] = value[place]


@dataclass
class _Plan:
    wanted: Wanted
    eraser: _Eraser
    turns: dict[Path, Owner] = field(default_factory=dict)  # directories of turns that hold it, or did
    owners: set[Owner] = field(default_factory=set)  # these turns, and those that said it
    files: dict[Path, int] = field(default_factory=dict)  # files, with the number of texts in each
    left: dict[Place, None] = field(default_factory=dict)  # what stays
    ids: dict[str, str | None] = field(default_factory=dict)  # names that are digests of it, and the new ones
    moved: dict[Path, Path] = field(default_factory=dict)  # directories named after it, and their new names


class Forgetting:
    """
    Forgets in one store. What is being done is noted in `forgetting.json`, without a word of what it is: the
    same command, given again after it was killed, ends it.
    """

    def __init__(
        self,
        layout: UserStore,
        caches: Iterable[Path],
    ) -> None:
        self._layout = layout
        self._caches = tuple(dict.fromkeys(one for one in caches if one.is_dir()))
        self._journal = layout.root / "forgetting.json"

    @property
    def is_cut_short(self) -> bool:
        return self._journal.is_file()

    @property
    def at(self) -> str:
        """The time of the mark: that of the one that was cut short, else the present."""
        with suppress(ValueError, TypeError, KeyError):
            return render_time(parse_time(_load(self._journal)["at"]))
        return render_time(self._layout.clock().replace(microsecond=0))

    @contextmanager
    def locked(self, users: Sequence[str], but: str | None = None) -> Iterator[None]:
        """
        While the block runs no turn of these users runs or begins (LockHeldError), and no run goes on; the
        caller holds the lock of the session *but*.
        """
        holder, layout = f"panda forget (process {os.getpid()})", self._layout

        def sessions() -> set[tuple[str, str]]:
            return {(user, one.name) for user in users for one in layout.of(user).home.glob("sessions/*/")}

        with ExitStack() as stack:
            known = sessions()
            locks = [
                layout.of(user).session_lock(session) for user, session in sorted(known) if session != but
            ]
            locks += [*(layout.of(user).memory_lock for user in users), *sorted(layout.runs.glob("*/lock"))]
            for path in locks:
                lock = held_lock(path, holder=holder, wait_seconds=layout.wait_seconds)
                stack.enter_context(lock)
            for user in users:
                stack.enter_context(layout.of(user).numbering(holder))
            if sessions() != known:
                raise LockHeldError("a session has just begun", where=str(layout.root), fix="try again")
            yield

    def of_text(self, text: str) -> Wanted:
        return Wanted((text,), users=tuple(users_of(self._layout)))

    def of_facts(self, user: str, facts: Sequence[Assertion], derived: Iterable[Assertion]) -> Wanted:
        """What assertions say, and those of *derived* taken out of it, in the turns that said it."""
        whole = "\n".join(value for one in facts for value in _values(one))
        taken = (one for one in derived if any(find_forms([v]).search(whole) for v in _values(one)))
        facts = [*facts, *taken]
        pairs = [(text, one) for one in facts for text in _values(one) or self._staged(user, one)]
        texts = [t.rstrip(" .!?…") or t if is_statement(one.fact.relation) else t for t, one in pairs]
        kinds = ((kind, one.subject.key(user)) for one in facts for kind in ("memory", "fact"))
        own = frozenset((user, one.source_turn) for one in facts if one.source_turn is not None)
        ids, said = frozenset(one.fact.id for one in facts), _texts(texts, 1)
        parts = (part for text in said for part in clause_texts(text) if len(part) >= SHORT_CHARS)
        return Wanted(said, (*_lines(said), *parts), (user,), own, tuple(map(":".join, kinds)), ids)

    def of_subject(self, user: str, entity: str, relation: str) -> Wanted | None:
        """All that was ever said of it, with the keys that its sentences gave; None if nothing was."""
        state = Projection(self._layout.of(user))
        state.refresh()
        facts = [one for one in state.log.assertions if one.subject[1:] == (entity, relation)]
        turns = {one.source_turn for one in facts if is_statement(one.fact.relation)} - {None}
        derived = [one for one in state.log.assertions if one.source_turn in turns and one not in facts]
        derived = [one for one in derived if not is_statement(one.fact.relation)]
        return self.of_facts(user, facts, derived) if facts else None

    def forget_node(self, user: str, node: str, session: str) -> None:
        """Forget a key or sentence within a turn of this session, whose lock is held."""
        key = node.partition(":")[2]
        state = Projection(self._layout.of(user))
        state.refresh()
        subject = next((one for one in state.log.subjects() if one.key(user) == key), None)
        wanted = self.of_subject(user, *subject[1:]) if subject else None
        if wanted is not None:
            with self.locked([user], but=session):
                self.run(wanted)

    def of_turn(self, user: str, number: int, facts: Sequence[Assertion]) -> Wanted:
        """A whole turn: what was said in it, what was remembered of it (*facts*), and what quotes it."""
        paths, node = self._layout.of(user).turn(number), f"turn:{number}"
        query = _load(paths / METADATA_JSON).get("query")
        staged = _load(paths / names.STAGED_MEMORY_JSON).get("staged") or ()
        told = [query, *(one.get("text") for one in staged), *(v for one in facts for v in _values(one))]
        quoted = [_load(paths / names.SUMMARY_JSON).get("turn_summary"), *self._cited(user, node)]
        lines = f"{query}\n{_read(paths / names.RESPONSE_MD)}".split("\n")
        ids, nodes = frozenset(one.fact.id for one in facts), (node, *self.of_facts(user, facts, ()).nodes)
        said, cited, turn = _texts(told, SHORT_CHARS), _lines([*quoted, *lines]), (user, number)
        return Wanted(said, cited, (user,), frozenset([turn]), nodes, ids, turn)

    def of_visit(self, user: str, name: str) -> Wanted | None:
        """A page as it was read, and what turns quote of it; None if there is none."""
        for number, turn in turn_directories(self._layout.of(user).turns):
            for directory in visit_directories(turn):
                if _load(directory / names.MANIFEST_JSON).get("visit_id") == name:
                    lines = _read(directory / names.CONTENT_MD).split("\n")
                    quoted = _lines([*self._cited(user, f"visit:{name}"), *lines])
                    own = frozenset([(user, number)])
                    return Wanted((), quoted, (user,), own, (f"visit:{name}",), visit=directory)
        return None

    def _staged(self, user: str, one: Assertion) -> list[str]:
        paths = self._layout.of(user).turn(one.source_turn or 0)
        staged = _load(paths / names.STAGED_MEMORY_JSON).get("staged") or ()
        return [str(raw.get("text")) for raw in staged if raw.get("relation") == one.fact.relation]

    def _cited(self, user: str, node: str) -> Iterator[str]:
        for _, turn in turn_directories(self._layout.of(user).turns):
            for path in (turn / names.GATHERED_CONTEXT_JSON, *sorted(turn.glob("steps/*.json"))):
                yield from _texts_of(node, _load(path)) if node in _read(path) else ()

    def places(self, wanted: Wanted) -> list[Place]:
        """Every place, by path; what stays where it is last. Nothing is written."""
        return self._places(self._plan(wanted))

    def _places(self, plan: _Plan) -> list[Place]:
        texts = [text.casefold().encode() for text in plan.wanted.said]
        files = [*self._cached(), *self._sessions_of(plan)]
        held = {one: 1 for one in files if plan.eraser.may_hold(_read_there(one))}
        for path in self._layout.indexes.glob("*.db"):
            held |= {path: 1} if any(text in _read_there(path).lower() for text in texts) else {}
        gone = [Place(path, count) for path, count in (held | plan.files).items()]
        return [*sorted(gone, key=lambda one: one.path), *plan.left]

    def _sessions_of(self, plan: _Plan) -> Iterator[Path]:
        for user in plan.wanted.users if plan.turns or plan.wanted.own is None else ():
            yield from sorted(self._layout.of(user).home.glob("sessions/*/*.json"))

    def _cached(self) -> Iterator[Path]:
        for path in (one for cache in self._caches for one in sorted(cache.rglob("*"))):
            if path.is_file() and path.parent.name not in ("models", "digests"):
                yield path

    def _files(self, users: Sequence[str]) -> Iterator[tuple[Path, Owner | None, Path | None]]:
        """The files of some users or of none, each with its turn (0 for none) and the directory of that."""
        layout, seen = self._layout, set[str]()
        for top in (layout.users, layout.runs, layout.interventions, layout.executions_log.parent):
            for place, below, found in os.walk(top, followlinks=True):
                if (real := os.path.realpath(place)) in seen or not may_pass(place):
                    below[:] = []
                    owner = _owner_of_path(layout, Path(place, METADATA_JSON))[0]
                    if real not in seen and (owner is None or owner[0] in users):
                        yield Path(place), owner, None  # whoever reads it will be told
                    continue
                seen.add(real)
                below[:] = sorted({*below} - {"start" if Path(place).parent == layout.runs else "sessions"})
                for path in (Path(place, name) for name in sorted(found) if name != "lock"):
                    owner, directory = _owner_of_path(layout, path)
                    is_looked_at = path.suffix not in _DERIVED and (owner is None or owner[0] in users)
                    if is_looked_at and path.is_file() and not is_temporary(path):
                        yield path, owner, directory

    def _plan(self, wanted: Wanted) -> _Plan:
        plan = _Plan(wanted, eraser := _Eraser(wanted, self.at))
        found: dict[Path, tuple[Owner | None, Path | None]] = {}
        by_turn: dict[tuple[Path, Owner], list[Path]] = {}
        for path, owner, directory in self._files(wanted.users):
            if wanted.own is None and eraser.pattern.search(path.name):
                plan.left[Place(path, 1, "its name holds the text: rename it by hand")] = None
            try:
                data = read_bytes(path)
            except (StoreError, UntrustedError) as exc:
                plan.left[Place(path, 1, f"it cannot be looked at: {exc.message}")] = None
                continue
            if eraser.may_hold(data) and (eraser.clean(path, data) != data or eraser.names or eraser.fault):
                found[path] = owner, directory
                if directory is not None and owner is not None:
                    by_turn.setdefault((directory, owner), []).append(path)
        plan.turns |= self._noted("turns")
        for (directory, owner), paths in by_turn.items():
            if self._has_from_there(wanted, owner, directory, paths):
                plan.turns[directory] = owner
            elif any(eraser.said.search(_read(path)) for path in paths):
                plan.left[Place(directory, len(paths), _ELSEWHERE)] = None
        if wanted.turn is not None:
            plan.turns |= dict.fromkeys(self._directories(wanted.turn), wanted.turn)
        plan.owners = {*plan.turns.values(), *(wanted.own or ())}
        for directory, owner in plan.turns.items():
            found |= {path: (owner, directory) for path in sorted(directory.rglob("*")) if path.is_file()}
        found |= dict.fromkeys(self._layout.runs.glob(f"*/{names.RUN_TURNS_JSONL}"), (None, None))
        for path, (owner, directory) in found.items():
            if directory is None or directory in plan.turns:
                self._add(plan, path, owner, directory)
        self._add_names(plan)
        return plan

    def _has_from_there(self, wanted: Wanted, owner: Owner, directory: Path, holding: Iterable[Path]) -> bool:
        """Whether a turn that holds it said what is to go, names a node of it, or was carried it."""
        if wanted.own is None or owner in wanted.own:
            return True
        node = re.compile("|".join(rf"(?<![\w:]){re.escape(one)}(?!\w)" for one in wanted.nodes) or r"(?!)")
        if any(node.search(_read(path)) for path in directory.rglob("*") if path.is_file()):
            return True
        session = _load(directory / METADATA_JSON).get("session_id")
        said = {(user, n) for user, n in wanted.own if user == owner[0] and n < owner[1]}
        sources = {METADATA_JSON, names.GATHERED_CONTEXT_JSON, "steps", "webpage_cache"}
        is_own = any(sources & {*path.relative_to(directory).parts} for path in holding)
        sessions = {
            _load(self._layout.of(one[0]).turn(one[1]) / METADATA_JSON).get("session_id") for one in said
        }
        return session in sessions and not is_own

    def _directories(self, owner: Owner) -> list[Path]:
        saved = self._layout.of(owner[0]).turn(owner[1]).directory
        found = [saved, *sorted(self._layout.runs.glob(f"*/turns/{owner[0]}/{saved.name}"))]
        return [one for one in found if one.is_dir() and may_pass(one)]

    def _add(self, plan: _Plan, path: Path, owner: Owner | None, directory: Path | None) -> None:
        eraser, data = plan.eraser, _read_there(path)
        made = self._made(plan, path, data, owner, directory)
        is_own = self._is_own(path, owner)
        is_own_turn = directory is not None or plan.wanted.own is None
        is_elsewhere = not is_own_turn and eraser.said.search(_decode(made)) is not None
        stays = _NOTE if is_own and (is_elsewhere or made != data) else _ELSEWHERE if is_elsewhere else None
        for why in (stays, eraser.fault, _NAMED if eraser.names else None):
            plan.left |= {Place(path, max(eraser.count, 1), why): None} if why else {}
        if made != data and not is_own:
            plan.files[path] = max(eraser.count, 1)

    def _is_own(self, path: Path, owner: Owner | None) -> bool:
        """Whether it is a file of the user's own."""
        parts = path.relative_to(self._layout.root).parts[2:] if owner is not None else ()
        return parts[:1] == ("knowledge",) or (len(parts) == 1 and parts[0] not in _OF_USER)

    def _made(
        self, plan: _Plan, path: Path, data: bytes, owner: Owner | None, directory: Path | None
    ) -> bytes:
        """A file's content once it is forgotten; b"" of one that goes."""
        eraser, wanted, parent = plan.eraser, plan.wanted, path.parent
        eraser.reset()
        if wanted.visit is not None and path.is_relative_to(wanted.visit):
            return b""
        if directory is not None:
            return eraser.clean(path, data, scrub=True)
        if owner and path == self._layout.of(owner[0]).memory_log:
            return self._log_after(plan, owner[0])
        if owner and path.parent == self._layout.of(owner[0]).home and path.name in _MEMORY:
            return self._memory_texts(plan, owner[0]).get(path, data)
        if path.is_relative_to(self._layout.recipe_versions):
            return data if wanted.own is not None or _is_in_force(path) else b""
        if path.suffix != ".jsonl" or (owner and wanted.own is None):
            is_wanted = wanted.own is None or _owner_of(data) in plan.owners
            return eraser.clean(path, data) if is_wanted else data
        planned = _load(parent / names.RUN_JSON).get("turns") or ()
        items = {one.get("item"): (one.get("user"), one.get("turn")) for one in planned}
        made, count = [], 0
        for line in data.split(b"\n"):
            whose = _owner_of(line) or items.get(_load_line(line).get("id"))
            is_wanted, now = whose in plan.owners or wanted.own is None, line
            if path.name != names.RUN_TURNS_JSONL:
                now = eraser.clean(path, line) if is_wanted else line
            elif whose in plan.owners or (is_wanted and eraser.may_hold(line)):
                now = _unjudged(line, eraser.at)
            count += now != line
            made.append(now)
        eraser.reset()
        eraser.count = count
        return b"\n".join(made)

    def _log(self, plan: _Plan, user: str) -> Iterator[tuple[str, str]]:
        for line in _read(self._layout.of(user).memory_log).split("\n"):
            made = raw = _load_line(line)
            if "value" in raw:
                is_own = plan.wanted.own is None or (user, raw.get("source_turn")) in plan.owners
                made = plan.eraser.assertion(raw, is_own=is_own)
            yield line, line if made == raw else json.dumps(made, ensure_ascii=False)

    def _log_after(self, plan: _Plan, user: str) -> bytes:
        return "\n".join(after for _, after in self._log(plan, user)).encode("utf-8", "surrogateescape")

    def _add_names(self, plan: _Plan) -> None:
        """The names that are digests of it: of assertions, interventions, visits and versions of recipes."""
        eraser, ids, wanted = plan.eraser, plan.ids, plan.wanted
        for user in wanted.users:
            pairs = ((_load_line(a), _load_line(b)) for a, b in self._log(plan, user) if a != b)
            ids |= {raw["id"]: made["id"] for raw, made in pairs if raw.get("id") != made.get("id")}
        for path in plan.files:
            value = _load(path) if path.parent == self._layout.interventions else {}
            is_named = value and not json_problems(f"interventions/{path.name}", value, path="")
            if is_named and eraser.holds(value["message"]):
                at, user, turn, phase = (value[key] for key in ("created_at", "user_id", "turn", "phase"))
                ids[path.stem] = intervention_id(at, user, turn, phase, eraser.text(value["message"]))
            elif path.is_relative_to(self._layout.recipe_versions):
                ids[path.stem] = None
        for directory in plan.turns:
            visits = [one for one in visit_directories(directory) if one != wanted.visit]
            for visit in visits:
                manifest = _load(visit / names.MANIFEST_JSON)
                is_named = eraser.pattern.search(visit.name.replace("-", " ")) is not None
                if is_named or eraser.holds([manifest.get("url"), manifest.get("final_url")]):
                    slug = name = visit_slug(eraser.text(str(manifest.get("url"))))
                    taken = {*visits, *plan.moved.values()} - {visit}
                    while visit.with_name(name) in taken:
                        name = f"{slug}-{int(name[len(slug) + 1 :] or 1) + 1}"
                    plan.moved |= {visit: visit.with_name(name)} if name != visit.name else {}
                    made = {visit.name: name}
                    made[str(manifest.get("visit_id"))] = visit_id(TurnPaths(directory), name)
                    ids |= {old: new for old, new in made.items() if _VISIT.fullmatch(old)}

    def run(self, wanted: Wanted) -> list[Place]:
        """Forget, under `locked`; returns the places where it was, and those that stay."""
        sweep_below(self._layout.root)
        plan = self._plan(wanted)
        old = re.compile("|".join(map(re.escape, plan.ids)).encode() or rb"(?!)")
        files = self._files(wanted.users) if plan.ids else ()
        renamed = [a for a, b, _ in files if not self._is_own(a, b) and old.search(_read_there(a))]
        snapshots = [path for user in wanted.users for path in self._snapshots(plan, user)]
        self._note(plan, [*renamed, *snapshots])
        places = self._places(plan)
        whole = self._directories(wanted.turn) if wanted.turn else []
        paths = [path for path in dict.fromkeys([*plan.files, *renamed]) if not {*whole} & {*path.parents}]
        paths.sort(key=lambda path: path.name == METADATA_JSON)  # it tells what was said: last
        for path in paths:
            if path.name != names.MANIFEST_JSON and path.name not in _MEMORY:
                self._rewrite(plan, path, path)
        for path in snapshots:
            value = _load(path)
            value |= {"files": dict.fromkeys(value["files"]), "forgotten_at": plan.eraser.at}
            self._write(plan, path, render_json(value).encode())
        for before, after in plan.moved.items():
            with store_errors(before, "rename"):
                before.rename(after)
        for path in (path for path in paths if path.name == names.MANIFEST_JSON):
            self._rewrite(plan, path, plan.moved.get(path.parent, path.parent) / path.name)
        for name in plan.ids:
            _delete(self._layout.interventions / f"{name}.json")
        for path in (path for path in self._cached() if plan.eraser.may_hold(_read_there(path))):
            _delete(path)
        for user in wanted.users:  # from here on it may not be known any more what was to be forgotten
            self._forget_memory(plan, user)
        if wanted.visit is not None:
            remove_tree(wanted.visit)
        for directory in whole:
            _empty_turn(directory, wanted.turn or ("", 0), plan.eraser)
        self._end(plan)
        return list(dict.fromkeys([*places, *plan.left]))

    def _snapshots(self, plan: _Plan, user: str) -> Iterator[Path]:
        """What turns recorded of memory files that held it: digests of these."""
        lines = [n for n, (before, after) in enumerate(self._log(plan, user)) if before != after]
        if (
            not lines
            and not {self._layout.of(user).preferences, self._layout.of(user).facts} & plan.files.keys()
        ):
            return
        first = min(lines, default=0)
        for place in (self._layout.of(user).turns, *self._layout.runs.glob(f"*/turns/{user}")):
            for path in sorted(place.glob(f"turn_*/{names.SNAPSHOT_JSON}")):
                value = _load(path)
                known = (value.get("memory") or {}).get("assertions", first + 1)
                if any((value.get("files") or {}).values()) and known > first:
                    yield path

    def _noted(self, key: str) -> dict[Path, Owner]:
        found = {}
        for name in _load(self._journal).get(key) or ():
            path = self._layout.root / str(name)
            owner, directory = _owner_of_path(self._layout, path / METADATA_JSON)
            if owner and directory == path and names.is_id(owner[0]) and path in self._directories(owner):
                found[path] = owner
        return found

    def _sessions(self) -> set[tuple[str, str]]:
        pairs = [one for one in _load(self._journal).get("sessions") or () if isinstance(one, list)]
        return {(a, b) for a, b in (one for one in pairs if len(one) == 2) if _are_ids(a, b)}

    def _note(self, plan: _Plan, sealed: Iterable[Path]) -> None:
        turns = {**self._noted("turns"), **plan.turns}
        places = (_owner_of_path(self._layout, one)[1] for one in sealed)
        seals = {*turns, *self._noted("seals"), *(one for one in places if one)}
        sessions = {(turns[one][0], str(_load(one / METADATA_JSON).get("session_id"))) for one in turns}
        held = [one for one in self._sessions_of(plan) if plan.eraser.may_hold(_read_there(one))]
        sessions |= {(one.parts[-4], one.parent.name) for one in held}
        known = sorted(one for one in sessions | self._sessions() if _are_ids(*one))
        value: dict[str, Any] = {"at": plan.eraser.at, "sessions": known}
        for key, some in (("turns", {*turns}), ("seals", seals)):
            value[key] = sorted(str(one.relative_to(self._layout.root)) for one in some)
        write_atomic(self._journal, render_json(value))

    def _rewrite(self, plan: _Plan, path: Path, target: Path) -> None:
        with held_log(target) if target.suffix == ".jsonl" and target.is_file() else nullcontext():
            data = _read_there(target)
            made = data
            if path in plan.files:
                made = self._made(plan, target, data, *_owner_of_path(self._layout, path))
            for old, new in plan.ids.items():
                old, new = (old, new) if new else (f'"{old}"', "null")
                made = made.replace(old.encode(), new.encode())
            if not made and data:
                _delete(target)
            elif made != data:
                name = (plan.ids.get(path.stem) or path.stem) + path.suffix
                self._write(plan, target.with_name(name), made)
        if path.parent.parent == self._layout.runs and path.suffix == ".jsonl":
            self._count(plan, path.parent)

    def _write(self, plan: _Plan, path: Path, data: bytes) -> None:
        try:
            write_atomic(path, data)
        except StoreError as exc:
            if getattr(exc.__cause__, "errno", None) not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            plan.left[Place(path, 1, f"it cannot be changed: {exc.message}")] = None

    def _count(self, plan: _Plan, run: Path) -> None:
        value = _load(run / names.RUN_JSON)
        queries = map(_load_line, _read(run / _QUERIES_JSONL).split("\n"))
        held = {one.get("id") for one in queries if _MARK.search(str(one))}
        for one in value.get("turns") or ():
            is_held = one.get("item") in held or (one.get("user"), one.get("turn")) in plan.owners
            one |= {"digest": None} if one.get("digest") and is_held else {}
        if value.get("results") is not None:
            lines = map(_load_line, _read(run / names.RUN_TURNS_JSONL).split("\n"))
            value["results"] = dict(Counter(one["result"] for one in lines if "result" in one))
        if value:
            self._write(plan, run / names.RUN_JSON, render_json(value).encode())

    def _memory_texts(self, plan: _Plan, user: str) -> dict[Path, bytes]:
        state = Projection(self._layout.of(user))
        state.refresh()
        pairs = [(_load_line(a)["id"], b) for a, b in self._log(plan, user) if a != b]
        now = {id_: parse_assertion(_load_line(line), where="") for id_, line in pairs}
        showing = Showing(state)
        for subject in dict.fromkeys(one.subject for one in state.log.assertions if one.fact.id in now):
            winner = state.standing(subject, self._layout.clock()).winner
            if winner is not None and (after := now.get(winner.fact.id)) is not None:
                showing.show(subject, after if after.fact.confidence else None)
        made = {
            state.paths[kind]: text.encode() for kind, text in showing.texts().items() if text is not None
        }
        if plan.wanted.own is None:
            made = {path: plan.eraser.clean(path, data) for path, data in made.items()}
        return made

    def _forget_memory(self, plan: _Plan, user: str) -> None:
        log = self._layout.of(user).memory_log
        for path, made in self._memory_texts(plan, user).items():
            if made != _read_there(path):
                self._write(plan, path, made)
        if log.is_file():
            with held_log(log):
                if (made := self._log_after(plan, user)) != _read_there(log):
                    self._write(plan, log, made)
            state = Projection(self._layout.of(user))
            state.refresh()
            state.write_mark()

    def _end(self, plan: _Plan) -> None:
        """What is derived of the files, sealed and made anew: done again as long as the note is there."""
        layout, at, forgotten = self._layout, plan.eraser.at, self._noted("turns")
        for directory in self._noted("seals"):
            metadata = _load(directory / METADATA_JSON)
            if metadata.get("status") == "forgotten":
                _prune(directory)
            if metadata and (directory in forgotten or SEAL in metadata):
                metadata |= {"forgotten_at": at} if directory in forgotten else {}
                metadata |= {SEAL: seal_files(directory, metadata)} if metadata.get(SEAL) is not None else {}
                self._write(plan, directory / METADATA_JSON, render_json(metadata).encode())
        for user, session in self._sessions():
            if (path := layout.of(user).session(session)).is_file():
                made = None
                with suppress(FileFormatError):  # without a file it is made again when its turns read
                    made = fold_turns(layout.of(user), session, saved_turns(layout.of(user)).get(session, []))
                write_session(layout, made) if made is not None else _delete(path)
        for start in filter(may_pass, layout.runs.glob("*/start")):  # made anew when the batch goes on
            remove_tree(start)
        derived = [one for one in self._cached() if {one.suffix, one.parent.name} & {".state", "compression"}]
        for path in [*derived, *layout.indexes.glob("*.db*")]:
            _delete(path)
        _delete(self._journal)
        sync_path(layout.root)


def _are_ids(*given: object) -> bool:
    return all(isinstance(one, str) and names.is_id(one) for one in given)


def _unjudged(line: bytes, at: str) -> bytes:
    """The line of a run about a turn that held it: it was run, and is not judged any more."""
    value = _load_line(line)
    stays = ("turn", "user", "directory", "item", "exit_code", "seconds", "is_saved")
    made: dict[str, Any] = {key: value[key] for key in stays if key in value}
    made |= {"result": "not judged", "findings": [f"forgotten at {at}"], "outcome": None}
    is_done = str((value.get("findings") or [""])[0]).startswith("forgotten at ")
    return line if is_done else json.dumps(made).encode()


def _values(one: Assertion) -> list[str]:
    parts = said if isinstance(said := one.fact.value.to_json().get("v"), list) else [said]
    told = (part for part in parts if not isinstance(part, bool | None))
    texts = (f"{part:g}" if isinstance(part, float) and part.is_integer() else str(part) for part in told)
    return [text.strip() for text in texts if text.strip() and not _MARK.fullmatch(text)]


def _texts(found: Iterable[object], least: int) -> tuple[str, ...]:
    texts = (one.strip() for one in found if isinstance(one, str) and not _MARK.search(one))
    return tuple(dict.fromkeys(one for one in texts if len(one) >= least))


def _lines(found: Iterable[str | None]) -> tuple[str, ...]:
    return _texts((one and one.strip("-*#> \t\r") for one in found), _LINE_CHARS)


def _texts_of(node: str, value: object) -> Iterator[str]:
    for part in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _texts_of(node, part)
    if isinstance(value, dict) and (value.get("node_ids") == [node] or value.get("node_id") == node):
        yield str(value.get("text"))


def _owner_of_path(layout: Layout, path: Path) -> tuple[Owner | None, Path | None]:
    parts = path.relative_to(layout.root).parts if path.is_relative_to(layout.root) else ()
    for n, part in enumerate(parts[:-1]):
        number = names.turn_number(part)
        if number is not None and n >= 2:
            user = parts[n - 2] if parts[n - 1] == "turns" else parts[n - 1]
            return (user, number), layout.root.joinpath(*parts[: n + 1])
    return ((parts[1], 0) if len(parts) > 2 and parts[0] == "users" else None), None


def _owner_of(data: bytes) -> Owner | None:
    value = _load_line(data)
    user, turn = value.get("user_id", value.get("user")), value.get("turn", value.get("turn_id"))
    turn = names.turn_number(turn) if isinstance(turn, str) else turn
    return (user, turn) if isinstance(user, str) and isinstance(turn, int) else None


def _load_line(line: str | bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        return value if isinstance(value := json.loads(line), dict) else {}
    return {}


def _load(path: Path) -> dict[str, Any]:
    with suppress(FileFormatError, StoreError):
        return load_object(path) if path.is_file() else {}
    return {}


def _read_there(path: Path) -> bytes:
    with suppress(StoreError, UntrustedError):
        return read_bytes(path) if path.is_file() else b""
    return b""


def _read(path: Path) -> str:
    return _decode(_read_there(path))


def _is_in_force(path: Path) -> bool:
    """Whether a kept version of a recipe is that which comes with panda, so that nobody told what it says."""
    book = RecipeBook([names.asset("recipes")], [names.asset("prompts")])
    with suppress(Problem):
        return version_in_force(book, f"{path.parent.parent.name}/{path.parent.name}").digest == path.stem
    return False


def _empty_turn(directory: Path, owner: Owner, eraser: _Eraser) -> None:
    former, at = _load(directory / METADATA_JSON), eraser.at
    made: dict[str, Any] = {"schema": "panda.metadata/1", "turn": owner[1], "user_id": owner[0]}
    made |= {"created_at": at, "saved_at": None, "session_id": "default", "mode": "chat"}
    with suppress(ValueError, TypeError, KeyError):
        if names.is_id(former["session_id"]) and parse_time(former["created_at"]):
            made |= {name: former[name] for name in made if name in former}
    made |= {"query": eraser.mark, "status": "forgotten", "route": [], "next": None, "updated_at": at}
    made |= {"answered": None, "seed": None, "forgotten_at": at, SEAL: {}}
    write_atomic(directory / METADATA_JSON, render_json(made))
    about = (made["session_id"], made["mode"], parse_time(made["created_at"]))
    front = FrontMatter(CONTEXT_SCHEMA, owner[1], owner[0], *about)
    write_atomic(directory / CONTEXT_MD, render_context(ContextDocument(front)))


def _prune(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif path.name not in (METADATA_JSON, CONTEXT_MD):
            _delete(path)


def _delete(path: Path) -> None:
    with store_errors(path, "remove"):
        path.unlink(missing_ok=True)
