"""The composition root: from settings to a pipeline that can run a turn. Shows what each phase touches."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

from msgspec import structs

from panda.addon_registry import find_workspace
from panda.documents.pictures import Picture
from panda.documents.times import TurnClock
from panda.errors import FileFormatError, ModelFileError, RecipeError, UsageError
from panda.forgetting import Forgetting
from panda.index.full_text import Index
from panda.index.tables import in_ranges
from panda.index.vectors import VectorStore
from panda.memory.markdown_files import Bound, Projection
from panda.memory.reader import Moment, NodeReader
from panda.memory.user_memory import take_in_edits
from panda.messages.reading import Reading
from panda.models.kept_encoder import KeptEncoder
from panda.models.model_contract import Layers
from panda.models.models_file import OFFLINE
from panda.phases.context_gatherer import ContextGatherer
from panda.phases.coordinator import Coordinator
from panda.phases.kept import listed_things
from panda.phases.planner import Planner
from panda.phases.query_analyzer import QueryAnalyzer
from panda.phases.quotation import LineQuoter
from panda.phases.recipe_request import write_draft
from panda.phases.reflection import Reflection
from panda.phases.running_turn import Turn, check_query
from panda.phases.save import Save
from panda.phases.saved_answers import SavedAnswers
from panda.phases.statements import Noting
from panda.phases.synthesizer import Synthesizer
from panda.phases.turn_evidence import ClosestLines
from panda.phases.validator import Validator
from panda.pipeline import Pipeline
from panda.recipes.book import RecipeBook
from panda.recipes.calls import Recordings
from panda.recipes.checks import LayerModel
from panda.recipes.executor import RecipeExecutor
from panda.recipes.passed_checks import check_mode_once
from panda.recipes.versions import VersionStore
from panda.retrieval.candidates import Retriever
from panda.retrieval.meaning import TEXTS_AFTER, TEXTS_BEFORE, Meaning, say_missing
from panda.retrieval.passages import PassageRanker
from panda.session.file import check_open, extend, fold_turns, free_session_id, load_session, open_session
from panda.session.turn_files import load_turn_files
from panda.settings import Settings
from panda.store.execution_log import append_executions
from panda.store.files import held_lock, sweep_below
from panda.store.interventions import write_intervention
from panda.store.layout import IMAGE_JSON, Layout, UserStore
from panda.store.records import Execution, Image, Session, Snapshot
from panda.store.seals import digest_parts
from panda.store.turn_documents import DocumentText, check_documents
from panda.store.turns import Reserved, TurnFolder, claim_turn
from panda.tools.table import TOOLS
from panda.tools.tool_contract import ToolContext, Workspace
from panda.tools.web import web_opener
from panda.trust import require_trust


class OpenWorkspace(Protocol):
    """Opens the files that turns in code mode work on; an add-on brings it."""

    def __call__(
        self, settings: Settings, guarded: tuple[Path, ...], /, *, query: str, dry: bool
    ) -> Workspace:
        """
        Args:
            guarded: Files and directories that panda uses, which are not changed.
            query: What the user asked.
            dry: Whether changes stay in memory.
        """


def _workspace_opener() -> OpenWorkspace:
    """Return what opens workspaces. UsageError: no add-on does."""
    opener: OpenWorkspace | None = find_workspace()
    if opener is None:
        raise UsageError("there is no mode 'code'", where="--mode", fix="use chat")
    return opener


_TRUSTED_SETTINGS = ("root", "cache_dir", "web_allow", "web_browser", "search_provider")
"""Settings that must be trusted before any turn runs."""


class App:
    """
    Everything that runs turns of one user, with models that outlive it and are loaded when they are asked.
    UntrustedError: a setting is the project's, reaches out, and is not trusted.
    """

    def __init__(self, settings: Settings, store: UserStore, layers: Layers) -> None:
        require_trust(settings, *_TRUSTED_SETTINGS)
        self._usual_layers = layers
        if settings.models_by_layer:
            layers = layers.serving(settings.models_by_layer)
        self.settings = settings
        self.store = store
        self.layers = layers
        limits = settings.compression
        self.book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
        of_all = Layout(store.root)  # also for a turn apart from the store
        self.index = Index(of_all)
        self._versions = VersionStore(store.recipe_versions, store.clock)
        self._folded: tuple[str, list[int], Session | None] = ("", [], None)
        """The last session that was made of turns: its id, their numbers, and itself."""
        self._now = TurnClock(store.clock)
        self._moment = Moment(store)  # of the turn that runs
        self._then = store.at(self._now)  # as the turn that runs sees it
        encoder = self.meaning = None
        if (own_encoder := layers.encoder()) is not None:
            encoder = KeptEncoder(own_encoder, VectorStore(of_all, is_written=store.apart is None))
            self.meaning = Meaning(encoder, self.index, of_all, store.clock, self._past)
        self.executor = executor = RecipeExecutor(
            self.book, layers, encoder, clock=store.clock, log=self._log, limits=limits
        )
        self._reader = reader = NodeReader(self._then, self._moment, self.index)
        retriever = Retriever(self.index, store.user, self._now, self._moment, self.meaning)
        web = web_opener(settings.web_allow, settings.web_timeout_seconds)
        limit = settings.tool_seconds
        provider = settings.search_provider
        self.tools = ToolContext(  # without a turn
            self._then,
            0,
            "",
            reader,
            retriever,
            web=web,
            web_browser=settings.web_browser,
            sees=layers.sees,
            limit_seconds=limit,
            search_provider=provider,
        )
        closest = ClosestLines(encoder)
        noting = Noting(store.user, self._moment, encoder)
        ranker = PassageRanker(encoder)
        self.gatherer = ContextGatherer(
            executor=executor,
            retriever=retriever,
            reader=reader,
            closest=closest,
            ranker=ranker,
            clock=self._now,
        )
        phases = (
            QueryAnalyzer(executor, reader, closest, SavedAnswers(retriever, reader, ranker)),
            Reflection(executor, reader, retriever, closest),
            self.gatherer,
            Planner(executor, self._tools_of, closest, ranker),
            Coordinator(executor, self._tools_of),
            Synthesizer(
                executor=executor,
                reader=reader,
                quoter=LineQuoter(reader, closest, ranker),
                noting=noting,
                left_by_forgetting=self._left_by_forgetting,
            ),
            Validator(executor, reader, closest),
            Save(executor, self._then, noting, self._forget),
        )
        self.pipeline = Pipeline(phases, limits, executor)

    def start_turn(
        self,
        query: str,
        mode: str,
        *,
        recordings: Recordings | None = None,
        dry_run: bool = False,
        picture: Picture | None = None,
        image: Image | None = None,
        made_for: Reserved | None = None,
        bound: Bound | None = None,
        locks: ExitStack | None = None,
        client: Literal["mcp"] | None = None,
        documents: Sequence[DocumentText] = (),
    ) -> Turn:
        """
        Claim a number for a query, in the session of the settings or else in one of its own.

        Args:
            recordings: Answers to use instead of asking a model.
            dry_run: Whether tools only tell what they would change in the project.
            image: What was said of the picture before; None asks the layer EYES.
            made_for: The item of a batch that the turn is for, with its number.
            bound: What it may read, of a turn apart from the store, which has number and session already.
            locks: Gets the lock of the session, to be held while the turn runs; None: the caller holds it.
            client: Through what it is asked; a turn of a client forgets nothing.
            documents: What is handed over with the query.

        Raises:
            QueryError: The query is empty or too long; no number is claimed.
            RecipeError: A recipe of the mode is broken; an intervention is written, no number is claimed.
            ModelFileError: The same for a model that does not load.
        """
        check_query(query)
        self._check_calls(mode, with_image=picture is not None and image is None)
        store = self.store
        session_id = self.settings.session
        session = None
        memory: Projection | None = None
        self._moment.pin(bound)
        if bound is not None and session_id is not None:
            with suppress(FileFormatError):  # phase 0 tells, and the turn halts
                memory = self._moment.memory
            session = self._session_then(session_id)
            if made_for is not None and made_for.item is not None:
                check_open(store, session_id)
        else:
            if session_id is not None:
                if locks is not None:
                    locks.enter_context(self.hold_session(session_id))
                check_open(store, session_id)
                session = self._finish_head(session_id)
            with suppress(FileFormatError):
                memory = take_in_edits(store)
        snapshot = self._snapshot(session, memory, bound)
        if session_id is None:
            made_for = made_for or Reserved(store.reserve(1))
            session_id = free_session_id(store, self.index, made_for.turn)
            if locks is not None:  # before the turn can be seen: --resume-all takes up what nobody holds
                locks.enter_context(self.hold_session(session_id))
        folder = claim_turn(
            store,
            session_id,
            mode,
            query,
            seed=self.settings.seed,
            dry_run=dry_run,
            picture=picture,
            snapshot=snapshot,
            made_for=made_for,
            client=client,
            documents=documents,
            models_by_layer=self.settings.models_by_layer,
        )
        if image is not None:
            folder.save(image)
        return self._taken_up(folder, recordings, session, memory, bound)

    def with_models_of(self, number: int) -> "App":
        """
        Return what runs a turn with the models that it was asked with: itself, unless it has others.

        Raises:
            ModelFileError: models.yaml does not have such a model any more.
        """
        models_by_layer = self.store.open(number).read_metadata().models or {}
        if models_by_layer == self.settings.models_by_layer:
            return self
        settings = replace(self.settings, models_by_layer=models_by_layer)
        return App(settings, self.store, self._usual_layers)

    def resume_turn(self, number: int) -> Turn:
        """
        Take up a turn where it stopped: halted, interrupted, gathered or killed. NotFoundError: there is
        none. UsageError: it has ended, or a later turn of its session is saved. FileFormatError: a document
        that was handed over is missing or has changed.
        """
        folder = self.store.open(number)
        metadata = folder.read_metadata()
        place = str(folder.paths.directory)
        fix = "ask it as a new turn"
        if metadata.next is None:
            message = f"turn {number} has ended with status {metadata.status}"
            raise UsageError(message, where=place, fix=fix)
        session = open_session(self.store, metadata.session_id)
        if session is not None and session.head_turn > number:
            message = f"turn {number} cannot go on: its session has turn {session.head_turn} since"
            raise UsageError(message, where=place, fix=fix)
        if folder.is_of_lists():
            message = f"turn {number} was begun by an earlier version, whose rules of decision are gone"
            raise UsageError(message, where=place, fix=fix)
        check_documents(folder.paths, metadata.document_count)
        self._check_calls(metadata.mode, with_image=bool(metadata.image) and not folder.has(IMAGE_JSON))
        sweep_below(folder.paths.directory)
        folder.write_metadata(structs.replace(metadata, status="running", intervention=None))
        if self.meaning is not None:
            self.meaning.begin_turn()
        return self._taken_up(folder, None, session, None, None)

    def run_turn(self, turn: Turn) -> None:
        """Take a turn to its end and put it into the index. HaltError: it cannot go on; see Pipeline.run."""
        self.pipeline.run(turn)
        if self.store.apart is not None:
            return
        self.index.record(self.settings.user, [turn.turn])
        if self.meaning is not None:
            missing = self.meaning.fill(self.settings.user, most=TEXTS_AFTER, in_turn=True)
            if missing:
                turn.warn(say_missing(missing))

    def hold_session(self, session: str) -> AbstractContextManager[None]:
        """The lock under which the turns of one session follow each other."""
        lock = self.store.session_lock(session)
        wait = self.settings.wait_seconds
        return held_lock(lock, holder=f"panda turn (pid {os.getpid()})", wait_seconds=wait)

    def open_workspace(self, query: str, *, dry: bool) -> Workspace:
        """
        Return what the tools of code mode work on; files that the query names may be made. With *dry* changes
        stay in memory. UsageError: no add-on has code mode.
        """
        require_trust(self.settings, "test_commands")
        guarded = (self.settings.models_file, self.store.root)
        return _workspace_opener()(self.settings, guarded, query=query, dry=dry)

    def _check_calls(self, mode: str, *, with_image: bool) -> None:
        """Look, before a number is claimed, whether the project's commands and the recipes can be used."""
        if mode == "code":
            _workspace_opener()
            require_trust(self.settings, "test_commands")
        try:
            layers = check_mode_once(
                self.book,
                mode,
                model_of=self._model_of,
                models_file=self.settings.models_file,
                tools=TOOLS,
                with_image=with_image,
                cache_dir=self.settings.cache_dir,
            )
            for layer, is_asked in layers.items():  # a broken file costs no number
                if self.layers.is_offline(layer):
                    continue
                model = self.layers.model(layer)
                if is_asked:
                    model.count_model_tokens("")  # loads it
                else:
                    model.check_file()
        except (RecipeError, ModelFileError) as exc:
            nothing = dict.fromkeys(("turn", "phase", "recipe"))
            write_intervention(self.store, exc, **nothing)
            raise

    def _model_of(self, layer: str) -> LayerModel:
        return OFFLINE if self.layers.is_offline(layer) else self.layers.model(layer).info

    def _finish_head(self, session_id: str) -> Session | None:
        """The session; its head is brought to its end if it was killed between commit and last write."""
        user = self.settings.user
        session = load_session(self.store, session_id)
        if session is None:
            self.index.freshen(user)  # knows the session's turns without opening every one of the user's
            numbers = self.index.read(user, lambda view: view.session_turns(session_id))
            return fold_turns(self.store, session_id, numbers)
        if self.store.has(session.head_turn):
            folder = self.store.open(session.head_turn)
            if folder.read_metadata().next is not None:
                self.run_turn(Turn(folder, self.store, session=session))
        return session

    def _session_then(self, session_id: str) -> Session | None:
        """The session of a turn apart from the store, made of the turns that count."""
        user = self.settings.user
        numbers = self.index.read(user, lambda view: view.session_turns(session_id), as_of=self._moment.index)
        name, held, session = self._folded
        if name == session_id and session is not None and numbers[: len(held)] == held:
            for number in numbers[len(held) :]:
                session = extend(session, load_turn_files(self.store.turn(number), number), user)
        else:
            session = fold_turns(self.store, session_id, numbers)
        self._folded = session_id, numbers, session
        return session

    def _snapshot(self, session: Session | None, memory: Projection | None, bound: Bound | None) -> Snapshot:
        """Return what is there now: what the turn reads is held against it, so that nothing later counts."""
        user = self.settings.user
        self.index.freshen(user)
        if self.meaning is not None:
            self.meaning.begin_turn()
            self.meaning.fill(user, most=TEXTS_BEFORE, in_turn=True)
        saved, digests = self.index.read(
            user, lambda view: (view.turns, view.note_digests()), as_of=self._moment.index
        )
        apart = self.store.apart
        bound_snapshot = bound.snapshot if bound and apart and apart.knowledge else None
        return Snapshot(
            turns=in_ranges(saved, [turn.turn for turn in session.turns] if session else []),
            memory=memory.log.mark if memory else None,
            files=memory.digests if memory else {},
            notes=bound_snapshot.notes if bound_snapshot else len(digests),
            knowledge=bound_snapshot.knowledge if bound_snapshot else digest_parts(digests),
        )

    def _taken_up(
        self,
        folder: TurnFolder,
        recordings: Recordings | None,
        session: Session | None,
        memory: Projection | None,
        bound: Bound | None,
    ) -> Turn:
        turn = Turn(folder, self.store, recordings=recordings, session=session)
        at = turn.metadata.created_at
        bound = replace(bound, at=at) if bound else Bound(folder.number, at, folder.snapshot())
        self._now.pin(at)
        self._moment.pin(replace(bound, memory=memory))
        return turn

    def _past(self) -> NodeReader:
        """Loads what the index does not hold as it was when the running turn began."""
        return NodeReader(self._then, self._moment, among=self._moment.own_turns)

    def _tools_of(self, turn: Turn) -> ToolContext:
        return replace(
            self.tools,
            turn=turn.turn,
            query=turn.query,
            folder=turn.folder.paths.directory,
            workspace=self.open_workspace(turn.query, dry=turn.dry_run) if turn.mode == "code" else None,
            draft=lambda kind, brief: write_draft(self.executor, turn, kind, brief),
        )

    def _forget(self, reading: Reading, turns: Sequence[int], session: str) -> None:
        """
        Take out what a turn orders to be forgotten, and what it asks not to be stored of itself; *turns* are
        its number, and that of the turn that may have asked.
        """
        self.index.close()
        things = [listed.thing for listed in listed_things(reading, self._reader)]
        resume = f"panda turn --resume {turns[0]} --user {self.store.user}"
        forgetting = Forgetting(self.store, [self.settings.cache_dir], again=resume)
        forgetting.forget_in_turn(things, reading.not_stored, turns, session)

    def _left_by_forgetting(self, reading: Reading) -> list[str]:
        """Return the places where texts stay that a turn forgets, each with the reason."""
        things = [listed.thing for listed in listed_things(reading, self._reader)]
        places = Forgetting(self.store, []).places_of_things(things) if things else []
        return [f"{self.store.name_of(place.path)}: {place.left}" for place in places if place.left]

    def _log(self, line: Execution) -> None:
        if line.key and line.version:  # an execution; a compression has no recipe of its own
            self._versions.keep_in_force(self.book, line.key, line.version)
        append_executions(self.store, [line])
