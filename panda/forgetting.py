"""Forgetting: the texts of what was told go from every file of a store and of the cache; a mark stays."""

import html
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from panda.documents.context import (
    ContextDocument,
    FrontMatter,
    Meta,
    Phase,
    Text,
    parse_context,
    render_context,
)
from panda.documents.memory_file import is_statement
from panda.documents.record_codec import decode
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, LockHeldError, Problem, StoreError, UntrustedError
from panda.language.patterns import lazy_pattern
from panda.language.words import is_ordinary
from panda.memory.fact_reader import id_of
from panda.memory.markdown_files import Projection
from panda.memory.things import FORGOTTEN, ToldThing, find_told_things, removed_spans, value_texts
from panda.messages.clauses import clause_texts
from panda.messages.forget_requests import rest_of_statement
from panda.session.file import rebuild_session, saved_turns, write_session
from panda.store import files, layout
from panda.store.fact_records import Assertion, Subject
from panda.store.forgetting_mark import FORGETTING_JSON, SAME_COMMAND, read_cut_short, write_cut_short
from panda.store.interventions import intervention_id
from panda.store.layout import METADATA_JSON, UserStore
from panda.store.node_id import NodeKind, kind_of
from panda.store.records import Metadata, check_json, load
from panda.store.seals import SEAL, seal_files, seal_value, text_digest
from panda.store.turn_documents import document_node
from panda.store.turns import CONTEXT_SCHEMA
from panda.store.visit_records import visit_ids

WORD_CHARS = 4  # a text with fewer characters counts only as a word of its own
SHORT_CHARS = 8  # a value with fewer goes from memory and the turns that told it alone
LINE_WORDS = 4  # a document's line with fewer goes only from turns that quote it; a figure counts twice
_OF_USER = lazy_pattern(
    r"(preferences|facts)\.md|(memory|conflicts|proposed_facts)\.jsonl|memory\.shown\.json|turn_counter"
)
_NAMES = lazy_pattern(
    "id|item|session(_id)?|user(_id)?|entity|relation|key|recipe|model|(model_)?layer|tool|mode|content_type"
    "|scope|directory|root|turn_id"
)
"""JSON keys whose values are names that others refer to: never removed, but told."""
_FREE = {"arguments", "data", "details", "specs", "products", "offers", "parameters"}
"""JSON keys whose values have keys of their own, which are texts like any other."""
_ENTITIES = {"entities", "topics", "entities_created", "entities_updated", "entities_deleted"}
_FIXED = lazy_pattern(
    r"[0-9a-f]{12,}|(fact|conflict)-[0-9a-f]+|(memory|fact|turn|visit|research|step|document):\S*"
)
"""Digests, ids and nodes: no part of them was told."""
_DIGESTS = lazy_pattern(r"fact-[0-9a-f]{16}|[a-z0-9_-]+-[0-9a-f]{8}")
"""Ids that panda makes of what assertions and interventions say; no other one is replaced."""
_BLANK = r"(?:\s|\\+[nrt]|%(?:25)*(?:20|0A|0D|09|C2%(?:25)*A0)|(?<!\s)\+(?!\s)|&nbsp;|&#160;|(?<=[\nn])>)+"
_QUOTING = (layout.GATHERED_CONTEXT_JSON, layout.EVIDENCE_JSON)
"""Files of a turn that name the nodes that it quotes."""
_CODE = lazy_pattern(r"[\w-]*\d[\w-]*")
"""A word with a figure: what may be repeated of a sentence that is forgotten."""
_BARE_FIGURE = lazy_pattern(r"[\d\W_]{0,7}|\d{4}\W\d\d?\W\d\d?")
"""A date, or a few figures and signs without a letter."""
_TURN = lazy_pattern(r"(?:users/([a-z0-9_-]+)/turns|runs/[^/]+/turns/([a-z0-9_-]+))/turn_(\d{6,15})(?=/)")
_STAYS = ("turn", "user", "directory", "item", "exit_code", "seconds", "is_saved")
"""What a run still says of a turn that held it."""


def find_forms(texts: Iterable[str]) -> re.Pattern[str]:
    r"""
    Return a pattern for texts as files may hold them: in any case, composed or not, over any blanks and line
    breaks, escaped as in JSON (within JSON), a URL, HTML or Markdown.

    >>> bool(find_forms(["4711 blé"]).search('{"a": "it is 4711\\nBL\\u00c9"}'))
    True
    """
    forms: dict[str, None] = {}
    for text in sorted(set(texts), key=len, reverse=True):
        for form in (unicodedata.normalize(how, text) for how in ("NFC", "NFD", "NFKC")):
            pattern = _BLANK.join("".join(map(_escaped, word)) for word in form.split())
            forms[pattern if len(text) >= WORD_CHARS else rf"(?:(?<!\w)|(?<=\\[nrt])){pattern}(?!\w)"] = None
    return re.compile("|".join(forms) or r"(?!)", re.IGNORECASE)


