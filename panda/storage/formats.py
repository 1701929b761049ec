"""What each JSON file of the store holds: one record for a file, or for each line of a .jsonl file."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Meta
from msgspec import UnsetType as Unset

from panda.documents.carry import Carry, FlowPhase, StepType, SummaryKind
from panda.documents.carry import Outcome as TurnOutcome
from panda.documents.json_text import surely_fits
from panda.documents.problems import Problem
from panda.documents.records import PATH_RULES, Id, Name, Place, Record, Time, encode, schema_of
from panda.documents.text import PATH_FIX, shorten
from panda.errors import FileFormatError, NotApprovedError
from panda.storage import layout
from panda.storage.seals import part_of

if TYPE_CHECKING:  # takes a while to import
    from jsonschema.exceptions import ValidationError


Number = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
PhaseNumber = Annotated[int, Meta(ge=0, le=7)]
Text = Annotated[str, Meta(min_length=1)]
Filled = Annotated[str, Meta(pattern=r"\S")]
Texts = tuple[str, ...]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
ImageName = Annotated[str, Meta(pattern=r"^images/[0-9a-f]{16}\.(png|jpg)\Z")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_MemoryFile = Annotated[str, Meta(extra_json_schema={"enum": ["preferences.md", "facts.md"]})]
Ranges = tuple[tuple[Number, Number], ...]  # whole numbers as ranges, first and last of each, ascending
Mood = Literal["asks", "tells", "orders"]
MemoryKind = Literal["preference", "fact", "statement"]
Scalar = str | float | bool | None


Status = Literal[
    "running", "approved", "clarify", "failed", "halted", "imported", "gathered", "interrupted", "forgotten"
]
METADATA_SCHEMA: Final = "panda.metadata/1"
ASKED_BACK = 21
"""Exit code of a turn that asks back."""
_RARE = ("forgotten_at", "run", "item")


@dataclass(frozen=True)
class Next:
    """Where a turn goes on."""

    phase: PhaseNumber  # phase to run next, 0 to 7
    round: Count  # how often phase 3 was begun anew by the validator
    attempt: Count  # how often phase 5 was begun anew by the validator


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """metadata.json: what the turn is and how far it came."""

    schema: Literal["panda.metadata/1"] = METADATA_SCHEMA  # name and version of the format
    turn: Number  # turn number, as in the directory name
    user_id: Id  # whose turn it is
    session_id: Id  # session of the turn
    mode: str  # chat or code
    query: str  # the raw query
    status: Status  # how the turn stands or ended
    route: tuple[PhaseNumber, ...]  # phases passed, in order; one passed twice stands twice
    next: Next | None  # where the turn goes on; None when it has ended
    created_at: datetime  # when it was claimed; of an imported turn, when it was said
    updated_at: datetime  # when this file was written
    saved_at: datetime | None  # when the save of phase 7 was done
    answered: bool | None  # whether anything was found to answer with; None while unknown
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
    forgotten_at: Annotated[datetime | None, Meta(extra_json_schema={"type": "string"})] = None
    """When something that was told in it was last forgotten; None if all is there."""
    run: Name | None = None  # id of the batch that made it
    item: str | None = None  # id of the line of that batch

    @property
    def exit_code(self) -> int:
        """How `panda turn` ends with a turn that has come to its end."""
        return {"clarify": ASKED_BACK, "failed": NotApprovedError.exit_code}.get(self.status, 0)

    def to_json(self) -> dict[str, Any]:
        """The value of metadata.json; what most turns lack stands there only if it is there."""
        value: dict[str, Any] = encode(self)
        return {key: value[key] for key in value if key not in _RARE or value[key] is not None}


class Totals(Record, frozen=True):
    calls: Count
    prompt_tokens: int | None
    reused_tokens: int | None
    output_tokens: int | None
    seconds: float | None


class PhaseMetrics(Totals, frozen=True):
    phase: PhaseNumber
    layer: str | None
    recipes: Texts


class Coverage(Record, frozen=True):
    turn: Count
    memory: Count
    fact: Count
    knowledge: Count
    research: Count
    visit: Count


class ContextMetrics(Record, frozen=True):
    context_quality: Share
    coverage: Coverage
    constraints: Count
    constraints_missing: bool


class Metrics(Record, frozen=True):
    """metrics.json."""

    phases: tuple[PhaseMetrics, ...]
    totals: Totals
    context: ContextMetrics | Unset = UNSET


@dataclass(frozen=True)
class MemoryMark:
    """Up to where memory.jsonl and conflicts.jsonl went."""

    assertions: Count  # lines of memory.jsonl
    last: str | None  # id of the last of them; None if there was none
    asserted_at: str | None  # the latest instant at which one was asserted
    conflicts: Count  # lines of conflicts.jsonl


@dataclass(frozen=True)
class Snapshot:
    """What was there when a turn began."""

    schema: Literal["panda.snapshot/1"] = field(default="panda.snapshot/1", kw_only=True)
    """Name and version of the format."""
    turns: Ranges  # numbers of the saved turns
    memory: MemoryMark | None  # how far the user's memory went; None if it could not be read
    files: Mapping[_MemoryFile, Digest | None]
    """Digest of each memory file by name; None for one that was not there."""
    notes: Count  # number of notes below knowledge/
    knowledge: Mapping[Annotated[str, Meta(pattern="^[0-6][0-9]$")], Digest]
    """Digests of the notes' names and content, those of one part together; see part_of."""
    forgotten_at: str | Unset = UNSET  # when the files, of which something was forgotten, lost their digests

    def holds(self, number: int) -> bool:
        """Whether a turn was saved."""
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
        found = [name for name in self.files if self.files[name] != now.files.get(name)]
        by_part: dict[str, list[str]] = {}
        for name in sorted(notes):
            by_part.setdefault(part_of(name), []).append(f"knowledge/{name}")
        parts = sorted({*self.knowledge, *now.knowledge})
        changed = [part for part in parts if self.knowledge.get(part) != now.knowledge.get(part)]
        return list(dict.fromkeys([*found, *(n for p in changed for n in by_part.get(p, ["knowledge/…"]))]))


