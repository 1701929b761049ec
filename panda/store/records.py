"""What each JSON file of the store holds, as one Struct: written by who makes it, checked by being read."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from panda.documents.markdown import Form
from panda.documents.record_codec import Id, Name, Place, Record, Time, Whole, check_instant, decode, encode
from panda.documents.times import parse_time
from panda.errors import FileFormatError, NotApprovedError
from panda.messages.questions import plain_recap
from panda.messages.reading import Reading
from panda.store import layout
from panda.store.carry import Carry, Curation, FlowPhase, SavedEnding, StepRecord, StepType, SummaryKind
from panda.store.fact_records import Assertion, Conflict, Filled, SaidKind, Scalar, Value
from panda.store.files import parse_json, read_bytes, to_text, write_json
from panda.store.outcome import TurnOutcome
from panda.store.seals import part_of

_R = TypeVar("_R")
_F = TypeVar("_F", bound="FileRecord")


@cache
def _instants(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a record that hold an instant, also as text."""
    types = get_type_hints(cls, include_extras=True)
    held = {name: (types[name], *get_args(types[name])) for name in cls.__struct_fields__}
    return tuple(name for name in held if any(kind in held[name] for kind in (datetime, Instant, Time)))


class FileRecord(Whole, frozen=True):
    """What one file holds; keys that it does not name are refused unless it says otherwise."""

    FILE: ClassVar[str]
    """Its path in its directory."""

    def __post_init__(self) -> None:
        for name in _instants(type(self)):
            instant = getattr(self, name)
            if isinstance(instant, str):
                try:
                    instant = parse_time(instant)
                except ValueError as exc:
                    raise ValueError(f"{name} is {instant!r}: {exc}") from exc
            check_instant(name, instant, is_counted_from=True)

    @property
    def file_name(self) -> str:
        """Its own path in its directory, where several have one type."""
        return self.FILE

    def to_json(self) -> dict[str, Any]:
        """The value that is written."""
        value: dict[str, Any] = encode(self)
        return value

    @classmethod
    def upgrade(cls, value: Any) -> Any:
        """
        Return the value that an earlier version wrote in today's form; called only for what does not read as
        today's.
        """
        return value


@cache
def _decoder(cls: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cls)


def parse(cls: type[_R], data: bytes | str, *, where: str, line: int = 1) -> _R:
    """
    The record that a file, or one of its lines, holds. Raises FileFormatError: it is not UTF-8, not JSON, or
    a key is unknown, missing or of another type.
    """
    try:
        record: _R = _decoder(cls).decode(data)  # type: ignore[arg-type]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # half a character, an older form, or a fault
        text = data if isinstance(data, str) else to_text(data, where)
        value = parse_json(text, where=where, line=line)
        if isinstance(cls, type) and issubclass(cls, FileRecord):
            value = cls.upgrade(value)
        try:
            return decode(cls, value, where=where)
        except FileFormatError as exc:
            from panda.documents.yaml_text import line_of  # it loads yaml, and help must not

            exc.line = line + (line_of(text, exc.key or "") or 1) - 1
            raise
    return record


def save(record: FileRecord, path: Path) -> None:
    """Replaces the file that holds a record. Raises FileFormatError: it would not be read."""
    value = record.to_json()
    decode(type(record), record.upgrade(value), where=str(path))
    write_json(path, value)


def load(cls: type[_F], path: Path) -> _F:
    """The record that a file holds. Raises FileFormatError as parse does; StoreError: it cannot be read."""
    return parse(cls, read_bytes(path), where=str(path))


def find(cls: type[_F], directory: Path) -> _F | None:
    """The record of a directory; None if it has no such file (raises as load)."""
    path = directory / cls.FILE
    return load(cls, path) if path.is_file() else None


