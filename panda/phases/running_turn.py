"""The running turn: its identity, its files, its journal of calls."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from panda.documents.context import SECTIONS, ContextDocument, Phase
from panda.documents.record_codec import encode
from panda.errors import HaltError, QueryError
from panda.messages.questions import plain_recap
from panda.messages.reading import Reading
from panda.models.cl100k import count_tokens
from panda.recipes.calls import Recordings
from panda.session.fold import carry_within
from panda.session.turn_files import TurnFiles
from panda.store.carry import EMPTY, Carry
from panda.store.files import read_text
from panda.store.layout import UserStore
from panda.store.records import (
    ChoiceCall,
    GatheredContext,
    GatheredSection,
    GeneratedCall,
    Image,
    IndexSummary,
    Metadata,
    ModelCall,
    Plan,
    QueryAnalysis,
    ReflectionRecord,
    Session,
    Step,
    find,
    load,
)
from panda.store.turn_documents import document_node, find_documents
from panda.store.turns import TurnFolder
from panda.store.visit_records import SAVED_STATUSES

MOST_EXECUTIONS = 25


def check_query(query: str) -> None:
    """Raises QueryError for a query that cannot start a turn: empty, longer than §0 holds, or not text."""
    if not query.strip():
        raise QueryError("the query is empty", where="QUERY", fix='give a query, as in panda turn "What …?"')
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise QueryError("the query is not valid UTF-8", where="QUERY", fix="give it as UTF-8 text")
    most = SECTIONS[0].budget_tokens
    count = count_tokens(query)
    if count > most:
        raise QueryError(
            f"the query has {count:,} tokens, {count - most:,} more than the {most} that a query may have",
            where="QUERY",
            fix='hand the text over as a document, as in panda turn --with - "What …?" < FILE, or put it'
            " into a file under knowledge/ of the user",
        )


def ask_unnoticed() -> None:
    """Tell nobody that a recipe is about to be asked."""


class Turn:
    """
    One query on its way through the phases, in its *folder*. *session* is as it found it, None before its
    first turn; without *recordings* the answers in its calls.jsonl are not asked for again.

    Its metadata.json is read once, here: whoever runs a turn holds the lock of its session, and nobody else
    changes the file meanwhile. From then on `metadata` is what the file says.
    """

    def __init__(
        self,
        folder: TurnFolder,
        store: UserStore,
        *,
        recordings: Recordings | None = None,
        session: Session | None = None,
    ) -> None:
        self.session = session
        self.folder = folder
        self.store = store
        self.metadata = metadata = folder.read_metadata()
        self.query = metadata.query
        self.user_id = metadata.user_id
        self.session_id = metadata.session_id
        self.mode = metadata.mode
        self.dry_run = metadata.dry_run
        self.image = metadata.image
        self.documents = find_documents(folder.paths)
        self.begin_phase()
        self.warnings: list[str] = []
        self.recipe: str | None = None
        """The recipe that is being asked; None between calls."""
        self.on_ask: Callable[[], None] = ask_unnoticed
        """Told before a recipe is asked."""
        self._seed = metadata.seed
        self._context = folder.read_context()
        self._calls = folder.load_calls()
        self.recordings = recordings or Recordings(self._calls)
        self._made = Counter(_identity(call) for call in self._calls if self._is_current(call))
        done = (call.execution for call in self._calls if not self._is_current(call))
        self._executions = max(done, default=0)
        self._joined: int | None = None
        self._prefixes = {digest for call in self._calls for digest in _prefixes(call)}
        self._recaps: dict[int, str | None] = {}  # of earlier turns, which do not change now

    def begin_phase(self) -> None:
        """Take the place where the turn goes on from its metadata; what earlier phases wrote is read anew."""
        self._analysis: QueryAnalysis | None = None
        self._present: Carry | None = None
        metadata = self.metadata
        going_on = metadata.next
        self.phase = going_on.phase if going_on else 7
        self.round = going_on.round if going_on else 0
        self.attempt = going_on.attempt if going_on else 0
        self.ending = metadata.ending or "approved"
        self.answered = metadata.answered
        self.question = metadata.question
        self.reason = metadata.reason

    @property
    def turn(self) -> int:
        return self.folder.number

    @property
    def today(self) -> str:
        return f"{self.context.front.created_at:%A, %Y-%m-%d}"

    @property
    def analysis(self) -> QueryAnalysis:
        if self._analysis is None:
            self._analysis = self.folder.load(QueryAnalysis)
        return self._analysis

    @property
    def plan(self) -> Plan:
        return self.folder.load(Plan)

    @property
    def gathered(self) -> tuple[GatheredSection, ...]:
        return self.folder.load(GatheredContext).sections

    @property
    def document_nodes(self) -> tuple[str, ...]:
        """The nodes of the documents that were handed over with the query, in their order."""
        return tuple(document_node(self.turn, document.name) for document in self.documents)

    @property
    def meant(self) -> str:
        """The query with names for what it refers to, once phase 0 has found them; before, as it stands."""
        return self.analysis.resolved_query if self._is_analysed else self.query

    @property
    def _is_analysed(self) -> bool:
        return self.phase > Phase.QUERY_ANALYZER and self.folder.has(QueryAnalysis.FILE)

    @property
    def intent(self) -> str | None:
        return self.analysis.intent if self._is_analysed else None

    @property
    def reading(self) -> Reading:
        return self.analysis.reading if self._is_analysed else Reading(recap=plain_recap(self.query))

    @property
    def earlier(self) -> tuple[int, ...]:
        """The turns of its session before it, oldest first."""
        entries = self.session.turns if self.session else ()
        return tuple(entry.turn for entry in entries if entry.turn < self.turn)

    def recent(self, limit: int) -> list[tuple[int, str]]:
        """The last saved turns of its session, oldest first: number, and summary or else query."""
        recaps: list[tuple[int, str]] = []
        for number in reversed(self.earlier):
            if len(recaps) == limit:
                break
            if number not in self._recaps:
                self._recaps[number] = _recap(self.store.turn(number).directory)
            if (recap := self._recaps[number]) is not None:
                recaps.append((number, recap))
        return recaps[::-1]

    @property
    def carry(self) -> Carry:
        return self.session.carry if self.session else EMPTY

    @property
    def present_carry(self) -> Carry:
        """
        Return what the turn knows of its session, with what its own phases before the present one decided.
        """
        if self._present is None:
            files = TurnFiles(
                turn=self.turn,
                session_id=self.session_id,
                at="",
                query=self.query,
                analysis=self.analysis if self._is_analysed else None,
                reflection=self.folder.find(ReflectionRecord) if self.phase > Phase.REFLECTION else None,
                plan=self.folder.find(Plan) if self.phase > Phase.PLANNER else None,
                steps=tuple(self.steps()) if self.phase > Phase.COORDINATOR else (),
            )
            self._present = carry_within(self.carry, files)
        return self._present

    @property
    def context(self) -> ContextDocument:
        return self._context

    def write_metadata(self, metadata: Metadata) -> None:
        """Replace metadata.json by one rename; the turn goes on from what was written."""
        self.metadata = self.folder.write_metadata(metadata)

    def write_context(self, document: ContextDocument) -> None:
        self.folder.write_context(document)
        self._context = document

    def _is_current(self, call: ModelCall) -> bool:
        return (call.phase, call.round, call.revision) == (self.phase, self.round, self.attempt)

    @property
    def described_image(self) -> Image | None:
        return self.folder.find(Image) if self.image else None

    def file_text(self, name: str) -> str:
        """A file of the turn as text; "" if it is not there."""
        path = self.folder.paths / name
        return read_text(path) if path.is_file() else ""

    def warn(self, message: str) -> None:
        """Note something that the user should see but that stops nothing."""
        if message not in self.warnings:
            self.warnings.append(message)

    @property
    def calls(self) -> Sequence[ModelCall]:
        return self._calls

    def superseded(self) -> list[ContextDocument]:
        return self.folder.superseded()[: self.round + self.attempt]

    def steps(self) -> list[Step]:
        return self.folder.load_steps()

    # The journal, as the recipe executor needs it.

    def seed(self, recipe: str, attempt: int) -> int:
        """Seed of one attempt, 31 bits, the same whenever the turn is run again."""
        base = self._seed if self._seed is not None else f"{self.user_id}/{self.turn}"
        key = f"{base}/{recipe}/{self.round}/{self.attempt}/{attempt}"
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") >> 1

    @contextmanager
    def as_one_execution(self) -> Iterator[None]:
        """Count all that a tool asks while it runs as one execution, the call of the tool."""
        self._joined = 0
        try:
            yield
        finally:
            self._joined = None

    def count_execution(self, recipe: str) -> None:
        """Count one recipe execution; raises HaltError past the most a turn may have."""
        if self._joined is not None:
            self._joined += 1
            if self._joined > 1:
                return
        self._executions += 1
        if self._executions > MOST_EXECUTIONS:
            raise HaltError(
                f"the turn needs more than {MOST_EXECUTIONS} recipe executions",
                where=recipe,
                fix="see calls.jsonl for what repeats; change the prompt that asks for more",
            )

    def add_call(self, call: ModelCall) -> None:
        """Append one line to calls.jsonl, unless a killed run of this phase has written it already."""
        passed = {"execution": self._executions, "round": self.round, "revision": self.attempt}
        call = structs.replace(call, n=len(self._calls) + 1, **passed)
        identity = _identity(call)
        if self._made[identity]:
            self._made[identity] -= 1
            return
        self.folder.append_call(call)
        self._calls.append(call)

    def knows_prefix(self, digest: str) -> bool:
        """Return whether a prefix was written down before; from now on it counts as written."""
        is_known = digest in self._prefixes
        self._prefixes.add(digest)
        return is_known


def _recap(directory: Path) -> str | None:
    """Return the summary of a turn for the index, or else its query; None if the turn is not saved."""
    metadata = load(Metadata, directory / Metadata.FILE)
    if metadata.status not in SAVED_STATUSES:
        return None
    index = find(IndexSummary, directory)
    return (index and index.summary) or metadata.query


def _identity(call: ModelCall) -> str:
    values = encode(call)
    for name in ("n", "usage", "seconds"):
        del values[name]
    for part in (values.get("prefix"), *values.get("messages", ())):
        if part and "sha256" in part:
            part["content"] = None
    for option in values.get("options", ()):
        option["known"] = None
    return json.dumps(values, sort_keys=True)


def _prefixes(call: ModelCall) -> list[str]:
    if isinstance(call, ChoiceCall):
        return [call.prefix.sha256]
    if not isinstance(call, GeneratedCall):
        return []
    return [message.sha256 for message in call.messages if message.sha256 is not None]
