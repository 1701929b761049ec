"""The composition root: from settings to a pipeline that can run a turn. Shows what each phase touches."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from panda.compression.budgets import count_tokens
from panda.documents.pictures import Picture
from panda.documents.times import TurnClock
from panda.errors import ModelFileError, PandaError, RecipeError, UsageError
from panda.memory.files import Projection
from panda.memory.memory import take_in_edits
from panda.memory.past import Moment, memory_digests, memory_mark
from panda.memory.reader import NodeReader
from panda.models.contract import Encoder
from panda.models.contract import Layers as ExecutorLayers
from panda.models.kept_encoder import KeptEncoder
from panda.phases.context_gatherer import ContextGatherer
from panda.phases.contract import Phase
from panda.phases.coordinator import Coordinator
from panda.phases.evidence_spans import ClosestLines
from panda.phases.planner import Planner
from panda.phases.query_analyzer import QueryAnalyzer
from panda.phases.reflection import Reflection
from panda.phases.request import write_draft
from panda.phases.save import Save
from panda.phases.statements import Noting
from panda.phases.synthesizer import Synthesizer
from panda.phases.turn import Turn, check_query
from panda.phases.validator import Validator
from panda.pipeline import Pipeline
from panda.recipes.book import RecipeBook
from panda.recipes.calls import Recordings
from panda.recipes.checks import check_recipes_of_mode
from panda.recipes.executor import RecipeExecutor
from panda.recipes.versions import VersionStore, version_in_force
from panda.retrieval.candidates import Retriever
from panda.retrieval.meaning import TEXTS_AFTER, TEXTS_BEFORE, Meaning, say_missing
from panda.session.file import check_open, fold_turns, free_session_id, load_session, open_session
from panda.settings import Settings, process_environment
from panda.storage.files import append_json_line, held_lock
from panda.storage.formats import Session, Snapshot
from panda.storage.index import Index
from panda.storage.index_tables import in_ranges
from panda.storage.interventions import write_intervention
from panda.storage.layout import IMAGE_JSON, Layout
from panda.storage.seals import digest_parts
from panda.storage.temporaries import sweep_below
from panda.storage.turns import Reserved, TurnFolder, TurnStore
from panda.storage.vector_store import VectorStore
from panda.tools.contract import ToolContext
from panda.tools.project import Project
from panda.tools.table import TOOLS
from panda.tools.web import web_opener
from panda.trust import open_layers, require_trust


@dataclass(frozen=True)
class App:
    """Everything that runs turns of one user."""

    settings: Settings  # in force
    layout: Layout  # the store
    book: RecipeBook  # recipes and prompts
    layers: ExecutorLayers  # models by layer
    executor: RecipeExecutor  # asks the models
    store: TurnStore  # the user's turns
    index: Index  # the derived index
    pipeline: Pipeline  # the phases in order
    now: TurnClock  # the instant that a running turn counts from
    moment: Moment  # what was there when the running turn began
    gatherer: ContextGatherer  # phase 2, for looking at what it would find
    tools: ToolContext  # what tools may touch, without a turn
    encoder: Encoder | None  # gives texts vectors and keeps them; None without one
    meaning: Meaning | None  # finds by meaning; None without an encoder
    open_project: Callable[..., Project]  # gives the project's files; with `dry` changes stay in memory

    def start_turn(
        self,
        query: str,
        mode: str,
        *,
        recordings: Recordings | None = None,
        dry_run: bool = False,
        picture: Picture | None = None,
        image: Mapping[str, object] | None = None,
        made_for: Reserved | None = None,
        locks: ExitStack | None = None,
        on_wait: Callable[[str], None] = lambda holder: None,
    ) -> Turn:
        """
        Claim a number for a query, in the session of the settings or else in one of its own.

        Args:
            recordings: Answers to use instead of asking a model.
            dry_run: Whether tools only tell what they would change in the project.
            picture: The image that goes with the query.
            image: What was said of it before, as image.json holds it; None asks the layer EYES.
            made_for: The item of a batch that the turn is for, with its number.
            locks: Gets the lock of the session, to be held while the turn runs; None: the caller holds it.

        Raises:
            QueryError: The query is empty or too long; no number is claimed.
            RecipeError: A recipe of the mode is broken; an intervention is written, no number is claimed.
            ModelFileError: The same for a model that does not load.
        """
        check_query(query)
        self._check_calls(mode, with_image=picture is not None and image is None)
        settings, session_id, session = self.settings, self.settings.session, None
        if session_id is not None:
            if locks is not None:
                locks.enter_context(self.hold_session(session_id, on_wait))
            check_open(self.layout, settings.user, session_id)
            session = self._finish_head(session_id)
        self.moment.release()
        memory = take_in_edits(self.layout, settings.user, settings.clock, settings.wait_seconds)
        snapshot = self._snapshot(session, memory)
        if session_id is None:
            made_for = made_for or Reserved(self.store.reserve(1))
            session_id = free_session_id(self.layout, self.index, settings.user, made_for.turn)
            if locks is not None:  # before the turn can be seen: --resume-all takes up what nobody holds
                locks.enter_context(self.hold_session(session_id, on_wait))
        folder = self.store.claim(
            session_id,
            mode,
            query,
            seed=settings.seed,
            dry_run=dry_run,
            picture=picture,
            snapshot=snapshot,
            made_for=made_for,
        )
        if image is not None:
            folder.write_json(IMAGE_JSON, image)
        return self._taken_up(folder, recordings, session, memory)

    def _snapshot(self, session: Session | None, memory: Projection | None) -> Snapshot:
        """What is there now: what the turn reads is held against it, so that nothing later counts."""
        user = self.settings.user
        self.index.freshen(user)
        if self.meaning is not None:
            self.meaning.fill(user, most=TEXTS_BEFORE, in_turn=True)
        saved, digests = self.index.read(user, lambda view: (view.turns, view.note_digests()))
        own = [one.turn for one in session.turns] if session else []
        return Snapshot(
            turns=in_ranges(saved, own),
            memory=memory_mark(memory.log) if memory else None,
            files=memory_digests(memory) if memory else {},
            notes=len(digests),
            knowledge=digest_parts(digests),
        )

    def _finish_head(self, session_id: str) -> Session | None:
        """The session; its head is brought to its end if it was killed between commit and last write."""
        user = self.settings.user
        session = load_session(self.layout, user, session_id)
        if session is not None and self.store.has(session.head_turn):
            folder = self.store.open(session.head_turn)
            if folder.read_metadata().next is not None:
                self.run_turn(Turn(folder, self.layout, session=session))
        if session is not None:
            return session
        self.index.freshen(user)  # knows the session's turns without opening every one of the user's
        numbers = self.index.read(user, lambda view: view.session_turns(session_id))
        return fold_turns(self.layout, user, session_id, numbers)

    def resume_turn(self, number: int) -> Turn:
        """
        Take up a turn where it stopped: halted, interrupted, gathered or killed.

        Raises:
            NotFoundError: There is no such turn.
            UsageError: It has ended, or a later turn of its session is saved.
        """
        folder = self.store.open(number)
        metadata = folder.read_metadata()
        place = str(folder.paths.directory)
        if metadata.next is None:
            raise UsageError(
                f"turn {number} has ended with status {metadata.status}",
                where=place,
                fix="ask it as a new turn",
            )
        session = open_session(self.layout, self.settings.user, metadata.session_id)
        if session is not None and session.head_turn > number:
            raise UsageError(
                f"turn {number} cannot go on: its session has turn {session.head_turn} since",
                where=place,
                fix="ask it as a new turn",
            )
        self._check_calls(metadata.mode, with_image=bool(metadata.image) and not folder.has(IMAGE_JSON))
        sweep_below(folder.paths.directory)
        folder.write_metadata(replace(metadata, status="running", intervention=None))
        return self._taken_up(folder, None, session)

    def run_turn(self, turn: Turn, watch: Callable[[Phase], None] = lambda phase: None) -> None:
        """
        Take a turn to its end and put it into the index; *watch* is told of each phase before it runs. Raises
        HaltError: it cannot go on; an intervention is written.
        """
        self.pipeline.run(turn, watch)
        user = self.settings.user
        self.index.record(user, [turn.turn])
        if self.meaning is not None:
            missing = self.meaning.fill(user, most=TEXTS_AFTER, in_turn=True)
            if missing:
                turn.warn(say_missing(missing))

    def _taken_up(
        self,
        folder: TurnFolder,
        recordings: Recordings | None,
        session: Session | None,
        memory: Projection | None = None,
    ) -> Turn:
        at = folder.read_metadata().created_at
        self.now.pin(at)
        self.moment.pin(folder.number, folder.snapshot(), at, memory=memory)
        return Turn(folder, self.layout, recordings=recordings, session=session)

    def hold_session(
        self, session: str, on_wait: Callable[[str], None] = lambda holder: None
    ) -> AbstractContextManager[None]:
        """The lock under which the turns of one session follow each other."""
        return held_lock(
            self.layout.session_lock(self.settings.user, session),
            holder=f"panda turn (pid {os.getpid()})",
            wait_seconds=self.settings.wait_seconds,
            on_wait=on_wait,
        )

    def _check_calls(self, mode: str, *, with_image: bool) -> None:
        """Look, before a number is claimed, whether the project's commands and the recipes can be used."""
        if mode == "code":
            require_trust(self.settings, "test_commands")
        try:
            for layer in check_recipes_of_mode(
                self.book,
                mode,
                model_of=lambda layer: self.layers.model(layer).info,
                tools=TOOLS,
                with_image=with_image,
                cache_dir=self.settings.cache_dir,
            ):
                self.layers.model(layer).count_model_tokens("")  # loads it: a broken file costs no number
        except (RecipeError, ModelFileError) as exc:
            nothing = dict.fromkeys(("turn", "phase", "recipe"))
            write_intervention(self.layout, self.settings.clock, exc, user=self.settings.user, **nothing)
            raise