def _escaped(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    forms = [rf"(?:(?<!\\)\\+)?{re.escape(char)}" if char.isascii() else re.escape(char)]
    for case in {char, char.lower(), char.upper()}:
        octets, units = (case.encode(code, "surrogatepass") for code in ("utf-8", "utf-16-be"))
        forms.append("".join(rf"%(?:25)*{octet:02x}" for octet in octets))
        forms.append("".join(rf"\\+u{unit}" for unit in re.findall("....", units.hex())))
        forms.append("".join(rf"&#(?:0*{ord(letter)}|x0*{ord(letter):x});" for letter in case))
        if (
            written := html.escape(case)
        ).lower() != char.lower():  # two equal ways would be tried in all mixes
            forms.append(re.escape(written))
    return f"(?:{'|'.join(forms)})"


@dataclass(frozen=True)
class Wanted:
    """What is to be forgotten."""

    texts: tuple[str, ...]  # they go wherever they stand
    users: tuple[str, ...]  # whose files are looked at
    near: tuple[str, ...] = ()  # these only from turns
    turns: frozenset[int] = frozenset()  # of these numbers
    facts: frozenset[str] = frozenset()  # ids of assertions of which only the key stays
    turn: int | None = None  # a turn of which only the number stays
    visit: Path | None = None  # a directory that goes
    visit_id: str | None = None  # a visit whose name goes from the research of all turns
    is_of_all: bool = False  # whether it goes from what is of no user, too
    nodes: tuple[str, ...] = ()  # turns that quote these lose the telling ones of *near* as well
    rests: Mapping[str, str] = field(default_factory=dict)
    """Ids of assertions of which a part goes, each with the text that stays."""


@dataclass(frozen=True)
class Place:
    """A file that holds some of it, or changes with it."""

    path: Path
    count: int  # number of occurrences; of what goes as a whole, or changes without holding it, 1
    left: str | None = None  # why it stays there; None where panda removes it


class _Eraser:
    """Takes texts out of what files hold."""

    def __init__(self, wanted: Wanted, at: str) -> None:
        texts = [*wanted.texts, *wanted.near]
        mark = f"[forgotten {at}]"
        telling = [text for text in wanted.near if not is_ordinary(text.lower())]
        self._all = find_forms(texts)
        self._far = find_forms(wanted.texts)
        self._quoting = find_forms([*wanted.texts, *telling])
        self.at, self.mark = at, "[forgotten]" if self._all.search(mark) else mark
        runs = (re.findall("[a-z0-9]+", unicodedata.normalize("NFC", text).lower()) for text in texts)
        self._cores = {max(run, key=len, default="").encode() for run in runs}  # no escaping changes them
        self.begin(is_own=False)

    def begin(self, *, is_own: bool, quotes: bool = False) -> None:
        """
        Begin with a file: in turns that said it, or were carried it, all texts are looked for, and in those
        that quote it all but ordinary words.
        """
        if is_own:
            self._pattern = self._all
        else:
            self._pattern = self._quoting if quotes else self._far
        self._scrubs = False
        self._spares = False
        self._is_of_documents = False

    def count(self, data: bytes) -> int:
        low = data.lower()
        return len(self._pattern.findall(_text(data))) if any(core in low for core in self._cores) else 0

    def clean(self, path: Path, data: bytes, *, scrubs: bool = False) -> bytes:
        """
        Return content without the texts; with *scrubs* without calls, entities, topics and digests either.
        """
        text = _text(data)
        name = path.name
        self._scrubs = scrubs
        self._spares = False
        self._is_of_documents = name == layout.DOCUMENTS_JSON
        if path.suffix == ".jsonl":
            cleaned = "\n".join(self._json(line, name) for line in text.split("\n"))
        elif path.suffix == ".json":
            cleaned = self._json(text, f"{path.parent.name}/{name}")
        else:
            cleaned = self._context(text) if name == layout.CONTEXT_MD else self.text(text)
        return cleaned.encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        return self._pattern.sub(lambda _: self.mark, text)

    def value(self, value: Any, key: str = "", *, free: bool = False) -> Any:
        """Return a JSON value without the texts; *free*: within a value whose keys are not panda's."""
        if isinstance(value, str):
            is_digest = key == "etag" or (free and re.fullmatch("[0-9a-f]{16,64}", value))
            is_digest = is_digest or (self._is_of_documents and key in ("sha256", "text_sha256"))
            if self._scrubs and is_digest:
                return None
            is_whole = self._pattern.fullmatch(value) is not None
            is_name = (_NAMES.fullmatch(key) and not free) or (is_whole and self._spares)
            is_name = is_name or (self._is_of_documents and key == "name")
            if not is_name and (is_whole or not _FIXED.fullmatch(value)):
                return self.text(value)
        elif isinstance(value, list):
            parts = [] if self._scrubs and key in _ENTITIES else value
            return [self.value(part, key, free=free) for part in parts]
        elif isinstance(value, dict):
            members = {
                name: self.value(part, name, free=free or name in _FREE) for name, part in value.items()
            }
            if value.get("type") in ("number", "datetime", "ref") and members.get("v") != value.get("v"):
                members["type"] = "string"
            return {self.text(name): part for name, part in members.items()} if free else members
        elif isinstance(value, int | float) and (free or key in ("v", "value")):
            is_told = any(self._pattern.fullmatch(text) for text in (str(value), f"{value:g}"))
            return self.text(str(value)) if is_told else value
        return value

    def _json(self, text: str, name: str) -> str:
        try:
            value = files.parse_json(text, where="")
        except FileFormatError:
            return self.text(text)
        if self._scrubs and name == layout.CALLS_JSONL and value.get("kind") != "forgotten":
            rest = {key: value[key] for key in ("n", "recipe", "usage", "seconds") if key in value}
            return _line(rest | {"kind": "forgotten", "forgotten_at": self.at})
        for self._spares in (False, True):  # at the second time what is nothing but the text stays
            cleaned = self.value(value)
            if cleaned == value:
                return text
            if _fits(name, cleaned) or not _fits(name, value):
                end = text[len(text.rstrip("\n")) :]
                return files.render_json(cleaned) if "\n  " in text else _line(cleaned) + end
        return text

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
                    parts = re.split(
                        r"(?m)^(### .*)$" if section.number == Phase.CONTEXT_GATHERER else r"(?!)", block.text
                    )
                    pieces = (part if n % 2 else self.text(part) for n, part in enumerate(parts))
                    blocks.append(Text("".join(pieces)))
            sections.append(replace(section, blocks=tuple(blocks)))
        cleaned = replace(document, sections=tuple(sections))
        return text if cleaned == document else render_context(cleaned)


class Forgetting:
    """
    Forgets in one store. `forgetting.json` tells, without a word of what it is, that it is being done: the
    same command, given again after it was killed, ends it.
    """

    def __init__(self, store: UserStore, caches: Iterable[Path], *, again: str = SAME_COMMAND) -> None:
        """*again* says which command goes on with it after it was cut short."""
        self._store = store
        self._caches = [cache for cache in caches if cache.is_dir()]
        self._again = again
        self.journal = store.root / FORGETTING_JSON

    @property
    def at(self) -> str:
        """Return the time of the mark: that of the run that was cut short, else the present."""
        if (cut_short := read_cut_short(self._store.root)) is not None:
            return render_time(cut_short.at)
        return render_time(self._store.clock().replace(microsecond=0))

    @contextmanager
    def locked(self, users: Iterable[str], but: str | None = None) -> Iterator[None]:
        """
        Keep every turn of these users from running or beginning (LockHeldError), and every run from going on,
        while the block runs; the caller holds the lock of the session *but*.
        """
        stores = [self._store.of(user) for user in users]
        holder = f"panda forget (process {os.getpid()})"

        def sessions() -> list[Path]:
            there = (path for store in stores for path in store.sessions.glob("*/") if path.name != but)
            return sorted(path / "lock" for path in there)

        with ExitStack() as stack:
            session_locks = sessions()
            runs = sorted(self._store.runs.glob("*/lock"))
            wait = self._store.wait_seconds
            for path in (*session_locks, *(store.memory_lock for store in stores), *runs):
                stack.enter_context(files.held_lock(path, holder=holder, wait_seconds=wait))
            for store in stores:
                stack.enter_context(store.numbering(holder))
            if sessions() != session_locks:
                raise LockHeldError("a session has just begun", where=str(self._store.root), fix="try again")
            yield

    def of_text(self, text: str) -> Wanted:
        bare = text.rstrip(" .!?…")  # a value is kept without the end of its sentence
        is_enough = len(bare) >= WORD_CHARS and bare.lower() not in "[forgotten]"
        users = tuple(layout.users_of(self._store))
        return Wanted((text, bare) if is_enough else (text,), users, is_of_all=True)

    def of_subject(self, entity: str, relation: str) -> Wanted | None:
        """
        Return all that was ever said of the subject: under its key, in sentences, and in what corrected them.
        Of a sentence that says more only the clause about it goes, unless the sentence itself is named. None:
        nothing was.
        """
        assertions = self._assertions()
        named = next(
            (assertion.subject for assertion in assertions if assertion.subject[1:] == (entity, relation)),
            None,
        )
        if named is None:
            return None
        things = [thing for thing in find_told_things(assertions) if named in thing.subjects]
        return self._of_things(things, assertions, named=named)

    def _of_things(
        self,
        things: Sequence[ToldThing],
        assertions: Sequence[Assertion],
        *,
        named: Subject | None = None,
    ) -> Wanted:
        """
        Return what is to go for some things; a key or sentence that is *named* itself goes with all that it
        says.
        """
        subjects = {subject for thing in things for subject in thing.keys}
        if named is not None:
            subjects.add(named)
        clauses = [clause for thing in things for clause in thing.clauses if clause.subject != named]
        texts = [clause.text for clause in clauses]
        rests: dict[str, str] = {}
        spans = removed_spans(things)
        for assertion in assertions:
            if assertion.subject in subjects or assertion.subject not in spans:
                continue
            sentence = str(assertion.value.v)
            if rest := rest_of_statement(sentence, spans[assertion.subject]):
                rests[assertion.id] = rest
            else:
                subjects.add(assertion.subject)
        facts = [assertion for assertion in assertions if assertion.subject in subjects]
        wanted = self._of(facts, texts)
        turns = frozenset(clause.source_turn for clause in clauses if clause.source_turn is not None)
        return replace(wanted, turns=wanted.turns | turns, rests=rests)

    def of_turn(self, number: int) -> Wanted:
        """Return a whole turn: what was told everywhere, what was asked and answered from its session."""
        turn = self._store.turn(number)
        assertions = self._assertions()
        about = _load(turn / METADATA_JSON)
        later = [n for n in saved_turns(self._store).get(str(about.get("session_id")), ()) if n >= number]
        wanted = self._of([assertion for assertion in assertions if assertion.source_turn == number])
        staged_texts = [
            text for raw in self._staged(number) if len(text := str(raw.get("text"))) >= SHORT_CHARS
        ]
        summary = _load(turn / layout.SUMMARY_JSON).get("turn_summary") or ""
        near = [about.get("query", ""), _text(_read(turn / layout.RESPONSE_MD)).strip(), summary]
        near = [*wanted.near, *(text for text in near if text and not FORGOTTEN.search(text))]
        documents = self._document_nodes(turn.directory, number)
        lines = self._quoted_lines(documents)
        unique = [line for line in lines if _is_telling(line)]
        near += [line for line in lines if line not in unique]
        return replace(
            wanted,
            texts=(*wanted.texts, *staged_texts, *unique),
            near=tuple(near),
            turns=wanted.turns | {*later},
            turn=number,
            nodes=(*wanted.nodes, *documents),
        )

    def _document_nodes(self, directory: Path, number: int) -> list[str]:
        """Return the nodes of the documents that were handed over with a turn."""
        records = _load(directory / layout.DOCUMENTS_JSON).get("documents") or ()
        return [document_node(number, str(record.get("name"))) for record in records]

    def _quoted_lines(self, nodes: Sequence[str]) -> list[str]:
        """
        Return the lines that the user's turns and their replays quote of nodes: each once, without the end of
        its sentence. Bare dates and short figures are left out, since times and versions consist of them.
        """
        if not nodes:
            return []
        replays = self._store.runs.glob(f"*/turns/{self._store.user}/*")
        lines: dict[str, None] = {}
        for directory in (*self._store.turns.glob("*"), *replays):
            for path in (directory / name for name in _QUOTING):
                if _names(path, nodes):
                    value = _load(path)
                    lines |= dict.fromkeys(line for node in nodes for line in _quotes(node, value))
        ends = (line.rstrip(" .!?…") for line in lines if not FORGOTTEN.search(line))
        return list(dict.fromkeys(line for line in ends if line and not _BARE_FIGURE.fullmatch(line)))

    def of_visit(self, name: str) -> Wanted | None:
        """
        Return a page as it was read, with what its turn quotes of it; of a visit that is gone only its name,
        where research still has it. None if there is neither.
        """
        users = (self._store.user,)
        for path in self._store.turns.glob(f"*/webpage_cache/*/{layout.MANIFEST_JSON}"):
            if _load(path).get("visit_id") == name:
                values = (_load(place) for place in path.parents[2].rglob("*.json"))
                texts = tuple(text for value in values for text in _quotes(NodeKind.VISIT.id(name), value))
                return Wanted(texts, users, visit=path.parent, visit_id=name)
        for path in self._store.turns.glob("*/research.*"):
            data = _read(path)
            if name and _without_visits(path, data, [name], mark="") != data:
                return Wanted((), users, visit_id=name)
        return None

    def _of(self, facts: Collection[Assertion], clauses: Sequence[str] = ()) -> Wanted:
        """
        Return what is to go for assertions and clauses; an assertion without words of its own counts as the
        text that told it.
        """
        texts = [text.rstrip(" .!?…") for text in clauses]
        user = self._store.user
        for fact in facts:
            told_in = self._staged(fact.source_turn or 0)
            staged = [raw for raw in told_in if raw.get("relation") == fact.relation]
            values = value_texts(fact) or [str(raw["text"]) for raw in staged]
            if is_statement(fact.relation):
                values = [value.rstrip(" .!?…") for value in values]
            texts += values
        texts = [text for text in dict.fromkeys(texts) if text and not FORGOTTEN.search(text)]
        parts = [part for text in texts for part in clause_texts(text) if " " in part and part not in texts]
        codes = [code for text in texts for code in _CODE.findall(text) if len(code) >= WORD_CHARS]
        return Wanted(
            texts=tuple(text for text in texts if len(text) >= SHORT_CHARS),
            users=(self._store.user,),
            near=tuple(dict.fromkeys([*(text for text in texts if len(text) < SHORT_CHARS), *parts, *codes])),
            turns=frozenset(fact.source_turn for fact in facts if fact.source_turn is not None),
            facts=frozenset(fact.id for fact in facts),
            nodes=tuple(
                {f"{kind}:{fact.subject.key(user)}" for fact in facts for kind in ("memory", "fact")}
            ),
        )

    def _staged(self, number: int) -> list[dict[str, Any]]:
        return list(_load(self._store.turn(number) / layout.STAGED_MEMORY_JSON).get("staged") or ())

    def _assertions(self) -> list[Assertion]:
        state = Projection(self._store)
        state.refresh()
        return list(state.log.assertions)

    def places_of_things(self, things: Sequence[ToldThing]) -> list[Place]:
        """Return the places of all that things say, as `places` has them."""
        return self.places(self._of_things(things, self._assertions()))

    def forget_in_turn(
        self, things: Sequence[ToldThing], not_stored: Sequence[str], turns: Sequence[int], session: str
    ) -> None:
        """
        Forget within a running turn, the lock of whose session is held: some things everywhere, and clauses
        that are not to be stored in the turn alone, the first of *turns*. The others spoke of it, too.
        """
        wanted = []
        if things:
            of_things = self._of_things(things, self._assertions())
            wanted.append(replace(of_things, turns=of_things.turns | {*turns}))
        if not_stored:
            own = tuple(text for text in not_stored if not FORGOTTEN.search(text))
            wanted.append(Wanted((), (self._store.user,), near=own, turns=frozenset(turns[:1])))
        for target in wanted:
            with self.locked(target.users, but=session):
                self.run(target)

    def seal_turns(self, numbers: Iterable[int]) -> list[int]:
        """
        Seal turns, as they are, in which an earlier version forgot something without sealing them; return the
        numbers of those that were sealed.
        """
        sealed = []
        with self.locked([self._store.user]):
            for number in numbers:
                directory = self._store.turn(number).directory
                metadata = _load(directory / METADATA_JSON)
                is_ended = metadata.get("next") is None
                if metadata.get("forgotten_at") and is_ended and not metadata.get(SEAL):
                    seal = seal_files(directory, metadata)
                    files.write_json(directory / METADATA_JSON, metadata | {SEAL: seal})
                    sealed.append(number)
        return sealed

    def places(self, wanted: Wanted) -> list[Place]:
        """Return every place, by path; what stays where it is last. Nothing is written."""
        return _ForgetWalk(self._store, self._caches, wanted, self.at).places

    def run(self, wanted: Wanted) -> list[Place]:
        """Forget, under `locked`; return the places where it was, and those that stay."""
        files.sweep_below(self._store.root)
        walk = _ForgetWalk(self._store, self._caches, wanted, self.at, self._again)
        walk.run()
        return walk.places


class _ForgetWalk:
    """
    What is to be forgotten, found by a walk over a store, and taken out of it in another one, by `run`. What
    becomes of a file follows from wish, time and what is changed last, so that a second run does the rest.
    """

    def __init__(
        self, store: UserStore, caches: Iterable[Path], wanted: Wanted, at: str, again: str = SAME_COMMAND
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._eraser = _Eraser(wanted, at)
        self._again = again
        saved = store.turn(wanted.turn or 0).directory
        turns = [saved, *store.runs.glob(f"*/turns/{store.user}/{saved.name}")] if wanted.turn else []
        self._emptied = [
            directory
            for directory in turns
            if _load(directory / METADATA_JSON).get("run") not in directory.parts
        ]
        self._turns = {*self._emptied}  # these lose something
        self._pages = {wanted.visit} if wanted.visit else set[Path]()  # directories that go
        self._visit_ids = {visit_id for turn in self._emptied for visit_id in visit_ids(turn)}
        """Visits that are gone then: no research may name them."""
        if wanted.visit_id is not None:
            self._visit_ids.add(wanted.visit_id)
        self._ids: dict[str, str] = {}  # ids that are digests of what held it, and those of what is left
        self._memory: dict[Path, bytes] = {}  # what log and memory files become
        self._first: dict[str, int] = {}  # by user the first line of the log that held it
        self._counts = Counter(self._emptied)
        self._left: dict[Path, Place] = {}
        for user in wanted.users:
            self._find_in_memory(store.of(user))
        for _ in self._changes():
            pass
        self._eraser.begin(is_own=True)
        cached = [path for cache in caches for path in cache.rglob("*") if path.is_file()]
        self._derived = [path for path in cached if path.parent.name not in ("models", "digests")]
        self._derived += store.indexes.glob("*.db*")
        sessions = [path for user in wanted.users for path in store.of(user).sessions.glob("*/session.json")]
        self._sessions = {path for path in sessions if self._eraser.count(_read(path))}
        held = (path for path in self._derived if self._eraser.count(_read(path)))
        self._counts.update([*self._sessions, *held])
        self._counts.update(page for page in self._pages if page.is_dir())
        places = [Place(path, count) for path, count in sorted(self._counts.items()) if count]
        self.places = [*places, *self._left.values()]

    def _files(self) -> Iterator[Path]:
        """Yield the files of the users or of none, and directories that may not be looked into."""
        store = self._store
        seen = set[str]()
        users = (None, *self._wanted.users)
        for top in (store.users, store.runs, store.interventions, store.executions_log.parent):
            for name, below, there in os.walk(top, followlinks=True):
                place = Path(name)
                real = os.path.realpath(name)
                if place.parent in (store.runs, store.users):  # what a batch began with, what is folded
                    below[:] = {*below} - {"start", "sessions"}
                below.sort()
                if real in seen or self._is_of_recipes(place) or self._owner(place / "-")[0] not in users:
                    below.clear()
                elif not files.may_pass(place):
                    below.clear()
                    yield place  # whoever reads it is told
                else:
                    seen.add(real)
                    paths = (place / name for name in sorted(there) if not name.endswith("lock"))
                    yield from (path for path in paths if path.is_file() and not files.is_temporary(path))

    def _is_of_recipes(self, directory: Path) -> bool:
        """Return whether a directory keeps versions of recipes, nobody's words; a run has copies of them."""
        versions = self._store.recipe_versions
        below = versions.relative_to(self._store.root)
        return directory == versions or any(
            directory == run / below for run in directory.parents if run.parent == self._store.runs
        )

    def _owner(self, path: Path) -> tuple[str | None, int, Path | None]:
        """
        Return the user, number and directory of the turn that a file of the store is of, as far as it is of
        one.
        """
        where = path.relative_to(self._store.root).as_posix()
        if match := _TURN.match(where):
            return match[1] or match[2], int(match[3]), self._store.root / match[0]
        top, user, *rest = [*where.split("/"), "", ""]
        return (user if top == "users" and any(rest) else None), 0, None

    def _find_in_memory(self, store: UserStore) -> None:
        state = Projection(store)
        log = store.memory_log
        lines = []
        now = dict[str, Assertion]()
        state.refresh()
        for number, line in enumerate(_text(_read(log)).split("\n")):
            raw = _object(line)
            changed = self._eraser.value(raw)
            if raw.get("id") in self._wanted.rests:
                changed["value"] = {**raw["value"], "v": self._wanted.rests[raw["id"]]}
            if raw.get("id") in self._wanted.facts and not _is_mark(raw["value"]):
                changed["value"] = {"type": "string", "v": self._eraser.mark}
            if changed != raw:
                self._first.setdefault(store.user, number)
                if _is_mark(changed["value"]):
                    changed["confidence"] = 0.0  # with nothing left to say it retracts
                now[raw["id"]] = assertion = decode(Assertion, changed, where=str(log))
                if _DIGESTS.fullmatch(raw["id"]):
                    self._ids[raw["id"]] = id_of(assertion)
            lines.append(line if changed == raw else _line(changed))
        self._memory |= {log: "\n".join(lines).encode("utf-8", "surrogateescape")} if log.is_file() else {}
        winners: dict[Subject, Assertion | None] = {}
        for subject in dict.fromkeys(
            assertion.subject for assertion in state.log.assertions if assertion.id in now
        ):
            winner = state.standing(subject, store.clock()).winner
            if winner is not None and (after := now.get(winner.id)) is not None:
                winners[subject] = after if after.confidence else None
        for kind, text in state.shown(winners).items():
            if text is not None:
                self._memory[state.paths[kind]] = self._eraser.text(text).encode()
                if self._eraser.text(text) != state.texts[kind]:
                    self._first.setdefault(store.user, 0)

    def _changes(self) -> Iterator[tuple[Path, bytes]]:
        """
        Yield each file that changes, with its new content; turns first, since what is said of them depends on
        them.
        """
        others: list[Path] = []
        for directory, paths in groupby(self._files(), lambda path: self._owner(path)[2]):
            if directory is None:
                others += paths
            elif directory not in self._emptied:
                yield from self._of_turn(directory, [*paths])
        for path in sorted(others, key=lambda path: path.name != layout.RUN_JSON):  # by the queries beside it
            if (data := self._look(path)) is not None:
                content = self._renamed(self._memory.get(path) or self._other(path, data))
                if path in self._memory:
                    self._tell(path, data, content, int(content != data))
                if content != data:
                    yield path, content

    def _of_turn(self, directory: Path, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
        """
        Yield the files of a turn that change; its metadata first: after a kill the mark says that it is held.
        """
        wanted = self._wanted
        eraser = self._eraser
        metadata = directory / METADATA_JSON
        user, number, _ = self._owner(metadata)
        quotes = any(_names(path, wanted.nodes) for path in paths if path.name in _QUOTING)
        eraser.begin(is_own=number in wanted.turns, quotes=quotes)
        data = {path: content for path in paths if (content := self._look(path)) is not None}
        about = _object(data.get(metadata, b""))
        is_held = about.get("forgotten_at") == eraser.at
        contents = dict(data)
        is_held |= wanted.visit is not None and directory in wanted.visit.parents
        documents = [node for node in wanted.nodes if kind_of(node) is NodeKind.DOCUMENT]
        is_held |= any(_names(path, documents) for path in paths if path.name in _QUOTING)  # they go
        for path in filter(lambda path: eraser.count(data[path]), data):
            is_held |= eraser.clean(path, data[path]) != data[path]
        if is_held:
            self._turns.add(directory)
            for path in data:
                contents[path] = eraser.clean(path, data[path], scrubs=True)
            for path in (path for path in data if path.name == layout.MANIFEST_JSON):
                page = _object(data[path])
                if any(eraser.count(str(page.get(key, "")).encode()) for key in ("url", "final_url")):
                    self._pages.add(path.parent)  # its name is a digest, too
                    if visit_id := page.get("visit_id"):
                        self._visit_ids.add(str(visit_id))
        for path in data:
            value = (
                _object(contents[path]) if path.name == layout.SNAPSHOT_JSON and user in self._first else {}
            )
            assertion_count = (value.get("memory") or {}).get("assertions", sys.maxsize)
            if any((value.get("files") or {}).values()) and assertion_count > self._first[str(user)]:
                value |= {"files": dict.fromkeys(value["files"]), "forgotten_at": eraser.at}
                contents[path] = files.render_json(value).encode()
            unnamed = _without_visits(path, contents[path], self._visit_ids, mark=eraser.mark)
            contents[path] = self._renamed(unnamed)
            self._tell(path, data[path], contents[path], int(contents[path] != data[path]))
        changed = {path: content for path, content in contents.items() if content != data[path]}
        if about and (changed or is_held):
            now = _object(contents[metadata]) | ({"forgotten_at": eraser.at} if is_held else {})
            if (seal := self._new_seal(directory, now, changed)) is not None:
                now[SEAL] = seal
            changed[metadata] = files.render_json(now).encode()
        analysis = directory / layout.QUERY_ANALYSIS_JSON  # last: it says what is not to be stored
        yield from sorted(changed.items(), key=lambda entry: (entry[0] != metadata, entry[0] == analysis))

    def _new_seal(
        self, directory: Path, metadata: Mapping[str, Any], changed: Mapping[Path, bytes]
    ) -> dict[str, str] | None:
        """
        Return the seal of a turn once some of its files have changed; None while the turn runs. A digest of a
        file that stays is taken over, so that what changed before is still seen; a turn without seal gets
        one.
        """
        former = metadata.get(SEAL)
        if not isinstance(former, dict):
            if metadata.get("next") is not None or metadata.get("forgotten_at") is None:
                return None
            former = seal_files(directory, metadata)
        seal = {}
        for name, digest in former.items():
            path = directory / name
            if self._pages.isdisjoint(path.parents):
                seal[name] = text_digest(changed[path]) if path in changed else digest
        seal[METADATA_JSON] = seal_value(metadata)
        return seal

    def _renamed(self, data: bytes) -> bytes:
        for old, new in self._ids.items():
            data = data.replace(old.encode(), new.encode())
        return data

    def _other(self, path: Path, data: bytes) -> bytes:
        """
        Return the cleaned content of a file of no turn; what a run says of a turn that held it is not judged
        any more.
        """
        eraser = self._eraser
        parts = []
        eraser.begin(is_own=False)
        users = (None, *self._wanted.users)
        turns = {self._owner(directory / "-")[:2] for directory in self._turns}
        lines = data.split(b"\n") if path.suffix == ".jsonl" else [data]
        for before in lines:
            part = before
            value = _object(before)
            is_held = eraser.count(before)
            is_ours = self._wanted.is_of_all or value.get("user_id", value.get("user")) in users
            if not is_ours:
                pass
            elif path.name == layout.RUN_TURNS_JSONL:
                is_told = str(value.get("findings")).startswith("['forgotten at ")
                if not is_told and (is_held or (value.get("user"), value.get("turn")) in turns):
                    value = {key: value[key] for key in _STAYS if key in value}
                    findings = [f"forgotten at {eraser.at}"]
                    part = _line(value | {"result": "not judged", "findings": findings}).encode()
            elif is_held:
                part = eraser.clean(path, part)
                if path.parent.name == "interventions" and _DIGESTS.fullmatch(path.stem):
                    about = map(_object(part).get, ("created_at", "user_id", "turn", "phase", "message"))
                    self._ids[path.stem] = intervention_id(*about)  # type: ignore[arg-type]  # as they stand
            parts.append(part)
            if is_ours:
                self._tell(path, before, part)
        if path.name == layout.RUN_JSON and eraser.count(_read(path.with_name(layout.QUERIES_JSONL))):
            value = _object(parts[0])
            value["turns"] = [{**turn, "digest": None} for turn in value.get("turns") or ()]
            parts = [files.render_json(value).encode()]
        return b"\n".join(parts)

    def _look(self, path: Path) -> bytes | None:
        """
        Return the content of a file; None, and told, of notes that hold a text, and where it cannot be had.
        """
        eraser = self._eraser
        data = None
        if eraser.count(os.fsencode(path.name)):
            why = "its name holds the text: rename it by hand"
            _, number, directory = self._owner(path)
            if directory is not None and path.parent == directory / layout.DOCUMENTS:
                why = f"its name holds the text, and answers cite it: `panda forget {number}` removes it"
            self._left[path] = Place(path, 1, why)
        try:
            data = files.read_bytes(path)
        except (StoreError, UntrustedError) as exc:
            self._left[path] = Place(path, 1, f"it cannot be looked at: {exc.message}")
        if data is not None and self._is_note(path):
            eraser.begin(is_own=True)
            if eraser.count(data):
                self._left[path] = Place(path, 1, "a note is your own file: change or delete it by hand")
            data = None
        return data

    def _is_note(self, path: Path) -> bool:
        top, _, *parts = [*path.relative_to(self._store.root).parts[:4], ""]
        is_own = len(parts) == 2 and not _OF_USER.fullmatch(parts[0])
        return top == "users" and (parts[0] == "knowledge" or is_own)

    def _tell(self, path: Path, data: bytes, after: bytes, least: int = 0) -> None:
        """Note how often a file holds a text, and whether it still does where it was to go."""
        self._counts[path] += max(least, self._eraser.count(data))
        if left := self._eraser.count(after):
            why = "it is part of a name, or a word of panda's own: these are never removed"
            self._left[path] = Place(path, left, why)

    def run(self) -> None:
        store = self._store
        write_cut_short(store.root, self._eraser.at, self._again)
        for path, content in self._changes():
            if path not in self._memory:
                renamed = path.with_stem(self._ids.get(path.stem, path.stem))
                _replace(renamed, content)
                if renamed != path:
                    _delete(path)
        self._eraser.begin(is_own=True)
        for path in self._derived:
            is_made_again = path.suffix == ".state" or path.parent.name in ("compression", store.indexes.name)
            if is_made_again or self._eraser.count(_read(path)):
                _delete(path)
        for path in sorted(self._memory, key=lambda path: path.name == layout.MEMORY_JSONL):
            _replace(path, self._renamed(self._memory[path]))  # the log last: it tells what is to go
        for user in self._wanted.users:
            state = Projection(store.of(user))
            state.refresh()
            state.write_mark()
        for directory in self._emptied:
            _empty(directory, self._eraser)
        starts = store.runs.glob("*/start")  # what a batch began with is made anew when it goes on
        for path in filter(files.may_pass, [*starts, *self._pages]):
            files.remove_tree(path)
        sessions = {(path.parts[-4], path.parts[-2]) for path in self._sessions}
        for directory in self._turns:
            owner = self._owner(directory / "-")[0]
            sessions.add((str(owner), str(_load(directory / METADATA_JSON).get("session_id"))))
        for user, session in sessions:
            if layout.is_id(session) and (path := store.of(user).session(session)).is_file():
                _delete(path)  # without a file it is made again when its turns read
                with suppress(FileFormatError):
                    if folded := rebuild_session(store.of(user), session):
                        write_session(store, folded)
        _delete(store.root / FORGETTING_JSON)
        files.sync_path(store.root)


def _empty(directory: Path, eraser: _Eraser) -> None:
    """Leave nothing of a turn but number, session and times."""
    was = load(Metadata, directory / METADATA_JSON)
    now = parse_time(eraser.at)
    about: Any = {"turn": was.turn, "user_id": was.user_id, "session_id": was.session_id, "mode": was.mode}
    text = render_context(ContextDocument(FrontMatter(CONTEXT_SCHEMA, created_at=was.created_at, **about)))
    times: Any = {"created_at": was.created_at, "saved_at": was.saved_at, "updated_at": now}
    rest: Any = {"query": eraser.mark, "status": "forgotten", "route": (), "next": None, "forgotten_at": now}
    metadata = Metadata(**about, **times, **rest, answered=None, seed=None).to_json()
    seal = {layout.CONTEXT_MD: text_digest(text), METADATA_JSON: seal_value(metadata)}
    files.write_json(directory / METADATA_JSON, metadata | {SEAL: seal})
    files.write_atomic(directory / layout.CONTEXT_MD, text)
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            files.remove_tree(path)
        elif path.name not in (METADATA_JSON, layout.CONTEXT_MD):
            _delete(path)


def _replace(path: Path, data: bytes) -> None:
    with files.held_log(path) if path.suffix == ".jsonl" else nullcontext():
        files.write_atomic(path, data)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _read(path: Path) -> bytes:
    with suppress(StoreError, UntrustedError):
        return files.read_bytes(path) if path.is_file() else b""
    return b""


def _load(path: Path) -> dict[str, Any]:
    return _object(_read(path))


def _names(path: Path, nodes: Sequence[str]) -> bool:
    """Return whether a file of a turn names one of some nodes."""
    data = _read(path) if nodes else b""
    return any(f'"{node}"'.encode() in data for node in nodes)


def _object(data: bytes | str) -> dict[str, Any]:
    with suppress(FileFormatError):
        value = files.parse_json(data if isinstance(data, str) else _text(data), where="")
        return value if isinstance(value, dict) else {}
    return {}


def _fits(name: str, value: object) -> bool:
    with suppress(FileFormatError):
        check_json(name, value, "")
        return True
    return False


def _line(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _without_visits(path: Path, data: bytes, visit_ids: Collection[str], *, mark: str) -> bytes:
    """Return what research.json or research.md holds without the names of some visits; else the same data."""
    if path.name == layout.RESEARCH_JSON:
        value = _object(data)
        named = value.get("webpage_cache")
        if isinstance(named, list) and (rest := [name for name in named if name not in visit_ids]) != named:
            return files.render_json(value | {"webpage_cache": rest}).encode()
    elif path.name == layout.RESEARCH_MD:
        text = _text(data)
        for visit_id in visit_ids:
            text = re.sub(rf"\b(?:visit:)?{re.escape(visit_id)}\b", lambda _: mark, text)
        return text.encode("utf-8", "surrogateescape")
    return data


def _quotes(node: str, value: object) -> Iterator[str]:
    parts: Iterable[object] = ()
    if isinstance(value, list):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    for part in parts:
        yield from _quotes(node, part)
    if isinstance(value, dict) and "text" in value and _is_of_node(node, value):
        yield from filter(None, str(value.get("text")).split("\n"))  # a passage has several lines


def _is_telling(line: str) -> bool:
    """Return whether a line of a document is hardly anyone else's, so that it may go wherever it stands."""
    words = len(line.split()) + bool(_CODE.search(line))
    return words >= LINE_WORDS and len(line) >= SHORT_CHARS


def _is_of_node(node: str, value: Mapping[str, Any]) -> bool:
    """Return whether a line of gathered context or evidence is quoted of a node, and of no other one."""
    if kind_of(node) is NodeKind.DOCUMENT and value.get("node") == node:
        return True  # of pages the evidence's lines are not taken: other turns may say the same
    return value.get("node_ids") == [node] or value.get("node_id") == node


def _is_mark(value: dict[str, Any]) -> bool:
    parts = value.get("v") if isinstance(value.get("v"), list) else [value.get("v")]
    return all(isinstance(part, str) and FORGOTTEN.fullmatch(part) for part in parts or [None])


def _delete(path: Path) -> None:
    with files.store_errors(path, "remove"):
        path.unlink(missing_ok=True)