Number = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
PhaseNumber = Annotated[int, Meta(ge=0, le=7)]
Text = Annotated[str, Meta(min_length=1)]
Texts = tuple[str, ...]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
ImageName = Annotated[str, Meta(pattern=r"^images/[0-9a-f]{16}\.(png|jpg)\Z")]
_DOCUMENT_NAME = r"^[^\s./\\-][^\s/\\]{0,99}\Z"
DocumentName = Annotated[str, Meta(pattern=_DOCUMENT_NAME, description="a name without blanks and slashes")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_MemoryFile = Annotated[str, Meta(extra_json_schema={"enum": ["preferences.md", "facts.md"]})]
Ranges = tuple[tuple[Number, Number], ...]  # whole numbers as ranges, first and last of each, ascending
Instant = Annotated[datetime, Meta(tz=True)]
_KEPT_FOR = timedelta(days=30)  # a proposal


Status = Literal[
    "running", "approved", "clarify", "failed", "halted", "imported", "gathered", "interrupted", "forgotten"
]
STATUSES: tuple[str, ...] = get_args(Status)
METADATA_SCHEMA: Final = "panda.metadata/1"
ASKED_BACK = 21
"""Exit code of a turn that asks back."""
_RARE = ("outcome", "forgotten_at", "run", "item", "client", "document_count", "models")


class Next(Record, frozen=True):
    """Where a turn goes on."""

    phase: PhaseNumber  # phase to run next, 0 to 7
    round: Count  # how often phase 3 was begun anew by the validator
    attempt: Count  # how often phase 5 was begun anew by the validator


class Metadata(FileRecord, frozen=True, kw_only=True):
    """metadata.json: what the turn is and how far it came."""

    FILE = layout.METADATA_JSON

    schema: Literal["panda.metadata/1"] = METADATA_SCHEMA  # name and version of the format
    turn: Number  # turn number, as in the directory name
    user_id: Id  # whose turn it is
    session_id: Id  # session of the turn
    mode: str  # chat or code
    query: str  # the raw query
    status: Status  # how the turn stands or ended
    route: tuple[PhaseNumber, ...]  # phases passed, in order; one passed twice stands twice
    next: Next | None  # where the turn goes on; None when it has ended
    created_at: Instant  # when it was claimed; of an imported turn, when it was said
    updated_at: Instant  # when this file was written
    saved_at: Instant | None  # when the save of phase 7 was done
    answered: bool | None  # whether anything was found to answer with; None while unknown
    outcome: TurnOutcome | None = None
    """What phase 5 came to; None before, of turns that did not come so far, and of older ones."""
    seed: int | None  # seed given with --seed; None derives it
    ending: Literal["approved", "clarify", "failed"] | None = None
    """How the turn will end once it is saved; None while that is open."""
    question: str | None = None  # question to the user, for status clarify
    reason: str | None = None  # why the last judgement sent the turn back or ended it
    intervention: Name | None = None  # id of the intervention that halted the turn
    dry_run: bool = False  # whether tools only told what they would change in the project
    image: ImageName | None = None
    """Where the image that the user gave is kept, as a path in the turn's directory."""
    seal: Mapping[str, Digest] | None = None
    """Digest of every file when the turn was saved, by its path; None before, and of imported turns."""
    forgotten_at: Instant | None = None
    """When something that was told in it was last forgotten; None if all is there."""
    run: Name | None = None  # id of the batch that made it
    item: str | None = None  # id of the line of that batch
    client: Literal["mcp"] | None = None  # through what it was asked; None at the command line
    document_count: Count | None = None  # how many documents were handed over; None for none
    models: Mapping[str, str] | None = None
    """By layer the models that it was asked with in place of those of models.yaml; None for none."""

    @property
    def exit_code(self) -> int:
        """Return the exit code of `panda turn` for a turn that has come to its end."""
        return {"clarify": ASKED_BACK, "failed": NotApprovedError.exit_code}.get(self.status, 0)

    def to_json(self) -> dict[str, Any]:
        """The value of metadata.json; what most turns lack stands there only if it is there."""
        value = super().to_json()
        return {key: value[key] for key in value if key not in _RARE or value[key] is not None}


class Totals(Record, frozen=True, kw_only=True):
    calls: Count
    prompt_tokens: int | None
    reused_tokens: int | None
    output_tokens: int | None
    seconds: float | None


class PhaseMetrics(Record, frozen=True, kw_only=True):
    phase: PhaseNumber
    layer: str | None
    recipes: Texts
    calls: Count
    prompt_tokens: int | None
    reused_tokens: int | None
    output_tokens: int | None
    seconds: float | None


class Coverage(Record, frozen=True):
    turn: Count
    memory: Count
    fact: Count
    knowledge: Count
    research: Count
    visit: Count
    document: Count = 0  # documents that were handed over


class ContextMetrics(Record, frozen=True):
    context_quality: Share
    coverage: Coverage
    constraints: Count
    constraints_missing: bool


class Metrics(FileRecord, frozen=True):
    """metrics.json: calls, tokens and time by phase, and how good the context is."""

    FILE = layout.METRICS_JSON

    phases: tuple[PhaseMetrics, ...]
    totals: Totals
    context: ContextMetrics | UnsetType = UNSET


class MemoryMark(Record, frozen=True):
    """Up to where memory.jsonl and conflicts.jsonl went."""

    assertions: Count  # lines of memory.jsonl
    last: str | None  # id of the last of them; None if there was none
    asserted_at: str | None  # the latest instant at which one was asserted
    conflicts: Count  # lines of conflicts.jsonl


class Snapshot(FileRecord, frozen=True, kw_only=True):
    """What was there when a turn began."""

    FILE = layout.SNAPSHOT_JSON

    schema: Literal["panda.snapshot/1"] = "panda.snapshot/1"
    """Name and version of the format."""
    turns: Ranges  # numbers of the saved turns
    memory: MemoryMark | None  # how far the user's memory went; None if it could not be read
    files: Mapping[_MemoryFile, Digest | None]
    """Digest of each memory file by name; None for one that was not there."""
    notes: Count  # number of notes below knowledge/
    knowledge: Mapping[Annotated[str, Meta(pattern="^[0-6][0-9]$")], Digest]
    """Digests of the notes' names and content, those of one part together; see part_of."""
    forgotten_at: str | UnsetType = UNSET  # when files lost their digests, as something was forgotten

    def holds(self, number: int) -> bool:
        """Return whether a turn was saved."""
        return any(first <= number <= last for first, last in self.turns)

    def changed_since(self, now: "Snapshot", notes: Iterable[str]) -> list[str]:
        """
        The files that differ from what they were.

        Args:
            now: What is there now.
            notes: Names of the notes that there are now, as node ids have them.

        Returns:
            Names of memory files, then of the notes of each part that changed: one of them is new, gone or
            another; "knowledge/…" stands for a part that has none left.
        """
        changed_files = [name for name in self.files if self.files[name] != now.files.get(name)]
        by_part: dict[str, list[str]] = {}
        for name in sorted(notes):
            by_part.setdefault(part_of(name), []).append(f"knowledge/{name}")
        parts = sorted({*self.knowledge, *now.knowledge})
        changed = [part for part in parts if self.knowledge.get(part) != now.knowledge.get(part)]
        return list(
            dict.fromkeys([*changed_files, *(n for p in changed for n in by_part.get(p, ["knowledge/…"]))])
        )


class MessageRecord(Record, frozen=True, forbid_unknown_fields=False):
    """A message of a call: its text, or the digest of one that stands in an earlier line."""

    role: str
    sha256: str | None = None
    content: str | None = None
    pictures: Texts = ()

    def __post_init__(self) -> None:
        if self.sha256 is None is self.content:
            raise ValueError("neither content nor sha256 is there")


class OptionRecord(Record, frozen=True, forbid_unknown_fields=False):
    context: str
    continuation: str
    logprob: float
    tokens: int
    known: bool = False


class UsageRecord(Record, frozen=True):
    prompt: int | None
    reused: int | None
    output: int | None


class Prefix(Record, frozen=True, forbid_unknown_fields=False):
    sha256: str
    content: str = ""
    role: str = ""


class _CallRecord(Whole, frozen=True, kw_only=True, forbid_unknown_fields=False, tag_field="kind"):
    n: Number
    execution: Count = 0
    round: Count = 0
    revision: Count = 0
    phase: PhaseNumber
    recipe: str
    attempt: Count
    layer: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    hashes: dict[str, str | None]
    usage: UsageRecord
    seconds: Annotated[float, Meta(ge=0)]

    def __post_init__(self) -> None:
        if "model" not in self.hashes:
            raise ValueError("hashes.model is missing")


class ChoiceCall(_CallRecord, frozen=True, kw_only=True, forbid_unknown_fields=False, tag="choose"):
    """A line of calls.jsonl: a model was asked how likely options are."""

    property: str
    prefix: Prefix
    options: tuple[OptionRecord, ...]


class TokenProbability(Record, frozen=True):
    """A token of a reply, by its place in the output, and the logarithm of its probability there."""

    start: Count
    end: Count
    logprob: Annotated[float, Meta(le=0)]


class GeneratedCall(_CallRecord, frozen=True, kw_only=True, forbid_unknown_fields=False, tag="generate"):
    """A line of calls.jsonl: a model was asked for a text."""

    messages: tuple[MessageRecord, ...]
    parameters: dict[str, Any]
    output: str
    finish_reason: Literal["stop", "length"]
    lenient: Texts | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    repairs: Texts | UnsetType = UNSET
    logprobs: tuple[TokenProbability, ...] | UnsetType = UNSET


class OfflineCall(_CallRecord, frozen=True, kw_only=True, forbid_unknown_fields=False, tag="offline"):
    """A line of calls.jsonl: the program replied itself, without a language model."""

    behaviour: Count  # raised whenever what the step decides changes
    reply: dict[str, Any]


class ForgottenCall(Record, frozen=True, tag_field="kind", tag="forgotten"):
    """A line of calls.jsonl that held what was forgotten: what it cost is left."""

    n: Number
    recipe: str
    usage: UsageRecord
    seconds: Annotated[float, Meta(ge=0)]
    forgotten_at: Time


ModelCall = ChoiceCall | GeneratedCall | OfflineCall
Call = ModelCall | ForgottenCall


_MOST = 10**15
_Whole = Annotated[int, Meta(ge=0, le=_MOST)]
_Saved = Annotated[int, Meta(ge=-_MOST, le=_MOST)] | UnsetType | None
_Amount = _Whole | Annotated[float, Meta(ge=0, le=_MOST)] | UnsetType | None  # a whole number stays one
_Told = str | UnsetType | None


class TokenCounts(Record, frozen=True, omit_defaults=False, forbid_unknown_fields=False):
    """What a model read and wrote (S3 §27); None is not known."""

    prompt: Count | None = None  # what never changes; in lines of before all that was read
    input: Count | None = None  # what the turn gave: documents, options, query
    reused: Count | None = None
    output: Count | None = None
    total: _Whole | None = None


class Execution(Whole, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """
    A line of executions.jsonl (S3 §27): a recipe that ran; or, with `event`, a document that was brought to
    size (compressed), or could not be (overflow). A line has the keys of its kind.
    """

    timestamp: Time
    event: str | UnsetType = UNSET
    trigger: _Told = UNSET  # which budget a document was over
    document: _Told = UNSET
    content_type: _Told = UNSET
    recipe: _Told = UNSET
    key: _Told = UNSET  # the recipe's file
    version: _Told = UNSET
    phase: PhaseNumber | UnsetType | None = UNSET
    model_layer: _Told = UNSET
    method: _Told = UNSET
    model: _Told = UNSET
    model_digest: _Told = UNSET
    user_id: Id | UnsetType | None = UNSET
    session_id: Id | UnsetType | None = UNSET
    turn_id: _Told = UNSET
    tokens: TokenCounts | UnsetType | None = UNSET
    original_tokens: _Whole | UnsetType | None = UNSET
    compressed_tokens: _Whole | UnsetType | None = UNSET
    tokens_saved: _Saved = UNSET
    compression_ratio: _Amount = UNSET
    latency_ms: _Amount = UNSET
    outcome: _Told = UNSET
    success: bool | UnsetType | None = UNSET
    schema_valid: bool | UnsetType | None = UNSET
    confidence: Share | UnsetType | None = UNSET
    gate: _Told = UNSET
    retries: _Whole | UnsetType | None = UNSET
    compression_applied: bool | UnsetType | None = UNSET
    compression_savings: _Saved = UNSET
    message: _Told = UNSET

    @property
    def ran(self) -> bool:
        """Return whether the line is of a recipe."""
        return self.event is UNSET and self.success is not UNSET

    @property
    def is_away(self) -> bool:
        """Return whether no model server answered."""
        return self.outcome == "away"

    @property
    def has_failed(self) -> bool:
        return self.success is not True and not self.is_away

    @property
    def name(self) -> str:
        """The recipe by its file, or else by its name."""
        return self.key or self.recipe or ""

    @property
    def decider(self) -> str:
        """The model that was asked; else how it was decided."""
        return (self.event is UNSET and self.model) or self.method or "unknown"

    @property
    def total_tokens(self) -> int | None:
        return self.tokens.total if self.tokens else None

    @property
    def reused_tokens(self) -> int | None:
        return self.tokens.reused if self.tokens else None


class Image(FileRecord, frozen=True):
    """image.json: the image given with a query, and what EYES says of it."""

    FILE = layout.IMAGE_JSON

    file: ImageName
    sha256: Sha256
    media_type: Literal["image/png", "image/jpeg"]
    bytes: Number
    width: Number
    height: Number
    description: str
    recipe: str
    layer: str
    model: str
    model_digest: Sha256


class TurnDocument(Record, frozen=True, kw_only=True):
    """A document that was handed over with a query."""

    name: DocumentName  # what it is called in its turn, as "contract.pdf"; part of its node's id
    source: str  # where it comes from: "standard input", a path as it was typed, or a URL
    content_type: str  # as "text/markdown"
    bytes: Count  # size as it was handed over
    sha256: Sha256 | None  # digest of what was handed over; None once something of it was forgotten
    text_sha256: Sha256 | None  # digest of the text that was read of it, which the turn keeps; the same
    tokens: Count  # budget tokens of that text
    added_at: Instant  # when it was handed over

    @property
    def file(self) -> str:
        """Return the file of its text, as a path in the turn's directory."""
        return f"{layout.DOCUMENTS}/{self.name.removesuffix('.txt')}.txt"


class TurnDocuments(FileRecord, frozen=True, kw_only=True):
    """documents.json: what was handed over with a query, by standard input or --with."""

    FILE = layout.DOCUMENTS_JSON

    schema: Literal["panda.documents/1"] = "panda.documents/1"  # name and version of the format
    documents: Annotated[tuple[TurnDocument, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        files = [document.file for document in self.documents]
        if len(set(files)) < len(files):
            raise ValueError("two documents have one name")


class ReflectionRecord(FileRecord, frozen=True):
    """reflection.json: whether the turn goes on or asks back."""

    FILE = layout.REFLECTION_JSON

    decision: Literal["PROCEED", "CLARIFY"]
    confidence: Share | None
    reasoning: str | None
    question: str | None
    entity_curation: Curation | UnsetType = UNSET


class TurnRelevance(Record, frozen=True):
    relevance: Literal["high", "medium", "low"]
    reason: str | None


class ResearchCacheMatch(Record, frozen=True):
    matched: bool
    topic: str | None
    freshness: str | None
    quality: Share | None
    reuse_recommendation: str | None


class JudgedCandidate(Record, frozen=True, kw_only=True):
    """A candidate with what was found about it."""

    node_id: str
    score: float | None  # how relevant its best line is; None if that was not scored
    index: float | UnsetType = UNSET  # its score in the index
    chosen: bool  # whether it is relevant
    by: Literal["model", "closeness", "index", "always_include"]
    """What decided: a language model, how close it is to the query, a rule, or its place in the index, which
    left it no room in the prompt. Plans before 2026-11-28 say model for closeness too."""


class RetrievalPlan(FileRecord, frozen=True):
    """retrieval_plan.json: all candidates with scores, and which were chosen."""

    FILE = layout.RETRIEVAL_PLAN_JSON

    relevant_turns: tuple[Count, ...]
    turn_relevance: dict[Annotated[str, Meta(pattern="^\\d+$")], TurnRelevance]
    relevant_memory_keys: Texts
    relevant_knowledge: Texts
    research_cache_match: ResearchCacheMatch
    webpage_cache_needed: Texts
    candidates: tuple[JudgedCandidate, ...]
    reasoning: str | None
    relevant_documents: Texts | UnsetType = UNSET  # documents of turns; only where there are some


class Computed(Record, frozen=True):
    """A figure that no line has, with what gives it."""

    value: str  # as the text states it, "$52.99"
    expression: str  # over numbers of the lines, "$749.99 − $697"
    lines: Texts = ()  # ids of the lines that hold its operands


class Line(Record, frozen=True):
    """One line of a node, or a claim of a tool, from where it is read to where it is quoted."""

    text: str  # one line, quotable as it stands
    content_type: str = "general_fact"  # how it ages: a key of confidence.DECAYS
    confidence: float = 1.0  # when it was read, after decay; below .30 it is expired
    at: datetime | None = None  # when it was said or seen; None if unknown
    list_id: str | None = None  # the list or table of its node that it belongs to; None if it belongs to none
    heads: str | None = None  # the list or table that it introduces; None if it introduces none
    heading: str = ""
    """What it stands under within its node: the headings, and the line that introduces its list."""
    form: Form = "sentence"  # what it is in its document
    number: int | None = None  # its number in a numbered list
    line: int | None = None
    """Line where it begins, of a note's file or else of the text of its node, from 1; None without lines."""
    block: int | None = None
    """Line where the lines begin that stand together with it, with no blank line or heading in between."""
    depth: int = 0  # how many columns a list item is indented
    carried: str = ""  # what its text has in front, "Ingredients: ", and its document has not there
    origin: str | None = None
    """The node that says it, where this line only repeats that: then this line is no evidence."""
    node: str = ""  # its node, or its step as "step:2"
    place: int = 0
    """Its place among the lines of its node, from 1; else it is no line of one, and only tells it apart."""
    above: str = ""  # what it stands below: of a note its folder, name and headings, of a page its title
    also: Texts = ()  # further nodes that say it
    rests_on: Texts = ()  # of what a model wrote the ids of the lines that it cites
    computed: tuple[Computed, ...] = ()  # its figures that no line has
    score: float | None = None  # how close it is to the query; None if that was not looked at
    why: Texts = ()  # what brought it into the evidence and the answer, in order
    left_out: str = ""  # what left it out; "" if nothing did

    @property
    def id(self) -> str:
        """Return its id, the same as long as the text of its node stays, as "turn:811 3"."""
        return f"{self.node} {self.place}"

    @property
    def node_ids(self) -> Texts:
        return (self.node, *self.also) if self.node else self.also

    @property
    def item(self) -> "GatheredItem":
        """Return the item as §2 and §5 have it."""
        return GatheredItem(self.text, self.node_ids, self.computed)


class GatheredItem(Record, frozen=True):
    """One line of §2, or an item of an answer."""

    text: str  # the line; what it claims stands in its nodes
    node_ids: Texts  # nodes it comes from; empty for what the query itself says
    computed: tuple[Computed, ...] = ()  # its figures that no line has


class GatheredSection(Whole, frozen=True):
    """One titled part of §2."""

    title: str  # a canonical title
    source_type: str | Texts  # kind of its nodes; several only for Constraints
    items: tuple[GatheredItem, ...]
    confidence_avg: Share | None  # mean confidence of its nodes, newer ones counting more; None without nodes
    node_ids: Texts  # all nodes, each once; a line's [n] counts in this list from 1
    provenance: Texts  # where they are, in the order of node_ids; for the query "§0.raw_query"
    source: Literal["always_include"] | None = None  # set when a rule and not a choice put it here


class ContextVerdict(Record, frozen=True):
    """What phase 2.5 made of §2."""

    status: Literal["pass", "retry", "clarify"]  # retry: its lines stand, though the judge asked for more
    issues: Texts
    confidence: Share | None


class LeftOutLine(Record, frozen=True):
    """A drafted line that failed its checks twice and does not stand in §2."""

    text: str
    node_ids: Texts  # as the draft cited them; they need not exist
    reason: str


class DocumentRecord(Record, frozen=True):
    node_id: str
    provenance: str
    tokens: Count
    kept_tokens: Count
    cut: bool


class GatheredContext(FileRecord, frozen=True, kw_only=True):
    """gathered_context.json: §2 as data, with gaps and verdict."""

    FILE = layout.GATHERED_CONTEXT_JSON

    sections: tuple[GatheredSection, ...]
    gathered_at: Time
    context_quality: Share
    gaps: Texts
    stale: Texts
    documents: tuple[DocumentRecord, ...] | UnsetType = UNSET
    metrics: ContextMetrics | UnsetType = UNSET
    left_out: tuple[LeftOutLine, ...] | UnsetType = UNSET  # what was drafted and is not supported
    verdict: ContextVerdict

    def __post_init__(self) -> None:
        """Versions before 2026-11-28 wrote pass for retry as well, with what is missing as an issue."""
        super().__post_init__()
        if self.verdict.status == "pass" and self.verdict.issues:
            verdict = msgspec.structs.replace(self.verdict, issues=())  # nothing was gathered
            if any(section.node_ids for section in self.sections):
                verdict = msgspec.structs.replace(self.verdict, status="retry")
            msgspec.structs.force_setattr(self, "verdict", verdict)


class NearPassage(Record, frozen=True):
    """A passage that phase 2 ranked."""

    lines: Texts  # ids of its lines
    best: str  # id of the one that is closest
    closeness: float
    words: Share  # of the query's words that it holds, weighted by rarity


class ClosestPassage(Whole, frozen=True):
    """A passage that is shown where nothing surely answers."""

    node_id: str
    provenance: str  # file that it comes from, as the sources of an answer name it
    text: str  # a line each
    best: str  # the line that is closest to the query
    above: str = ""  # what it stands below: title and headings
    line: int | None = None  # line of its file where it begins; None if unknown


class Evidence(FileRecord, frozen=True):
    """evidence.json: every line that was looked at for the answer, with what brought it in or left it out."""

    FILE = layout.EVIDENCE_JSON

    gathered: tuple[Line, ...]  # what phase 2 read, in the order of §2, then what it left out
    offered: tuple[Line, ...] = ()  # what phase 5 looked at: the answer's lines in its order, then the others
    passages: tuple[NearPassage, ...] = ()  # what phase 2 found closest to the query, closest first
    closest: tuple[ClosestPassage, ...] = ()
    """What is shown where nothing surely answers, closest first: no part of the answer, and not judged."""


class Goal(Record, frozen=True):
    id: str
    goal: str
    priority: Number
    depends_on: Texts
    success_criteria: str | None


class GoalProgress(Record, frozen=True):
    id: str
    status: Literal["open", "done", "blocked"]
    steps: tuple[Number, ...]
    reason: str | None


class Progress(Record, frozen=True):
    ending: Literal["done", "blocked", "limited"]
    reason: str | None
    rounds: Count
    calls: Count
    goals: tuple[GoalProgress, ...]


class Plan(FileRecord, frozen=True):
    """plan.json: goals, tools and constraints, and how far each goal came."""

    FILE = layout.PLAN_JSON

    next_step: Literal["coordinator", "synthesis", "clarify"]
    goal: str | None
    goals: Annotated[tuple[Goal, ...], Meta(min_length=1)]
    approach: str | None
    success_criteria: Texts
    constraints: Texts
    tasks: Texts
    tools: Texts
    question: str | None
    question_kind: Literal["question", "proposal", None]
    confidence: Share | None
    reason: str | None
    failed: Texts
    round: Count
    progress: Progress | None
    reasoning: str | None = None  # why so, with the gaps and what is stale of §2


class SessionTexts(Whole, frozen=True, kw_only=True):
    """What phase 7 wrote for the session; None where nothing was asked for."""

    assistant_summary: str | None = None  # the reply in short
    assistant_summary_kind: SummaryKind | None = None  # how it came about
    history: str | None = None
    """The history with what fell out of the recent turns; None with a turn to merge means that it failed."""
    history_kind: SummaryKind | None = None  # how it came about
    engagement: str | None = None  # what the session is about
    engagement_kind: SummaryKind | None = None  # how it came about


class Summary(FileRecord, frozen=True, kw_only=True):
    """summary.json: what a turn did, as its session keeps it."""

    FILE = layout.SUMMARY_JSON

    turn: Number
    outcome: SavedEnding
    decision: str | None = None
    goal: str | None = None
    steps: tuple[StepRecord, ...] | UnsetType = UNSET  # lacks in the older form: its session makes it anew
    steps_completed: Count
    steps_total: Count = 0
    entities_created: Texts = ()
    entities_updated: Texts = ()
    entities_deleted: Texts = ()
    artifacts_generated: Texts = ()
    artifacts_saved: Texts = ()
    entity_curation: str | None = None
    analysis_conclusions: Texts = ()
    errors: Texts
    blocked_reason: str | None = None
    flow: FlowPhase | None = None
    turn_summary: str | None
    summary_kind: SummaryKind | None
    session: SessionTexts | UnsetType = UNSET
    answered: bool
    sources: Texts
    question: str | None = None
    pending: str | None = None


class IndexSummary(FileRecord, frozen=True):
    """index_summary.json: what the index shows of a turn."""

    FILE = layout.INDEX_SUMMARY_JSON

    summary: str | None
    topics: Texts
    intent: str | None
    has_research: bool
    research_topic: str | None


class Staged(Record, frozen=True):
    """A value that a turn wants remembered; nothing is written before the turn is approved."""

    kind: SaidKind  # which file shows it
    entity: str  # normalised, as "user:ann"
    relation: str  # key, as "budget"
    value: Value
    content_type: str  # how it ages
    source_turn: Count  # turn in which it was said
    text: str  # the user's own words
    action: Literal["sets", "adds", "removes", "retracts"] = "sets"  # what it does to what was said before
    told: bool = False  # whether code noted it, so that it counts however the turn ends


class Noted(Record, frozen=True):
    """One thing that was told, as the user is answered."""

    text: str  # the sentence, word for word
    node_id: str  # where it is kept
    key: str | None  # what of; None if that is not sure
    value: Scalar | tuple[Scalar, ...]  # of the key, all of a list; None without a key, or if nothing is left
    replaces: str | None  # what was said before and no longer holds; None if nothing does


class StagedMemory(FileRecord, frozen=True, kw_only=True):
    """staged_memory.json: what the turn noted, and what tools staged."""

    FILE = layout.STAGED_MEMORY_JSON

    staged: tuple[Staged, ...]
    noted: tuple[Noted, ...] | UnsetType = UNSET
    applied: bool

    def due(self, ending: str | None) -> list[Staged]:
        """Return the values to be remembered of a turn: all of an approved one, of others what was told."""
        return [staged for staged in self.staged if staged.told or ending == "approved"]


class ToolClaim(Whole, frozen=True):
    """One statement that a tool found."""

    text: str  # one line, quotable as it stands
    confidence: Share | None  # as of then; None if unknown
    source: Text  # file it comes from, relative to the user's directory or the project's
    node_id: str | None = None  # node that holds it; None if the step itself is the only record
    expires_at: str | None = None  # instant, None if never said


class StepEntity(Whole, frozen=True):
    """One thing that a tool read, made or changed."""

    ref: str  # node id, or another name that means the same thing in every turn, as "file:src/app.py"
    type: str  # what it is, as "visit", "preference" or "file"
    label: str  # its name for people
    op: Literal["read", "create", "update", "delete"] = "read"  # what the tool did to it


class Reused(Record, frozen=True):
    turn: Number
    step: Number


class Step(FileRecord, frozen=True):
    """steps/step_NN.json: one tool call and what came of it."""

    FILE = "steps/step_{:02d}.json"

    @property
    def file_name(self) -> str:
        return layout.step_name(self.step)

    step: Number
    plan: Count
    round: Number
    goal: str | None
    tool: str
    kind: StepType | None
    arguments: dict[str, Any]
    note: str | None
    conclusion: str | None
    status: Literal["started", "success", "error", "blocked"]
    data: Any = None
    error: str | None = None
    claims: tuple[ToolClaim, ...] = ()
    entities: tuple[StepEntity, ...] = ()
    artifacts: tuple[Place, ...] = ()
    text: str = ""
    seconds: float | None = None
    reused: Reused | UnsetType = UNSET


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(part) for key, part in value.items() if part is not None}
    return [_without_null(part) for part in value] if isinstance(value, list) else value


class ResearchClaim(Record, frozen=True, forbid_unknown_fields=False):
    """One claim of a research with where it comes from."""

    claim: str  # one line
    source: str = ""  # site
    confidence: Share | None = None  # as of then, two decimals
    content_type: str | None = None  # how it ages
    visit_id: str = ""  # visit that holds it
    url: str = ""  # page
    subject: str = ""  # title of the page: what it is about
    provenance: str = ""  # its file, relative to the user's directory


class ResearchConflict(Record, frozen=True, forbid_unknown_fields=False):
    """Claims that cannot all hold: shown side by side, never settled."""

    about: str  # what they are about
    text: str  # one line that says what each source says
    claims: Annotated[tuple[ResearchClaim, ...], Meta(min_length=2)]  # in the order they were found


class RatedSource(Record, frozen=True, forbid_unknown_fields=False):
    """A search result as it was rated."""

    url: str
    title: str  # as the provider gives it
    quality: Share  # computed before it was read
    chosen: bool  # whether it was to be read


class Research(FileRecord, frozen=True, forbid_unknown_fields=False):
    """research.json: what a research found."""

    FILE = layout.RESEARCH_JSON

    topic: Text  # as "commerce.laptop"
    cache_key: str | None = None  # the words of its subject
    created_at: Instant | None = None  # when it ran
    expires_at: Instant | None = None  # until when it holds
    quality_score: Share | None = None
    """Mean confidence of the claims, less if a single source or a contradiction stands behind them."""
    summary: str = ""  # in a sentence or two
    claims: tuple[ResearchClaim, ...] = ()  # what the pages say
    conflicts: tuple[ResearchConflict, ...] = ()
    webpage_cache: Texts = ()  # visits of the pages that count
    query: str = ""  # what was looked for
    kind: str = ""  # prices, comparison, facts, howto or news
    phrases: Texts = ()  # what the provider was asked
    provider: str = ""  # who was asked
    sources: tuple[RatedSource, ...] = ()  # all results, best first
    failed: Texts = ()  # pages that could not be read, with the reason
    refreshes: Texts = ()  # earlier visits of the pages that were read
    away: Texts = ()  # earlier visits of the pages that could not be read

    @classmethod
    def upgrade(cls, value: Any) -> Any:
        """Files of other programs say null for what is not known."""
        return _without_null(value)


class Manifest(FileRecord, frozen=True, kw_only=True):
    """manifest.json of a visit: which page, when, how well it was read."""

    FILE = layout.MANIFEST_JSON

    visit_id: Text
    url: Text
    final_url: str | None = None
    page_type: str | None = None
    extraction_quality: Share | None = None
    refreshes: str | None = None
    title: str | None = None
    visited_at: Instant
    etag: str | None = None
    last_modified: str | None = None
    unchanged: bool | None = None


class TableRecord(Record, frozen=True, forbid_unknown_fields=False):
    columns: Texts
    rows: tuple[Texts, ...]
    caption: str = ""
    left_out: Count = 0


class Zone(Record, frozen=True, forbid_unknown_fields=False):
    type: Literal["pricing", "product_info", "reviews", "navigation", "other"]
    confidence: Share
    items: Texts

    @property
    def is_quotable(self) -> bool:
        """Return whether its lines may be quoted: no menus, nothing that is likely about something else."""
        return self.type != "navigation" and self.confidence >= 0.5


class Extracted(FileRecord, frozen=True, omit_defaults=True):
    """extracted.json of a visit; what else a page said stays, in `more`."""

    FILE = layout.EXTRACTED_JSON

    title: str | None = None
    price: str | int | float | None = None
    availability: str | None = None
    specs: dict[str, Any] | None = None
    products: tuple[dict[str, Any], ...] | None = None
    offers: tuple[dict[str, Any], ...] | None = None
    tables: tuple[TableRecord, ...] | None = None
    zones: tuple[Zone, ...] | None = None
    more: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        value = super().to_json()
        value.update(value.pop("more", {}))
        return value

    @classmethod
    def upgrade(cls, value: Any) -> Any:
        """Files that panda did not write hold it one deeper; keys without a field go into `more`."""
        if not isinstance(value, dict):
            return value
        inner = value.get("extracted_data")
        value = inner if isinstance(inner, dict) else value
        more = {key: value[key] for key in value if key not in cls.__struct_fields__}
        return {**{key: value[key] for key in value if key not in more}, "more": more}


class Proposal(FileRecord, frozen=True):
    """A line of proposed_facts.jsonl: what the last turns teach about the user."""

    FILE = layout.PROPOSED_FACTS_JSONL

    relation: Filled
    value: Filled  # in the user's words
    text: str  # the sentence
    source_turn: Number  # turn in which it was said
    proposed_at: Instant  # when it was first proposed
    batches: Annotated[tuple[Annotated[tuple[Number, ...], Meta(min_length=1)], ...], Meta(min_length=1)]
    """The turns of every batch that agreed."""
    status: Literal["proposed", "kept", "dropped"] = "proposed"
    """kept: memory holds it; dropped: nobody agreed in time, or memory has its own word on it."""

    @property
    def expires_at(self) -> datetime:
        """When it is dropped unless it is kept before."""
        return self.proposed_at + _KEPT_FOR

    def is_like(self, other: "Proposal") -> bool:
        """Return whether both say the same, or come from the same sentence."""
        same = (self.relation, self.value.lower()) == (other.relation, other.value.lower())
        return same or (self.source_turn, self.text) == (other.source_turn, other.text)


class SessionTurn(Record, frozen=True, kw_only=True):
    """One turn of a session."""

    turn: int
    directory: Annotated[str, Meta(pattern=r"^turn_\d{6,}\Z")]  # name of its directory


class Session(FileRecord, frozen=True, kw_only=True):
    """session.json: the turns of a session and what the next one knows."""

    FILE = layout.SESSION_JSON

    schema: str = "panda.session/1"  # name and version of the format
    session_id: Id
    user_id: Id  # whose session
    created_at: str  # when its first turn was claimed
    last_active_at: str  # when its newest turn was claimed
    head_turn: int  # its newest turn
    turns: tuple[SessionTurn, ...]  # its turns, oldest first
    turns_cut: int = 0  # how many older turns are not listed
    carry: Carry  # what the next turn knows
    seal: str | UnsetType = UNSET  # digest of the rest


class ClosedSession(FileRecord, frozen=True, kw_only=True):
    """closed.json of a session: it takes no further turns."""

    FILE = layout.CLOSED_JSON

    schema: Literal["panda.closed/1"] = "panda.closed/1"
    session_id: Id
    closed_at: str
    head_turn: Number


class RecipeVersion(FileRecord, frozen=True, kw_only=True):
    """A version of a recipe in logs/recipes/."""

    FILE = "recipe_version.json"

    schema: Literal["panda.recipe_version/1"] = "panda.recipe_version/1"
    recipe: Place
    version: Sha256  # of file and prompts: the same for the same content, whatever the machine
    first_seen: str | None  # when it first ran in this store
    text: str
    prompts: dict[str, str]


class ImportLine(FileRecord, frozen=True):
    """A line that `panda import` reads."""

    FILE = "import.jsonl"

    user: Id
    session: Id
    at: str
    query: Filled
    response: str
    turn: Annotated[int, Meta(ge=1, le=999_999_999)] | UnsetType = UNSET
    summary: str | None = None
    topics: Texts | None = None


class Intervention(FileRecord, frozen=True, kw_only=True):
    """What halted, and what became of it."""

    FILE = "interventions/{}.json"

    schema: str = "panda.intervention/1"
    id: Name
    created_at: Time
    user_id: Id | None
    turn: int | None
    phase: PhaseNumber | None
    recipe: str | None
    recipe_version: str | None = None
    type: str
    severity: Literal["critical", "high", "medium", "low"]
    message: str
    where: str | None
    expected: str | None
    received: str | None
    raw_output: str | None
    what_to_do: str | None
    details: dict[str, Any]
    status: Literal["open", "resolved"] = "open"
    resolved_at: Time | None = None
    resolution: str | None = None

    @property
    def file_name(self) -> str:
        return self.FILE.format(self.id)

    @property
    def is_open(self) -> bool:
        return self.status == "open"

    @property
    def go_on(self) -> str | None:
        """The command that takes the turn up again; None if there is no turn."""
        return (
            f"panda turn --resume {self.turn} --user {self.user_id}" if self.turn and self.user_id else None
        )


class ReferenceResolution(Record, frozen=True):
    status: Literal["not_needed", "resolved", "failed"]
    original_references: tuple[str, ...]
    resolved_to: str | None


class DataRequirements(Record, frozen=True):
    needs_current_prices: bool
    needs_live_data: bool
    freshness: str | None


class ContentReference(Record, frozen=True):
    title: str | None
    node_id: str
    source_turn: int | None


class Constraint(Record, frozen=True):
    """A limit whose key and value are sure."""

    key: str
    value: str | int | float
    text: str


class Answered(Record, frozen=True):
    """What the query does to the question that was open; `open` if it is about something else."""

    id: str
    status: Literal["open", "answered"]
    answer: str | None
    agreed: bool


QueryType = Literal["informational", "transactional", "navigation", "commerce_search", "comparison"]
Intent = Literal["commerce", "query", "recall", "preference", "navigation", "greeting"]


class QueryAnalysis(FileRecord, frozen=True, kw_only=True, omit_defaults=True):
    """query_analysis.json: what the query was taken to mean."""

    FILE = layout.QUERY_ANALYSIS_JSON

    original_query: str
    resolved_query: str
    reference_resolution: ReferenceResolution
    query_type: QueryType
    intent: Intent
    entities: tuple[str, ...]
    user_purpose: str | None
    data_requirements: DataRequirements
    content_reference: ContentReference | None
    reasoning: str | None
    references: tuple[str, ...] = ()
    reference_nodes: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    pending: Answered | None = None
    kept_content: str | None = None
    reading: Reading

    @classmethod
    def upgrade(cls, value: Any) -> Any:
        """Of a query that was not read it is known alone whether it looks back."""
        if not isinstance(value, dict) or "reading" in value:
            return value
        return {**value, "reading": {"mood": "asks", "recap": plain_recap(str(value.get("original_query")))}}


BY_NAME: Mapping[str, Any] = {
    layout.CALLS_JSONL: Call,
    layout.EXECUTIONS_JSONL: Execution,
    layout.MEMORY_JSONL: Assertion,
    layout.CONFLICTS_JSONL: Conflict,
    **{record.FILE: record for record in FileRecord.__subclasses__() if "{" not in record.FILE},
}
BY_DIRECTORY: Mapping[str, Any] = {"steps": Step, "interventions": Intervention}
FORMATS = (*sorted(BY_NAME), "steps/step_01.json", "interventions/ID.json")
"""Names of the files that have a record."""


def format_of(path: str) -> Any:
    """
    The record that a file of the store holds, by its name or path; for a .jsonl file, each of its lines.

    >>> format_of("metadata.json").__name__, format_of("steps/step_01.json").__name__, format_of("notes.json")
    ('Metadata', 'Step', None)
    """
    pure = PurePath(path)
    if pure.suffix == ".json" and pure.parent.name in BY_DIRECTORY:
        return BY_DIRECTORY[pure.parent.name]
    return BY_NAME.get(pure.name)


def check_json(name: str, value: object, where: str) -> None:
    """Raises FileFormatError unless a value fits the record of its file; a file without one takes any."""
    record = format_of(name)
    if isinstance(record, type) and issubclass(record, FileRecord):
        value = record.upgrade(value)
    if record is not None:
        decode(record, value, where=where)
