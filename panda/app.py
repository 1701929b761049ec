"""The composition root: from settings to a pipeline that can run a turn. Shows what each phase touches."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from panda.compression.tokens import count_tokens
from panda.documents.sections import SECTIONS
from panda.documents.times import Clock
from panda.errors import ModelFileError, PandaError, QueryError, RecipeError, UsageError
from panda.memory.nodes import NodeReader
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.phases.context_gatherer import ContextGatherer
from panda.phases.contract import Phase
from panda.phases.coordinator import Coordinator
from panda.phases.planner import Planner
from panda.phases.query_analyzer import QueryAnalyzer
from panda.phases.reflection import Reflection
from panda.phases.save import Save
from panda.phases.synthesizer import Synthesizer
from panda.phases.turn import Turn
from panda.phases.validator import Validator
from panda.pipeline import Pipeline
from panda.recipes.book import RecipeBook
from panda.recipes.checking import check_recipes_of_mode
from panda.recipes.executor import Layers as ExecutorLayers
from panda.recipes.executor import RecipeExecutor
from panda.recipes.recordings import Recordings
from panda.retrieval.candidates import Retriever
from panda.retrieval.recent import recent_turns
from panda.settings import Settings
from panda.storage.files import append_json_line, held_lock
from panda.storage.index import Index
from panda.storage.interventions import write_intervention
from panda.storage.layout import Layout
from panda.storage.turn_folder import TurnFolder
from panda.storage.turns import TurnStore
from panda.tools.contract import ToolContext
from panda.tools.table import TOOLS
from panda.web.opening import web_opener


@dataclass(frozen=True)
class App:
    """Everything that runs turns of one user."""

    settings: Settings
    """Settings in force."""
    layout: Layout
    """The store."""
    book: RecipeBook
    """Recipes and prompts."""
    layers: ExecutorLayers
    """Models by layer."""
    executor: RecipeExecutor
    """Asks the models."""
    store: TurnStore
    """The user's turns."""
    index: Index
    """The derived index."""
    pipeline: Pipeline
    """The phases in order."""
    now: "TurnClock"
    """The instant that a running turn counts from."""

    def start_turn(self, query: str, mode: str, *, recordings: Recordings | None = None) -> Turn:
        """
        Claim a number for a query.

        Args:
            query: Any text.
            mode: chat or code.
            recordings: Answers to use instead of asking a model.

        Raises:
            QueryError: The query is empty or too long; no number is claimed.
            RecipeError: A recipe of the mode is broken; an intervention is written, no number is claimed.
            ModelFileError: The same for a model that does not load.
        """
        check_query(query)
        self._check_calls(mode)
        settings = self.settings
        folder = self.store.claim(settings.session, mode, query, seed=settings.seed)
        return self._taken_up(folder, recordings)

    def resume_turn(self, number: int) -> Turn:
        """
        Take up a turn where it stopped: halted, interrupted or killed.

        Args:
            number: The turn.

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
        head = recent_turns(
            self.layout, self.settings.user, metadata.session_id, self.store.highest() + 1, limit=1
        )
        if head and head[0][0] > number:
            raise UsageError(
                f"turn {number} cannot go on: its session has turn {head[0][0]} since",
                where=place,
                fix="ask it as a new turn",
            )
        self._check_calls(metadata.mode)
        folder.clear_temporary()
        folder.write_metadata(replace(metadata, status="running", intervention=None))
        return self._taken_up(folder, None)

    def run_turn(self, turn: Turn, watch: Callable[[Phase], None] = lambda phase: None) -> None:
        """
        Take a turn to its end and put it into the index.

        Args:
            turn: As start_turn or resume_turn gave it.
            watch: Told of each phase before it runs.

        Raises:
            HaltError: It cannot go on; an intervention is written.
        """
        self.pipeline.run(turn, watch)
        self.index.record(self.settings.user, [turn.turn])

    def _taken_up(self, folder: TurnFolder, recordings: Recordings | None) -> Turn:
        self.now.pin(folder.read_metadata().created_at)
        return Turn(folder, self.layout, recordings=recordings)

    def hold_session(
        self, session: str, on_wait: Callable[[str], None] = lambda holder: None
    ) -> AbstractContextManager[None]:
        """
        The lock under which the turns of one session follow each other.

        Args:
            session: Session id.
            on_wait: Told who holds it, if waiting is needed.
        """
        return held_lock(
            self.layout.session_lock(self.settings.user, session),
            holder=f"panda turn (pid {os.getpid()})",
            wait_seconds=self.settings.wait_seconds,
            on_wait=on_wait,
        )

    def _check_calls(self, mode: str) -> None:
        try:
            check_recipes_of_mode(
                self.book, mode, model_of=lambda layer: self.layers.model(layer).info, tools=TOOLS
            )
            for layer in dict.fromkeys(
                self.book.recipe_for(e.step, mode).model_layer for e in self.book.registry()
            ):
                self.layers.model(layer).count_model_tokens("")  # loads it: a broken file costs no number
        except (RecipeError, ModelFileError) as exc:
            write_intervention(
                self.layout,
                self.settings.clock,
                exc,
                user=self.settings.user,
                turn=None,
                phase=None,
                recipe=None,
            )
            raise


class TurnClock:
    """
    The clock of a turn: all its phases read the instant at which it was claimed, however long they take and
    however often it is resumed or replayed. Before a turn begins it is the clock of the process.

    Args:
        clock: The clock of the process.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pinned: datetime | None = None

    def pin(self, moment: datetime) -> None:
        """Stand still at an instant."""
        self._pinned = moment

    def __call__(self) -> datetime:
        return self._pinned or self._clock()