class Message(Record, frozen=True, forbid_unknown_fields=False):
    """A message of a call: its text, or the digest of one that stands in an earlier line."""

    role: str
    sha256: str = ""
    content: str = ""
    pictures: Texts = ()


Hashes = Annotated[dict[str, str | None], Meta(extra_json_schema={"required": ["model"]})]


_EITHER = [{"required": ["content"]}, {"required": ["sha256"]}]
_Message = Annotated[Message, Meta(extra_json_schema={"anyOf": _EITHER})]


class Option(Record, frozen=True, forbid_unknown_fields=False):
    context: str
    continuation: str
    logprob: float
    tokens: int


class Usage(Record, frozen=True):
    prompt: int | None
    reused: int | None
    output: int | None


class Prefix(Record, frozen=True, forbid_unknown_fields=False):
    sha256: str
    content: str = ""
    role: str = ""


class _Call(Record, frozen=True, kw_only=True, forbid_unknown_fields=False):
    n: Number
    phase: PhaseNumber
    recipe: str
    attempt: Count
    hashes: Hashes
    usage: Usage
    seconds: Annotated[float, Meta(ge=0)]
    parameters: dict[str, Any] | Unset = UNSET
    messages: tuple[_Message, ...] | None = None
    options: tuple[Option, ...] | None = None
    output: str | None = None
    finish_reason: str | None = None
    reasoning: str = ""
    lenient: Texts = ()
    error: str | dict[str, Any] | None = None
    execution: Count = 0
    round: Count = 0
    revision: Count = 0
    property: str = ""
    prefix: Prefix | Unset = UNSET