def build(
    settings: Settings, layout: Layout, environ: Mapping[str, str], layers: ExecutorLayers | None = None
) -> App:
    """
    Put together what runs a user's turns. No model is loaded yet.

    Args:
        environ: For the API keys that models.yaml names.
        layers: Models that outlive this; None for its own.

    Raises:
        UntrustedError: models.yaml or a setting is the project's, reaches out, and is not trusted.
        ModelFileError: models.yaml is broken.
    """
    return build_with(settings, layout, layers or open_layers(settings, environ))


def build_with(
    settings: Settings, layout: Layout, layers: ExecutorLayers, vectors: VectorStore | None = None
) -> App:
    """The same with given models, and vectors of another store if need be: for tests and replay."""
    require_trust(settings, "root", "cache_dir", "web_allow", "search_provider")
    clock, user, limits = settings.clock, settings.user, settings.compression
    now = TurnClock(clock)
    book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)

    versions = VersionStore(layout.recipe_versions, clock)

    def log(record: Mapping[str, object]) -> None:
        if "key" in record:  # an execution; a compression has no recipe of its own
            versions.keep_in_force(book, str(record["key"]), str(record["version"]))
        append_json_line(layout.executions_log, record)

    given = layers.encoder()
    encoder = KeptEncoder(given, vectors or VectorStore(layout)) if given is not None else None
    executor = RecipeExecutor(book, layers, encoder, clock=clock, log=log, count=count_tokens, limits=limits)
    index, web = Index(layout), web_opener(settings.web_allow, settings.web_timeout_seconds)
    moment = Moment(layout, user)
    meaning = Meaning(encoder, index, layout, clock) if encoder is not None else None
    reader = NodeReader(layout, user, now, moment, index)
    retriever = Retriever(index, user, now, moment, meaning)
    limit = settings.tool_seconds
    tools = ToolContext(layout, user, 0, "", reader, retriever, now, web=web, limit_seconds=limit)
    tools = replace(tools, search_provider=settings.search_provider)

    def open_project(*, dry: bool) -> Project:
        require_trust(settings, "test_commands")
        return Project(
            settings.project_dir.resolve(),
            (settings.models_file, layout.root),
            commands=settings.test_commands,
            command_seconds=settings.test_seconds,
            environ=process_environment(),
            trusted=settings.trust,
            dry=dry,
        )

    def tools_of(turn: Turn) -> ToolContext:
        project = open_project(dry=turn.dry_run) if turn.mode == "code" else None
        folder = turn.folder.paths.directory
        own = replace(tools, turn=turn.turn, query=turn.query, folder=folder, project=project)
        return replace(own, draft=lambda kind, brief: write_draft(executor, turn, kind, brief))

    closest = ClosestLines(reader, encoder)
    noting = Noting(user, moment, encoder)
    gatherer = ContextGatherer(executor, retriever, reader, closest, now, count_tokens)
    phases: tuple[Phase, ...] = (
        QueryAnalyzer(executor, reader),
        Reflection(executor, reader),
        gatherer,
        Planner(executor, tools_of, closest),
        Coordinator(executor, tools_of),
        Synthesizer(executor, reader, closest, noting),
        Validator(executor, reader, closest),
        Save(executor, layout, now, settings.wait_seconds, noting),
    )

    def on_halt(turn: Turn, phase: Phase, error: PandaError) -> str:
        version = version_in_force(book, turn.recipe).digest if turn.recipe else None
        number, name = turn.turn, turn.recipe
        return write_intervention(
            layout, clock, error, user=user, turn=number, phase=phase.number, recipe=name, version=version
        )

    store = TurnStore(layout, user, clock)
    pipeline = Pipeline(phases, on_halt, count=count_tokens, log=log, limits=limits, executor=executor)
    return App(
        settings,
        layout,
        book,
        layers,
        executor,
        store,
        index,
        pipeline,
        now,
        moment,
        gatherer,
        tools,
        encoder,
        meaning,
        open_project,
    )
