"""Forgetting: what was told is taken out of every file of a store and of the cache, with what tells it."""

import html
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec

from panda.documents.context import ContextDocument, FrontMatter, Meta, Text, parse_context, render_context
from panda.documents.memory_file import is_statement
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, LockHeldError, Problem, StoreError, UntrustedError
from panda.language.statements import clause_texts
from panda.memory.fact import Assertion, parse_assertion
from panda.memory.files import Projection, Showing
from panda.session.file import fold_turns, saved_turns, write_session
from panda.store import files
from panda.store import layout as names
from panda.store.layout import METADATA_JSON, UserStore
from panda.store.records import Metadata, json_problems, load
from panda.store.seals import SEAL, seal_files
from panda.store.turns import CONTEXT_SCHEMA
from panda.store.visits import turn_directories, visit_directories

JOURNAL = "forgetting.json"
WORD_CHARS = 4  # a text with fewer characters counts only as a word of its own
SHORT_CHARS = 8  # a value with fewer characters goes only from the turns that told it, and were carried it
_LINE_CHARS = 16  # so long a line of a page is a quotation in its turn
_OF_USER = re.compile(
    r"(preferences|facts)\.md|(memory|conflicts|proposed_facts)\.jsonl|memory\.shown\.json|turn_counter"
)
_NAMES = re.compile(
    "id|item|session(_id)?|user(_id)?|entity|relation|key|recipe|model|(model_)?layer|tool|mode|content_type"
    "|scope|directory|root|turn_id"
)
"""JSON keys whose values are names that others refer to: never removed, but told."""
_FREE = {"arguments", "data", "details", "specs", "products", "offers", "parameters"}
"""JSON keys whose values have keys of their own, which are texts like any other."""
_ENTITIES = {"entities", "topics", "entities_created", "entities_updated", "entities_deleted"}
_FIXED = re.compile(r"[0-9a-f]{12,}|(fact|conflict)-[0-9a-f]+|(memory|fact|turn|visit|research|step):\S*")
"""Digests, ids and nodes: no part of them was told."""
_NAMED = re.compile(r"(fact-|visit_|[a-z0-9_-]+-|)[0-9a-f]{8,64}(-\d+)?")
"""Names that panda makes of digests; what a stranger has named is replaced nowhere."""
_MARK = re.compile(r"\[forgotten( \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?\]")
_BLANK = r"(?:\s|\\+[nrt]|%(?:25)*(?:20|0A|0D|09|C2%(?:25)*A0)|\+|&nbsp;|&#160;|(?<=[\nn])>)+"
_TURN = re.compile(r"(?:users/([a-z0-9_-]+)/turns|runs/[^/]+/turns/([a-z0-9_-]+))/turn_(\d{6,15})(?=/)")


def find_forms(texts: Iterable[str]) -> re.Pattern[str]:
    r"""
    Finds texts as files may hold them: in any case, composed or not, over any blanks and line breaks, escaped
    as in JSON (within JSON), a URL, HTML or Markdown.

    >>> bool(find_forms(["4711 blé"]).search('{"a": "it is 4711\\nBL\\u00c9"}'))
    True
    """
    forms: dict[str, None] = {}
    for text in sorted(set(texts), key=len, reverse=True):
        for form in (unicodedata.normalize(how, text) for how in ("NFC", "NFD", "NFKC")):
            made = _BLANK.join("".join(map(_escaped, word)) for word in form.split())
            forms[made if len(text) >= WORD_CHARS else rf"(?:(?<!\w)|(?<=\\[nrt])){made}(?!\w)"] = None
    return re.compile("|".join(forms) or r"(?!)", re.IGNORECASE)