class ChoiceCall(_Call, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A line of calls.jsonl: a model was asked how likely options are."""

    kind: Literal["choose"]
    property: str
    prefix: Prefix
    options: tuple[Option, ...]


class GeneratedCall(_Call, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A line of calls.jsonl: a model was asked for a text."""

    kind: Literal["generate"]
    messages: tuple[_Message, ...]
    parameters: dict[str, Any]
    output: str
    finish_reason: Literal["stop", "length"]


class ForgottenCall(Record, frozen=True):
    """A line of calls.jsonl that held what was forgotten: what it cost is left."""

    n: Number
    kind: Literal["forgotten"]
    recipe: str
    usage: Usage
    seconds: Annotated[float, Meta(ge=0)]
    forgotten_at: Time


class Image(Record, frozen=True):
    """image.json: the image given with a query, and what EYES says of it."""

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


class ReferenceResolution(Record, frozen=True):
    status: Literal["not_needed", "resolved", "failed"]
    original_references: Texts
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
    key: str
    value: str | float
    text: str


class Pending(Record, frozen=True):
    id: str
    status: Literal["open", "answered"]
    answer: str | None
    agreed: bool


class Clause(Record, frozen=True):
    text: str
    mood: Mood


class Reference(Record, frozen=True):
    words: str
    refs: Texts


class Exclusion(Record, frozen=True):
    ref: str
    action: Literal["drop", "demote", "keep"]
    words: str


class Period(Record, frozen=True):
    start: str
    end: str
    words: str


class Limit(Record, frozen=True):
    text: str
    key: str = ""
    value: str | float | Unset = UNSET


class Statement(Record, frozen=True):
    text: str
    key: str = ""
    value: str | Texts | Unset = UNSET
    entity: str = ""
    action: Literal["adds", "removes", "corrects"] | Unset = UNSET


class Reading(Record, frozen=True):
    mood: Mood | Unset = UNSET
    clauses: tuple[Clause, ...] = ()
    references: tuple[Reference, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    clears: str = ""
    periods: tuple[Period, ...] = ()
    limits: tuple[Limit, ...] = ()
    agreement: Literal["agrees", "declines", "neither"] | Unset = UNSET
    recap: bool = False
    all: bool = False
    details: bool = False
    statements: tuple[Statement, ...] = ()


class QueryAnalysis(Record, frozen=True):
    """query_analysis.json."""

    original_query: str
    resolved_query: str
    reference_resolution: ReferenceResolution
    query_type: Literal["informational", "transactional", "navigation", "commerce_search", "comparison"]
    intent: Literal["commerce", "query", "recall", "preference", "navigation", "greeting"]
    entities: Texts
    user_purpose: str | None
    data_requirements: DataRequirements
    content_reference: ContentReference | None
    reasoning: str | None
    constraints: tuple[Constraint, ...] = ()
    pending: Pending | None = None
    references: Texts = ()
    reference_nodes: Texts = ()
    kept_content: str | None = None
    reading: Reading | Unset = UNSET


class CuratedEntity(Record, frozen=True):
    ref: str
    reason: str


class EntityCuration(Record, frozen=True):
    turn: int | None
    retained: tuple[CuratedEntity, ...]
    demoted: tuple[CuratedEntity, ...]
    dropped: tuple[CuratedEntity, ...]
    clear_all: bool
    reason: str | None


class Reflection(Record, frozen=True):
    """reflection.json."""

    decision: Literal["PROCEED", "CLARIFY"]
    confidence: Share | None
    reasoning: str | None
    question: str | None
    entity_curation: EntityCuration | Unset = UNSET


class TurnRelevance(Record, frozen=True):
    relevance: Literal["high", "medium", "low"]
    reason: str | None


class ResearchCacheMatch(Record, frozen=True):
    matched: bool
    topic: str | None
    freshness: str | None
    quality: Share | None
    reuse_recommendation: str | None


class Candidate(Record, frozen=True):
    node_id: str
    score: float | None
    chosen: bool
    by: Literal["model", "index", "always_include"]
    index: float | Unset = UNSET


class RetrievalPlan(Record, frozen=True):
    """retrieval_plan.json."""

    relevant_turns: tuple[Count, ...]
    turn_relevance: dict[Annotated[str, Meta(pattern="^\\d+$")], TurnRelevance]
    relevant_memory_keys: Texts
    relevant_knowledge: Texts
    research_cache_match: ResearchCacheMatch
    webpage_cache_needed: Texts
    candidates: tuple[Candidate, ...]
    reasoning: str | None


class Item(Record, frozen=True):
    text: str
    node_ids: Texts


class Section(Record, frozen=True):
    title: str
    source_type: str | Texts
    items: tuple[Item, ...]
    confidence_avg: Share | None
    node_ids: Texts
    provenance: Texts
    source: Literal["always_include", None]


class Verdict(Record, frozen=True):
    status: Literal["pass", "retry", "clarify"]
    issues: Texts
    confidence: Share | None


class Document(Record, frozen=True):
    node_id: str
    provenance: str
    tokens: Count
    kept_tokens: Count
    cut: bool


class GatheredContext(Record, frozen=True):
    """gathered_context.json."""

    sections: tuple[Section, ...]
    gathered_at: Time
    context_quality: Share
    gaps: Texts
    stale: Texts
    verdict: Verdict
    documents: tuple[Document, ...] = ()
    metrics: ContextMetrics | Unset = UNSET


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


class Plan(Record, frozen=True):
    """plan.json."""

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


class SummaryStep(Record, frozen=True):
    step: Number
    tool: str
    step_type: StepType
    subdomain: str
    outcome: str
    record_count: Count
    entities: Texts
    note: str | None
    conclusion: str | None
    result: str


class SummaryOfSession(Record, frozen=True):
    assistant_summary: str | None
    assistant_summary_kind: SummaryKind | None
    history: str | None
    history_kind: SummaryKind | None
    engagement: str | None
    engagement_kind: SummaryKind | None


class Summary(Record, frozen=True):
    """summary.json."""

    turn: Number
    outcome: TurnOutcome
    turn_summary: str | None
    summary_kind: SummaryKind | None
    answered: bool
    sources: Texts
    steps_completed: Count
    errors: Texts
    entities_created: Texts = ()
    entities_updated: Texts = ()
    entities_deleted: Texts = ()
    artifacts_generated: Texts = ()
    artifacts_saved: Texts = ()
    analysis_conclusions: Texts = ()
    decision: str | None = None
    goal: str | None = None
    entity_curation: str | None = None
    blocked_reason: str | None = None
    question: str | None = None
    pending: str | None = None
    steps_total: Count = 0
    flow: FlowPhase | None = None
    steps: tuple[SummaryStep, ...] = ()
    session: SummaryOfSession | Unset = UNSET


class IndexSummary(Record, frozen=True):
    """index_summary.json: what the index shows of a turn."""

    summary: str | None
    topics: Texts
    intent: str | None
    has_research: bool
    research_topic: str | None


class TextValue(Record, frozen=True):
    type: Literal["string", "text", "datetime", "ref"]
    v: str


class NumberValue(Record, frozen=True):
    type: Literal["number"]
    v: float


class BooleanValue(Record, frozen=True):
    type: Literal["boolean"]
    v: bool


class NullValue(Record, frozen=True):
    type: Literal["null"]


class ListValue(Record, frozen=True):
    type: Literal["list"]
    v: tuple[Scalar, ...]


Value = TextValue | NumberValue | BooleanValue | NullValue | ListValue


class Staged(Record, frozen=True):
    """A value to be remembered when the turn is saved."""

    kind: MemoryKind
    entity: str
    relation: str
    value: Value
    content_type: str
    source_turn: Count
    text: str
    action: Literal["adds", "removes", "retracts"] | Unset = UNSET
    told: Annotated[bool, Meta(extra_json_schema={"enum": [True]})] = False


class Noted(Record, frozen=True):
    text: str
    node_id: str
    key: str | None
    value: Scalar | tuple[Scalar, ...]
    replaces: str | None


class StagedMemory(Record, frozen=True):
    """staged_memory.json."""

    staged: tuple[Staged, ...]
    applied: bool
    noted: tuple[Noted, ...] = ()


class Claim(Record, frozen=True):
    text: str
    confidence: Share | None
    source: Text
    node_id: str | None
    expires_at: str | None


class StepEntity(Record, frozen=True):
    ref: str
    type: str
    label: str
    op: Literal["read", "create", "update", "delete"]


class Reused(Record, frozen=True):
    turn: Number
    step: Number


class Step(Record, frozen=True):
    """steps/step_NN.json."""

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
    data: Any
    error: str | None
    claims: tuple[Claim, ...]
    entities: tuple[StepEntity, ...]
    artifacts: tuple[Place, ...]
    text: str
    seconds: float | None
    reused: Reused | Unset = UNSET


class ResearchClaim(Record, frozen=True, forbid_unknown_fields=False):
    claim: str
    source: str | None = None
    confidence: Share | None = None
    content_type: str | None = None
    visit_id: str | None = None
    url: str | None = None
    subject: str | None = None
    provenance: str | None = None


class Conflict(Record, frozen=True, forbid_unknown_fields=False):
    about: str
    text: str
    claims: Annotated[tuple[ResearchClaim, ...], Meta(min_length=2)]


class Source(Record, frozen=True, forbid_unknown_fields=False):
    url: str
    title: str
    quality: Share
    chosen: bool


class Research(Record, frozen=True, forbid_unknown_fields=False):
    """research.json."""

    topic: Text
    cache_key: str | None = None
    created_at: Time | None = None
    expires_at: Time | None = None
    quality_score: Share | None = None
    summary: str | None = None
    claims: tuple[ResearchClaim, ...] = ()
    webpage_cache: Texts = ()
    conflicts: tuple[Conflict, ...] = ()
    query: str = ""
    kind: str = ""
    phrases: Texts = ()
    provider: str = ""
    failed: Texts = ()
    refreshes: Texts = ()
    away: Texts = ()
    sources: tuple[Source, ...] = ()


class Manifest(Record, frozen=True):
    """manifest.json of a visit."""

    visit_id: Text
    url: Text
    visited_at: Time
    page_type: str | None = None
    extraction_quality: Share | None = None
    refreshes: str | None = None
    title: str | None = None
    final_url: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    unchanged: bool | None = None


class Table(Record, frozen=True, forbid_unknown_fields=False):
    columns: Texts
    rows: tuple[Texts, ...]
    caption: str = ""
    left_out: Count = 0


class Zone(Record, frozen=True, forbid_unknown_fields=False):
    type: Literal["pricing", "product_info", "reviews", "navigation", "other"]
    confidence: Share
    items: Texts


class Extracted(Record, frozen=True, forbid_unknown_fields=False):
    """extracted.json of a visit."""

    title: str | None = None
    price: str | float | None = None
    availability: str | None = None
    specs: dict[str, Any] | None = None
    products: tuple[dict[str, Any], ...] | None = None
    offers: tuple[dict[str, Any], ...] | None = None
    tables: tuple[Table, ...] | None = None
    zones: tuple[Zone, ...] | None = None


class MemoryLine(Record, frozen=True):
    """A line of memory.jsonl."""

    id: Text
    entity: Filled
    relation: Text
    value: Value
    source: str | None
    confidence: Share
    scope: Literal["local", "team", "company", "public"]
    hlc: Annotated[str, Meta(pattern="^\\d+\\.\\d+$")] | None
    valid_until: Time | None
    kind: MemoryKind
    source_turn: int | None
    asserted_at: Time
    content_type: str | None


class ConflictLine(Record, frozen=True):
    """A line of conflicts.jsonl; one that is resolved names the fact that holds."""

    conflict_id: Filled
    fact_a: Filled
    fact_b: Filled
    status: Filled
    resolution_fact: str | None = None


class ProposedFactLine(Record, frozen=True):
    """A line of proposed_facts.jsonl."""

    relation: Filled
    value: Filled
    text: str
    source_turn: Number
    proposed_at: Annotated[str, Meta(pattern="^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$")]
    batches: Annotated[tuple[Annotated[tuple[Number, ...], Meta(min_length=1)], ...], Meta(min_length=1)]
    status: Literal["proposed", "kept", "dropped"]


@dataclass(frozen=True, kw_only=True)
class SessionTurn:
    """One turn of a session."""

    turn: int
    directory: Annotated[str, Meta(pattern=r"^turn_\d{6,}\Z")]  # name of its directory


@dataclass(frozen=True, kw_only=True)
class Session:
    """The value of session.json."""

    schema: str = "panda.session/1"  # name and version of the format
    session_id: Id
    user_id: Id  # whose session
    created_at: str  # when its first turn was claimed
    last_active_at: str  # when its newest turn was claimed
    head_turn: int  # its newest turn
    turns: tuple[SessionTurn, ...]  # its turns, oldest first
    turns_cut: int = 0  # how many older turns are not listed
    carry: Carry  # what the next turn knows


@dataclass(frozen=True, kw_only=True)
class SealedSession(Session):
    """session.json with its seal."""

    seal: str = ""


class ClosedSession(Record, frozen=True):
    """closed.json of a session."""

    schema: Literal["panda.closed/1"]
    session_id: Id
    closed_at: str
    head_turn: Number


class RecipeVersion(Record, frozen=True):
    """A version of a recipe in logs/recipes/."""

    schema: Literal["panda.recipe_version/1"]
    recipe: Place
    version: Sha256
    first_seen: str
    text: str
    prompts: dict[str, str]


class ImportLine(Record, frozen=True):
    """A line that `panda import` reads."""

    user: Id
    session: Id
    at: str
    query: Filled
    response: str
    turn: Annotated[int, Meta(ge=1, le=999_999_999)] | Unset = UNSET
    summary: str | None = None
    topics: Texts | None = None


class Intervention(Record, frozen=True):
    """interventions/ID.json."""

    schema: str
    id: Name
    created_at: Time
    user_id: Id | None
    turn: int | None
    phase: PhaseNumber | None
    recipe: str | None
    type: str
    severity: Literal["critical", "high", "medium", "low"]
    message: str
    where: str | None
    expected: str | None
    received: str | None
    raw_output: str | None
    what_to_do: str | None
    details: dict[str, Any]
    status: Literal["open", "resolved"]
    resolved_at: Time | None
    resolution: str | None
    recipe_version: str | None = None


_HELD = {
    "properties": {"resolution_fact": {"type": "string", "pattern": r"\S"}},
    "required": ["resolution_fact"],
}
RESOLVED = Meta(extra_json_schema={"if": {"properties": {"status": {"const": "resolved"}}}, "then": _HELD})
"""What holds of a ConflictLine besides: one that is resolved names the fact that does."""


BY_NAME: Mapping[str, Any] = {
    layout.METADATA_JSON: Metadata,
    layout.METRICS_JSON: Metrics,
    layout.SNAPSHOT_JSON: Snapshot,
    layout.CALLS_JSONL: ChoiceCall | GeneratedCall | ForgottenCall,
    layout.IMAGE_JSON: Image,
    layout.QUERY_ANALYSIS_JSON: QueryAnalysis,
    layout.REFLECTION_JSON: Reflection,
    layout.RETRIEVAL_PLAN_JSON: RetrievalPlan,
    layout.GATHERED_CONTEXT_JSON: GatheredContext,
    layout.PLAN_JSON: Plan,
    layout.SUMMARY_JSON: Summary,
    layout.INDEX_SUMMARY_JSON: IndexSummary,
    layout.STAGED_MEMORY_JSON: StagedMemory,
    layout.RESEARCH_JSON: Research,
    layout.MANIFEST_JSON: Manifest,
    layout.EXTRACTED_JSON: Extracted,
    layout.MEMORY_JSONL: MemoryLine,
    layout.CONFLICTS_JSONL: Annotated[ConflictLine, RESOLVED],
    layout.PROPOSED_FACTS_JSONL: ProposedFactLine,
    layout.SESSION_JSON: SealedSession,
    layout.CLOSED_JSON: ClosedSession,
    "recipe_version.json": RecipeVersion,
    "import.jsonl": ImportLine,
}
BY_DIRECTORY: Mapping[str, Any] = {"steps": Step, "interventions": Intervention}
_MESSAGE_CHARS = 300
_PATH_CHARS = 80


def format_of(path: str) -> Any:
    """
    The record that a file of the store holds; for a .jsonl file, each of its lines.

    Args:
        path: File name, or a path of which the last directory counts too.

    Returns:
        The type, or None for a file without one.

    >>> format_of("metadata.json").__name__, format_of("steps/step_01.json").__name__, format_of("notes.json")
    ('Metadata', 'Step', None)
    """
    pure = PurePath(path)
    if pure.suffix == ".json" and pure.parent.name in BY_DIRECTORY:
        return BY_DIRECTORY[pure.parent.name]
    return BY_NAME.get(pure.name)


_schema = cache(schema_of)


def json_problems(name: str, value: object, *, path: str, line: int | None = None) -> list[Problem]:
    """
    What is wrong with a value that a file holds, or is about to hold.

    Args:
        name: File name in the store, as for format_of.
        value: The parsed value; of a .jsonl file, one line's.
        path: Path of the file, for the problems.
        line: Line of the value, for .jsonl files.

    Returns:
        One problem for each place, in the order of the keys; none if the file has no record.
    """
    record = format_of(name)
    found = _faults(_schema(record), value) if record else []
    return [Problem(path, message, line, key or None, fix) for key, message, fix in found]


def _faults(schema: Mapping[str, Any], value: object) -> list[tuple[str, str, str | None]]:
    """Key, message and fix of each fault."""
    if surely_fits(schema, value):
        return []
    written = json.loads(json.dumps(value))  # what is about to be written may hold tuples
    if surely_fits(schema, written):
        return []
    from jsonschema import Draft202012Validator

    errors = sorted(Draft202012Validator(schema).iter_errors(written), key=_key)
    return [(_key(error), *_message(error)) for error in errors]


def _key(error: "ValidationError") -> str:
    return ".".join(str(part) for part in error.absolute_path)


def _message(error: "ValidationError") -> tuple[str, str | None]:
    rule = PATH_RULES.get(str(error.validator_value)) if error.validator == "pattern" else None
    if rule is not None:
        return f"{shorten(repr(error.instance), _PATH_CHARS)} is {rule}", PATH_FIX
    message = error.message
    if len(message) > _MESSAGE_CHARS:
        message = f"{message[:_MESSAGE_CHARS]} … ({len(message)} characters)"
    return message, None


def check_json(name: str, value: object, where: str) -> None:
    """
    Raises unless a value fits the record of its file; a file without one takes any value.

    Args:
        name: File name in the store, as for format_of.

    Raises:
        FileFormatError: It does not fit; names the first key that is wrong.
    """
    for problem in json_problems(name, value, path=where):
        raise FileFormatError(problem.message, where=problem.where, fix=problem.fix)