def check_query(query: str) -> None:
    """
    Raises QueryError for a query that cannot start a turn: empty, longer than §0 holds, or not text.

    >>> check_query("How much is the Lenovo?")
    """
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
            fix="put the text into a file under knowledge/ of the user and ask about it",
        )


@contextmanager
def open_executor(settings: Settings, environ: Mapping[str, str]) -> Iterator[RecipeExecutor]:
    """
    An executor without a store, for measuring recipes: nothing is logged; its models are freed at the end.

    Args:
        settings: Settings in force.
        environ: As for build.

    Raises:
        ModelFileError: models.yaml is broken.
    """
    models = load_models_file(settings.models_file)
    book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
    with Layers(models, cache_dir=settings.cache_dir, environ=environ) as layers:
        yield RecipeExecutor(book, layers, clock=settings.clock, log=lambda record: None, count=count_tokens)


def build(settings: Settings, layout: Layout, environ: Mapping[str, str]) -> App:
    """
    Put together what runs a user's turns. No model is loaded yet.

    Args:
        settings: Settings in force.
        layout: The store.
        environ: Environment variables, for the API keys that models.yaml names.

    Raises:
        ModelFileError: models.yaml is broken.
    """
    models = load_models_file(settings.models_file)
    layers = Layers(models, cache_dir=settings.cache_dir, environ=environ)
    return build_with(settings, layout, layers)


def build_with(settings: Settings, layout: Layout, layers: ExecutorLayers) -> App:
    """The same with given models: for tests and replay."""
    clock, user = settings.clock, settings.user
    now = TurnClock(clock)
    book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)

    def log(record: Mapping[str, object]) -> None:
        append_json_line(layout.executions_log, record)

    executor = RecipeExecutor(book, layers, clock=clock, log=log, count=count_tokens)
    index, web = Index(layout), web_opener(settings.web_allow, settings.web_timeout_seconds)
    retriever, reader = Retriever(index, user, now), NodeReader(layout, user, now)
    tools = ToolContext(layout, user, 0, "", reader, retriever, now, web=web)

    def tools_of(turn: Turn) -> ToolContext:
        return replace(tools, turn=turn.turn, query=turn.query)

    phases: tuple[Phase, ...] = (
        QueryAnalyzer(executor, reader),
        Reflection(executor),
        ContextGatherer(executor, retriever, reader, now),
        Planner(executor),
        Coordinator(executor, tools_of),
        Synthesizer(executor, reader),
        Validator(executor, reader),
        Save(executor, layout, now, settings.wait_seconds),
    )

    def on_halt(turn: Turn, phase: Phase, error: PandaError) -> str:
        return write_intervention(
            layout, clock, error, user=user, turn=turn.turn, phase=phase.number, recipe=turn.recipe
        )

    store = TurnStore(layout, user, clock)
    return App(
        settings,
        layout,
        book,
        layers,
        executor,
        store,
        index,
        Pipeline(phases, on_halt, count=count_tokens),
        now,
    )