def _escaped(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    forms = [rf"(?:(?<!\\)\\+)?{re.escape(char)}" if char.isascii() else re.escape(char)]
    for case in {char, char.lower(), char.upper()}:
        octets, units = (case.encode(code, "surrogatepass") for code in ("utf-8", "utf-16-be"))
        forms.append("".join(rf"%(?:25)*{octet:02x}" for octet in octets))
        forms.append("".join(rf"\\+u{unit}" for unit in re.findall("....", units.hex())))
        forms.append("".join(rf"&#(?:0*{ord(one)}|x0*{ord(one):x});" for one in case))
        forms.append(re.escape(html.escape(case)))
    return f"(?:{'|'.join(forms)})"


@dataclass(frozen=True)
class Wanted:
    """What is to be forgotten."""

    texts: tuple[str, ...]  # they go wherever they stand
    users: tuple[str, ...]  # whose files are looked at
    near: tuple[str, ...] = ()  # these only from the turns that said them; where else they stand is told
    own: frozenset[int] = frozenset()  # numbers of these turns, and of later ones in their sessions
    facts: frozenset[str] = frozenset()  # ids of assertions of which only the key stays
    turn: int | None = None  # a turn of which only the number stays
    visit: Path | None = None  # a directory that goes
    is_of_all: bool = False  # whether it goes from what is of no user, too


@dataclass(frozen=True)
class Place:
    """A file that holds some of it."""

    path: Path
    count: int  # number of occurrences; of what goes as a whole 1
    left: str | None = None  # why it stays there; None where panda removes it


class _Eraser:
    """Takes texts out of what files hold."""

    def __init__(self, wanted: Wanted, at: str) -> None:
        texts = [*wanted.texts, *wanted.near]
        self._all, self._far, self._near = map(find_forms, (texts, wanted.texts, wanted.near))
        self._pattern, self._facts, self._scrubs, self._spares = self._all, wanted.facts, False, False
        self.at, mark = at, f"[forgotten {at}]"
        self.mark = "[forgotten]" if self._all.search(mark) else mark
        runs = (re.findall("[a-z0-9]+", unicodedata.normalize("NFC", text).lower()) for text in texts)
        self._cores = {max(run, key=len, default="").encode() for run in runs}  # no escaping changes them
        self.count = self.names = 0  # texts taken out, and left, of the file that was begun last

    def begin(self, *, is_own: bool) -> None:
        """Begin with a file: in turns that said it, or were carried it, all texts are looked for."""
        self._pattern, self.count, self.names = self._all if is_own else self._far, 0, 0

    def held_by(self, data: bytes, *, near: bool = False) -> bool:
        """Whether content holds a text; *near*: one of those that do not go everywhere."""
        low, pattern = data.lower(), self._near if near else self._pattern
        return any(core in low for core in self._cores) and pattern.search(_text(data)) is not None

    def clean(self, path: Path, data: bytes, *, scrubs: bool = False) -> bytes:
        """Content without the texts; with *scrubs* without calls, entities, topics and digests either."""
        text, name, self._scrubs = _text(data), f"{path.parent.name}/{path.name}", scrubs
        if path.suffix in (".json", ".jsonl"):
            parts = text.split("\n") if path.suffix == ".jsonl" else [text]
            is_call = scrubs and path.name == names.CALLS_JSONL
            made = "\n".join(self._call(part) if is_call else self._json(name, part) for part in parts)
        else:
            made = self._context(text) if path.name == names.CONTEXT_MD else self.text(text)
        return made.encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        made, count = self._pattern.subn(lambda _: self.mark, text)
        self.count += count
        return made

    def value(self, value: Any, key: str = "", *, free: bool = False) -> Any:
        """A JSON value without the texts; *free*: within a value whose keys are not panda's."""
        if isinstance(value, str):
            if self._scrubs and (key == "etag" or (free and re.fullmatch("[0-9a-f]{16,64}", value))):
                return None
            is_whole = self._pattern.fullmatch(value) is not None
            if (_NAMES.fullmatch(key) and not free) or (is_whole and self._spares):
                self.names += self._pattern.search(value) is not None
            elif is_whole or not _FIXED.fullmatch(value):
                return self.text(value)
        elif isinstance(value, list):
            parts = [] if self._scrubs and key in _ENTITIES else value
            return [self.value(part, key, free=free) for part in parts]
        elif isinstance(value, dict):
            made = {name: self.value(part, name, free=free or name in _FREE) for name, part in value.items()}
            if value.get("type") in ("number", "datetime", "ref") and made.get("v") != value.get("v"):
                made["type"] = "string"
            return {self.text(name): part for name, part in made.items()} if free else made
        elif isinstance(value, int | float) and (free or key in ("v", "value")):
            is_told = any(self._pattern.fullmatch(text) for text in (str(value), f"{value:g}"))
            return self.text(str(value)) if is_told else value
        return value

    def _json(self, name: str, text: str) -> str:
        try:
            value = files.parse_json(text, where="")
        except FileFormatError:
            return self.text(text)
        for self._spares in (False, True):  # at the second time what is nothing but the text stays
            made = self.value(value)
            if made == value:
                return text
            if not json_problems(name, made, path="") or json_problems(name, value, path=""):
                end = text[len(text.rstrip("\n")) :]
                return files.render_json(made) if "\n  " in text else _line(made) + end
        return text

    def _call(self, line: str) -> str:
        call = _object(line)
        if call.get("kind") in (None, "forgotten"):
            return self.text(line)
        self.count += 1
        kept = {key: call[key] for key in ("n", "recipe", "usage", "seconds") if key in call}
        return _line(kept | {"kind": "forgotten", "forgotten_at": self.at})

    def _context(self, text: str) -> str:
        try:
            document = parse_context(text, where="")
        except Problem:
            return self.text(text)
        sections = []
        for section in document.sections:
            blocks: list[Meta | Text] = []
            for block in section.blocks:
                if isinstance(block, Meta):
                    blocks.append(Meta(self.value(dict(block.values))))
                else:  # the titles of §2 are panda's
                    parts = re.split(r"(?m)^(### .*)$" if section.number == 2 else r"(?!)", block.text)
                    kept = (part if n % 2 else self.text(part) for n, part in enumerate(parts))
                    blocks.append(Text("".join(kept)))
            sections.append(replace(section, blocks=tuple(blocks)))
        made = replace(document, sections=tuple(sections))
        return text if made == document else render_context(made)

    def assertion(self, raw: dict[str, Any]) -> dict[str, Any]:
        """A line of memory.jsonl; with nothing left to say it retracts."""
        made: dict[str, Any] = self.value(raw)
        if raw["id"] in self._facts and not _is_mark(raw["value"]):
            made["value"] = {"type": "string", "v": self.mark}
        is_emptied = made["value"] != raw["value"] and _is_mark(made["value"])
        return made | {"confidence": 0.0} if is_emptied else made


class Forgetting:
    """
    Forgets in one store. What is being done is noted in `forgetting.json`, without a word of what it is: the
    same command, given again after it was killed, ends it.
    """

    def __init__(self, store: UserStore, caches: Iterable[Path]) -> None:
        self._store, self._caches = store, [cache for cache in caches if cache.is_dir()]
        self.journal = store.root / JOURNAL

    @property
    def at(self) -> str:
        """The time of the mark: that of the one that was cut short, else the present."""
        with suppress(ValueError, TypeError, KeyError):
            return render_time(parse_time(_load(self.journal)["at"]))
        return render_time(self._store.clock().replace(microsecond=0))

    @contextmanager
    def locked(self, users: Iterable[str], but: str | None = None) -> Iterator[None]:
        """
        While the block runs no turn of these users runs or begins (LockHeldError), and no run goes on; the
        caller holds the lock of the session *but*.
        """
        stores, holder = [self._store.of(user) for user in users], f"panda forget (process {os.getpid()})"

        def sessions() -> list[Path]:
            found = (path for store in stores for path in store.sessions.glob("*/"))
            return sorted(path / "lock" for path in found if path.name != but)

        with ExitStack() as stack:
            known, runs = sessions(), sorted(self._store.runs.glob("*/lock"))
            for path in (*known, *(store.memory_lock for store in stores), *runs):
                lock = files.held_lock(path, holder=holder, wait_seconds=self._store.wait_seconds)
                stack.enter_context(lock)
            for store in stores:
                stack.enter_context(store.numbering(holder))
            if sessions() != known:
                raise LockHeldError("a session has just begun", where=str(self._store.root), fix="try again")
            yield

    def of_text(self, text: str) -> Wanted:
        return Wanted((text,), tuple(names.users_of(self._store)), is_of_all=True)

    def of_subject(self, entity: str, relation: str) -> Wanted | None:
        """All that was ever said of it, with the keys that its sentences gave; None if nothing was."""
        known = self._assertions()
        facts = [one for one in known if one.subject[1:] == (entity, relation)]
        turns = {one.source_turn for one in facts if is_statement(one.fact.relation)} - {None}
        whole = "\n".join(text for one in facts for text in _values(one))
        derived = (one for one in known if one.source_turn in turns and not is_statement(one.fact.relation))
        facts += [one for one in derived if one not in facts and find_forms(_values(one)).search(whole)]
        return self._of(facts) if facts else None

    def of_turn(self, number: int) -> Wanted:
        """A whole turn: what was remembered of it everywhere, what was asked and answered in its session."""
        turn = self._store.turn(number)
        wanted = self._of([one for one in self._assertions() if one.source_turn == number], number)
        staged = _load(turn / names.STAGED_MEMORY_JSON).get("staged") or ()
        texts = [str(one.get("text")) for one in staged if len(str(one.get("text"))) >= SHORT_CHARS]
        asked = [str(_load(turn / METADATA_JSON).get("query")), _text(_read(turn / names.RESPONSE_MD))]
        asked.append(str(_load(turn / names.SUMMARY_JSON).get("turn_summary") or ""))
        near = (*wanted.near, *(text.strip() for text in asked if text.strip() and not _MARK.search(text)))
        return replace(wanted, texts=(*wanted.texts, *texts), near=near, turn=number)

    def of_visit(self, name: str) -> Wanted | None:
        """A page as it was read, and what its turn quotes of it; None if there is none."""
        for number, turn in turn_directories(self._store.turns):
            for path in visit_directories(turn):
                if _load(path / names.MANIFEST_JSON).get("visit_id") == name:
                    own = self._onward([number], f"visit:{name}")
                    told = (_quotes(f"visit:{name}", _load(place)) for place in turn.rglob("*.json"))
                    lines = [*chain(*told), *_text(_read(path / names.CONTENT_MD)).split("\n")]
                    lines = [line for part in lines if len(line := part.strip("-*#> \t\r")) >= _LINE_CHARS]
                    return Wanted((), (self._store.user,), tuple(lines), own, visit=path)
        return None

    def _of(self, facts: Collection[Assertion], *told_in: int) -> Wanted:
        """What assertions say, of those without a word of their own the sentence that told them."""
        texts: list[str] = []
        for one in facts:
            values = _values(one)
            if not values:
                path = self._store.turn(one.source_turn or 0) / names.STAGED_MEMORY_JSON
                staged = _load(path).get("staged") or ()
                values = [str(raw["text"]) for raw in staged if raw.get("relation") == one.fact.relation]
            texts += [text.rstrip(" .!?…") if is_statement(one.fact.relation) else text for text in values]
        texts += [part for text in texts for part in clause_texts(text) if " " in part]
        texts = [text for text in dict.fromkeys(texts) if text and not _MARK.search(text)]
        near = tuple(text for text in texts if len(text) < SHORT_CHARS)
        far = tuple(text for text in texts if len(text) >= SHORT_CHARS)
        turns = {*told_in, *(one.source_turn for one in facts if one.source_turn is not None)}
        keys = {one.subject.key(self._store.user) for one in facts}
        nodes = [f"{kind}:{key}" for key in keys for kind in ("memory", "fact")]
        own = self._onward(turns, *nodes, *(f"turn:{number}" for number in told_in))
        return Wanted(far, (self._store.user,), near, own, frozenset(one.fact.id for one in facts))

    def _onward(self, turns: Collection[int], *nodes: str) -> frozenset[int]:
        """These turns, the later ones of their sessions, and those that were shown one of the nodes."""
        known, own = dict(turn_directories(self._store.turns)), {*turns}
        sessions = {number: _load(path / METADATA_JSON).get("session_id") for number, path in known.items()}
        for number, path in known.items():
            shown = _read(path / names.RETRIEVAL_PLAN_JSON) + _read(path / names.GATHERED_CONTEXT_JSON)
            is_later = any(number > said and sessions[number] == sessions.get(said) for said in turns)
            own |= {number} if is_later or any(f'"{node}"'.encode() in shown for node in nodes) else set()
        return frozenset(own)

    def _assertions(self) -> list[Assertion]:
        state = Projection(self._store)
        state.refresh()
        return list(state.log.assertions)

    def forget_node(self, node: str, session: str) -> None:
        """Forget a key or sentence within a turn of this session, whose lock is held."""
        key = node.partition(":")[2]
        subjects = (one.subject for one in self._assertions() if one.subject.key(self._store.user) == key)
        wanted = self.of_subject(*subject[1:]) if (subject := next(subjects, None)) else None
        if wanted is not None:
            with self.locked(wanted.users, but=session):
                self.run(wanted)

    def places(self, wanted: Wanted) -> list[Place]:
        """Every place, by path; what stays where it is last. Nothing is written."""
        return _Erasure(self._store, self._caches, wanted, self.at).places

    def run(self, wanted: Wanted) -> list[Place]:
        """Forget, under `locked`; returns the places where it was, and those that stay."""
        files.sweep_below(self._store.root)
        erasure = _Erasure(self._store, self._caches, wanted, self.at)
        erasure.run()
        return erasure.places


class _Erasure:
    """What is to be forgotten, found in a store, and taken out of it by `run`."""

    def __init__(self, store: UserStore, caches: Iterable[Path], wanted: Wanted, at: str) -> None:
        self._store, self._wanted, self._eraser = store, wanted, _Eraser(wanted, at)
        noted = _load(store.root / JOURNAL)
        self._ids: dict[str, str] = {}  # names that are digests of what held it, and the new ones
        for old, new in noted["ids"].items() if isinstance(noted.get("ids"), dict) else ():
            self._ids |= {old: new} if _NAMED.fullmatch(old) and _NAMED.fullmatch(str(new)) else {}
        self._emptied = self._turn_directories()
        self._turns = self._noted(noted.get("turns")) | {*self._emptied}  # these lose something
        self._seals = self._noted(noted.get("seals")) | self._turns  # these, and others that name it
        self._memory: dict[Path, bytes] = {}  # what log and memory files become
        self._first: dict[str, int] = {}  # by user the first line of the log that held it
        self._changes: dict[Path, int] = {}  # files that change, and how many texts each loses
        self._left: dict[Path, Place] = {}  # what stays, by file or directory of a turn
        self._find_turns()
        for user in wanted.users:
            self._find_in_memory(store.of(user))
        self._find_ids()
        for path in self._files():
            self._find_change(path)
        self._eraser.begin(is_own=True)
        cached = [path for cache in caches for path in cache.rglob("*") if path.is_file()]
        self._derived = [path for path in cached if path.parent.name not in ("models", "digests")]
        self._derived += store.indexes.glob("*.db*")
        sessions = (path for user in wanted.users for path in store.of(user).sessions.glob("*/session.json"))
        self._sessions = [path for path in sessions if self._eraser.held_by(_read(path))]
        held = [path for path in self._derived if self._eraser.held_by(_read(path))]
        counts = dict.fromkeys([*self._sessions, *held], 1)
        counts |= {path: count for path, count in self._changes.items() if count}
        self.places = [*(Place(path, counts[path]) for path in sorted(counts)), *self._left.values()]

    def _noted(self, paths: object) -> set[Path]:
        found = [self._store.root / str(path) for path in (paths if isinstance(paths, list) else ())]
        turns = {path for path in found if self._owner(path / METADATA_JSON)[2] == path}
        return {path for path in turns if path.is_dir() and files.may_pass(path)}

    def _turn_directories(self) -> list[Path]:
        """The directories of the turn that goes as a whole: the saved one, and its replays."""
        if self._wanted.turn is None:
            return []
        saved = self._store.turn(self._wanted.turn).directory
        kept = self._store.runs.glob(f"*/turns/{self._store.user}/{saved.name}")
        replays = (path for path in kept if _load(path / METADATA_JSON).get("run") != path.parts[-4])
        return [path for path in (saved, *replays) if path.is_dir() and files.may_pass(path)]

    def _files(self) -> Iterator[Path]:
        """The files of the users or of none, and directories that may not be looked into."""
        store, seen, users = self._store, set[str](), (None, *self._wanted.users)
        for top in (store.users, store.runs, store.interventions, store.executions_log.parent):
            for place, below, found in os.walk(top, followlinks=True):
                real, user = os.path.realpath(place), self._owner(Path(place, METADATA_JSON))[0]
                if real in seen or user not in users:
                    below[:] = []
                elif not files.may_pass(place):
                    below[:] = []
                    yield Path(place)  # whoever reads it is told
                else:
                    seen.add(real)
                    derived = "start" if Path(place).parent == store.runs else "sessions"
                    below[:] = sorted({*below} - {derived})
                    paths = (Path(place, name) for name in sorted(found) if not name.endswith("lock"))
                    yield from (path for path in paths if path.is_file() and not files.is_temporary(path))

    def _owner(self, path: Path) -> tuple[str | None, int, Path | None]:
        """User, number and directory of the turn that a file of the store is of, as far as it is of one."""
        root = self._store.root
        where = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        if match := _TURN.match(where):
            return match[1] or match[2], int(match[3]), root / match[0]
        top, user, *rest = [*where.split("/"), "", ""]
        return (user if top == "users" and any(rest) else None), 0, None

    def _find_turns(self) -> None:
        """The turns that are to lose it; what cannot be looked at is told."""
        for path in self._files():
            _, number, directory = self._owner(path)
            self._eraser.begin(is_own=number in self._wanted.own)
            if self._eraser.held_by(path.name.encode()):
                self._left[path] = Place(path, 1, "its name holds the text: rename it by hand")
            try:
                data = files.read_bytes(path)
            except (StoreError, UntrustedError) as exc:
                self._left[path] = Place(path, 1, f"it cannot be looked at: {exc.message}")
                continue
            if directory and self._eraser.held_by(data) and self._eraser.clean(path, data) != data:
                self._turns.add(directory)

    def _find_in_memory(self, store: UserStore) -> None:
        """What becomes of log and memory files; the ids of assertions are digests of what they said."""
        state, log, lines, now = Projection(store), store.memory_log, [], dict[str, Assertion]()
        state.refresh()
        for number, line in enumerate(_text(_read(log)).split("\n")):
            raw = made = _object(line)
            if "value" in raw:
                self._eraser.begin(is_own=raw.get("source_turn") in self._wanted.own)
                made = self._eraser.assertion(raw)
            if made != raw:
                self._first.setdefault(store.user, number)
                now[raw["id"]] = parse_assertion(made, where=str(log))
            lines.append(line if made == raw else _line(made))
        self._rename(*now)
        self._memory |= {log: "\n".join(lines).encode("utf-8", "surrogateescape")} if log.is_file() else {}
        showing = Showing(state)
        for subject in dict.fromkeys(one.subject for one in state.log.assertions if one.fact.id in now):
            winner = state.standing(subject, store.clock()).winner
            if winner is not None and (after := now.get(winner.fact.id)) is not None:
                showing.show(subject, after if after.fact.confidence else None)
        self._eraser.begin(is_own=False)
        for kind, text in showing.texts().items():
            if text is not None:
                self._memory[state.paths[kind]] = self._eraser.text(text).encode()
                if self._eraser.text(text) != state.texts[kind]:
                    self._first.setdefault(store.user, 0)

    def _rename(self, *digests: str) -> None:
        for name in digests:
            if match := _NAMED.fullmatch(name):
                self._ids.setdefault(name, f"{match[1]}{token_hex(6)}")

    def _find_ids(self) -> None:
        """Names that are digests of what holds it: of interventions, pages and versions of recipes."""
        held, shipped = self._eraser.held_by, b""
        for path in self._store.interventions.glob("*.json"):
            self._rename(*([path.stem] if held(_read(path)) and self._is_of_users(_load(path)) else []))
        for visit in (visit for directory in self._turns for visit in visit_directories(directory)):
            page = _load(visit / names.MANIFEST_JSON)
            if held(f"{visit.name.replace('-', ' ')} {page.get('url')} {page.get('final_url')}".encode()):
                self._rename(visit.name, str(page.get("visit_id")))
        for path in self._store.recipe_versions.rglob("*.json"):
            version = _load(path)
            for text in (version.get("text"), *(version.get("prompts") or {}).values()):
                if held(data := str(text).encode()):
                    places = [*names.asset("recipes").rglob("*.yaml"), *names.asset("prompts").rglob("*.md")]
                    shipped = shipped or b"\0".join(map(_read, places))  # nobody told what these say
                    self._rename(*([] if data in shipped else [path.stem]))

    def _is_of_users(self, value: dict[str, Any]) -> bool:
        users = (None, *self._wanted.users)
        return self._wanted.is_of_all or value.get("user_id", value.get("user")) in users

    def _find_change(self, path: Path) -> None:
        eraser, directory, data = self._eraser, self._owner(path)[2], _read(path)
        made, why = self._made(path, data), None
        if made != data:
            self._changes[path] = eraser.count or int(path in self._memory)
            self._seals |= {directory} if directory else set()
        if self._is_note(path):
            eraser.begin(is_own=True)
            why = "a note is your own file: change or delete it by hand" if eraser.held_by(data) else None
        elif eraser.names:
            why = "it is part of a name, or a word of panda's own: these are never removed"
        elif not self._wanted.visit and eraser.held_by(made, near=True):
            why = "it is said there independently, too: --text takes that as well"
        if why is not None:
            place = directory or path
            count = self._left[place].count if place in self._left else 0
            self._left[place] = Place(place, count + 1, why)

    def _is_note(self, path: Path) -> bool:
        """Whether it is a file of the user's own."""
        top, _, *parts = [*path.relative_to(self._store.root).parts[:4], ""]
        return top == "users" and (
            parts[0] == "knowledge" or (len(parts) == 2 and not _OF_USER.fullmatch(parts[0]))
        )

    def _made(self, path: Path, data: bytes) -> bytes:
        """A file's content once it is forgotten; b"" of one that goes."""
        eraser, (user, number, directory), made = self._eraser, self._owner(path), data
        eraser.begin(is_own=number in self._wanted.own)
        if self._is_note(path):
            return data
        if path.is_relative_to(self._store.recipe_versions):
            return b"" if path.stem in self._ids else data
        if path in self._memory:
            made = self._memory[path]
        elif directory in self._turns:
            made = eraser.clean(path, data, scrubs=True)
        elif directory is None:
            parts = data.split(b"\n") if path.suffix == ".jsonl" else [data]
            made = b"\n".join(self._part(path, part) for part in parts)
        if path.name == names.SNAPSHOT_JSON and user in self._first:
            value = _object(made)
            known = (value.get("memory") or {}).get("assertions", self._first[user] + 1)
            if any((value.get("files") or {}).values()) and known > self._first[user]:
                value |= {"files": dict.fromkeys(value["files"]), "forgotten_at": eraser.at}
                made = files.render_json(value).encode()
        for old, new in self._ids.items():
            made = made.replace(old.encode(), new.encode())
        return made

    def _part(self, path: Path, part: bytes) -> bytes:
        """A file of no turn, or a line; what a run says of a turn that held it is not judged any more."""
        is_held, is_run = self._eraser.held_by(part), path.name in (names.RUN_JSON, names.RUN_TURNS_JSONL)
        if not (is_held or is_run) or not self._is_of_users(value := _object(part)):
            return part
        if path.name == names.RUN_JSON and self._eraser.held_by(_read(path.with_name("queries.jsonl"))):
            value["turns"] = [{**one, "digest": None} for one in value.get("turns") or ()]
            part = files.render_json(value).encode()
        turn = value.get("user"), value.get("turn")
        if path.name == names.RUN_TURNS_JSONL and (
            is_held or turn in [self._owner(one / METADATA_JSON)[:2] for one in self._turns]
        ):
            is_done = any(str(why).startswith("forgotten at ") for why in value.get("findings") or ())
            stays = ("turn", "user", "directory", "item", "exit_code", "seconds", "is_saved")
            made = {key: value[key] for key in stays if key in value}
            made |= {"result": "not judged", "findings": [f"forgotten at {self._eraser.at}"]}
            self._eraser.count += not is_done
            return part if is_done else _line(made).encode()
        return self._eraser.clean(path, part) if is_held else part

    def run(self) -> None:
        store, gone = self._store, {*self._emptied, self._wanted.visit}
        journal: dict[str, Any] = {"at": self._eraser.at, "ids": self._ids}
        for key, turns in (("turns", self._turns), ("seals", self._seals)):
            journal[key] = [str(directory.relative_to(store.root)) for directory in turns]
        files.write_json(store.root / JOURNAL, journal)
        sources = {names.RUN_JSON: -1, METADATA_JSON: 1}  # what tells by others, and what was said
        for path in sorted(self._changes, key=lambda path: sources.get(path.name, 0)):
            if path not in self._memory and not gone & {*path.parents}:
                self._rewrite(path)
        visits = [visit for directory in self._turns for visit in visit_directories(directory)]
        for path in (*visits, *store.interventions.glob("*.json")):
            if path.stem in self._ids:
                with files.store_errors(path, "rename"):
                    path.rename(path.with_name(self._ids[path.stem] + path.suffix))
        self._eraser.begin(is_own=True)
        for path in self._derived:
            is_made_again = path.suffix == ".state" or path.parent.name in ("compression", store.indexes.name)
            if is_made_again or self._eraser.held_by(_read(path)):
                _delete(path)
        for path in sorted(self._memory, key=lambda path: path.name == names.MEMORY_JSONL):
            if path in self._changes:  # the log last: it tells what is to be forgotten
                self._rewrite(path)
        for user in self._wanted.users:
            state = Projection(store.of(user))
            state.refresh()
            state.write_mark()
        removed = [*store.runs.glob("*/start"), *([self._wanted.visit] if self._wanted.visit else [])]
        for path in filter(files.may_pass, removed):  # what a batch began with is made anew when it goes on
            files.remove_tree(path)
        self._seal()
        self._fold_sessions()
        _delete(store.root / JOURNAL)
        files.sync_path(store.root)

    def _rewrite(self, path: Path) -> None:
        with files.held_log(path) if path.suffix == ".jsonl" else nullcontext():
            if made := self._made(path, _read(path)):
                files.write_atomic(path, made)
            else:
                _delete(path)

    def _seal(self) -> None:
        for directory in self._seals:
            path = directory / METADATA_JSON
            if directory in self._emptied or _load(path).get("status") == "forgotten":
                _empty(directory, self._eraser)
            metadata = _load(path) | ({"forgotten_at": self._eraser.at} if directory in self._turns else {})
            if metadata.get(SEAL) is not None:
                metadata[SEAL] = seal_files(directory, metadata)
            if metadata != _load(path):
                files.write_json(path, metadata)

    def _fold_sessions(self) -> None:
        sessions = {(path.parts[-4], path.parts[-2]) for path in self._sessions}
        for path in (path / METADATA_JSON for path in self._turns):
            sessions.add((str(self._owner(path)[0]), str(_load(path).get("session_id"))))
        for user, session in sessions:
            if names.is_id(session) and (path := self._store.of(user).session(session)).is_file():
                folded, of = None, self._store.of(user)
                with suppress(FileFormatError):  # without a file it is made again when its turns read
                    folded = fold_turns(of, session, saved_turns(of).get(session, []))
                if folded is None:
                    _delete(path)
                else:
                    write_session(of, folded)


def _empty(directory: Path, eraser: _Eraser) -> None:
    """Leave nothing of a turn but number, session and times."""
    was, now = load(Metadata, directory / METADATA_JSON), parse_time(eraser.at)
    about: Any = {"turn": was.turn, "user_id": was.user_id, "session_id": was.session_id, "mode": was.mode}
    times: Any = {"created_at": was.created_at, "saved_at": was.saved_at, "updated_at": now}
    rest: Any = {"query": eraser.mark, "status": "forgotten", "route": (), "next": None, "seal": {}}
    made = Metadata(**about, **times, **rest, answered=None, seed=None, forgotten_at=now)
    files.write_json(directory / METADATA_JSON, made.to_json())
    document = ContextDocument(FrontMatter(CONTEXT_SCHEMA, created_at=was.created_at, **about))
    files.write_atomic(directory / names.CONTEXT_MD, render_context(document))
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            files.remove_tree(path)
        elif path.name not in (METADATA_JSON, names.CONTEXT_MD):
            _delete(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _read(path: Path) -> bytes:
    with suppress(StoreError, UntrustedError):
        return files.read_bytes(path) if path.is_file() else b""
    return b""


def _load(path: Path) -> dict[str, Any]:
    return _object(_read(path))


def _object(data: bytes | str) -> dict[str, Any]:
    with suppress(FileFormatError):
        value = files.parse_json(data if isinstance(data, str) else _text(data), where="")
        return value if isinstance(value, dict) else {}
    return {}


def _line(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _values(one: Assertion) -> list[str]:
    value = one.fact.value.v
    parts = (
        part for part in (value if isinstance(value, tuple) else [value]) if part not in (None, True, False)
    )
    return [f"{part:g}" if isinstance(part, float) and part.is_integer() else str(part) for part in parts]


def _quotes(node: str, value: object) -> Iterator[str]:
    for part in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _quotes(node, part)
    if isinstance(value, dict) and (value.get("node_ids") == [node] or value.get("node_id") == node):
        yield str(value.get("text"))


def _is_mark(value: dict[str, Any]) -> bool:
    parts = value.get("v") if isinstance(value.get("v"), list) else [value.get("v")]
    return all(isinstance(part, str) and _MARK.fullmatch(part) for part in parts or [None])


def _delete(path: Path) -> None:
    with files.store_errors(path, "remove"):
        path.unlink(missing_ok=True)
