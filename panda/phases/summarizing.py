"""The summaries by which later turns find a turn (S1 §11): of one that ends, and of saved ones without."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from panda.choosing.decision import Option
from panda.documents.problems import Problem
from panda.documents.text import one_line, shorten, strip_citations
from panda.errors import FileFormatError, HaltError, StoreError
from panda.memory.gathered import answer_items
from panda.phases.asking import ask
from panda.phases.turn import Turn
from panda.recipes.calls import Recordings
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.query_words import find_query_words, share_of_words
from panda.storage.index import note_turns
from panda.storage.layout import CONTEXT_MD, INDEX_SUMMARY_JSON, QUERY_ANALYSIS_JSON, RESEARCH_JSON
from panda.storage.records import SAVED_STATUSES, load_research
from panda.storage.turns import TurnFolder, TurnStore

_SUMMARY_CHARS = 240
_MOST_TOPICS = 12


@dataclass
class SummaryReport:
    """What a run over saved turns did."""

    written: int = 0
    """Summaries written."""
    left: int = 0
    """Turns that still lack one, because a limit was reached."""
    problems: list[Problem] = field(default_factory=list)
    """Turns that no summary could be made of."""
    seconds: float = 0.0
    """How long it took."""


def summarise(executor: RecipeExecutor, turn: Turn) -> dict[str, object]:
    """
    The content of index_summary.json.

    Args:
        executor: Asks the summariser.
        turn: A turn with an answer or without.

    Raises:
        HaltError: The recipe gave no valid reply.
        FileFormatError: A file of the turn is damaged.
    """
    items = [] if turn.answered is False else [item.text for item in answer_items(turn.context.section(5))]
    said = " ".join([turn.query, *items])
    names = dict.fromkeys(word.lower() for word in find_query_words(said) if not word[0].isdigit())
    words = [
        Option(w, w, (), share_of_words(turn.query, w)) for w in list(names)[:_MOST_TOPICS] if len(w) > 2
    ]
    line = items[0] if items else _line_of(turn)
    line = shorten(line, _SUMMARY_CHARS)
    reply = ask(executor, "phase7_summarizer", turn, options={"words": words}, variables={"line": line})
    topics = reply.values.get("topics", reply.values.get("words", ()))
    topic = load_research(turn.folder.paths / RESEARCH_JSON).topic if turn.folder.has(RESEARCH_JSON) else None
    return {
        "summary": reply.values["summary"],
        "topics": list(dict.fromkeys(one_line(topic) for topic in topics)),
        "intent": turn.read(QUERY_ANALYSIS_JSON)["intent"] if turn.folder.has(QUERY_ANALYSIS_JSON) else None,
        "has_research": topic is not None,
        "research_topic": topic,
    }


def _line_of(turn: Turn) -> str:
    """What a turn without answer items is about: of an imported one, its words."""
    answer = turn.context.section(5)
    if turn.answered is False or answer is None or not answer.text:
        return f"No answer ({turn.ending}) to: {one_line(turn.query)}"
    return one_line(f"{turn.query} {strip_citations(answer.text)}")


class _SavedTurn(Turn):
    """A saved turn that is asked about once more: its directory keeps no record of that."""

    def __init__(self, folder: TurnFolder, store: TurnStore) -> None:
        super().__init__(folder, store.layout, recordings=Recordings([]))

    def count_execution(self, recipe: str) -> None:
        """Its own executions were counted when it ran."""

    def add_call(self, record: Mapping[str, object]) -> None:
        """After the save, calls.jsonl does not change."""


def turns_without_summary(store: TurnStore) -> Iterator[int]:
    """Numbers of the saved turns that have no summary for the index, or an empty one; ascending."""
    for number in store.numbers():
        folder = store.open(number)
        try:
            has_one = folder.has(INDEX_SUMMARY_JSON) and folder.read_json(INDEX_SUMMARY_JSON)["summary"]
            if not has_one and folder.read_metadata().status in SAVED_STATUSES:
                yield number
        except (FileFormatError, StoreError):  # told by `rebuild`
            continue


def write_summaries(
    executor: RecipeExecutor,
    stores: Sequence[TurnStore],
    *,
    limit: int | None = None,
    max_seconds: float | None = None,
    watch: Callable[[str, int, int, str], None] = lambda user, left, number, text: None,
) -> SummaryReport:
    """
    Write the summaries that saved turns lack, user by user, oldest turn first.

    Each is on disk and in the index's change journal before the next begins, so that an interrupted run goes
    on where it stopped.

    Args:
        executor: Asks the summariser.
        stores: The turns of each user.
        limit: Most turns to try; None for all.
        max_seconds: No turn is begun after so many seconds; None for no limit.
        watch: Told of each turn: user, how many are left, its number, its summary or what was wrong.

    Raises:
        StoreError: A summary cannot be written.
    """
    started = time.monotonic()
    report = SummaryReport()
    todo = [(store, number) for store in stores for number in turns_without_summary(store)]
    report.left = len(todo)
    for store, number in todo[:limit]:
        if max_seconds is not None and time.monotonic() - started >= max_seconds:
            break
        report.left -= 1
        folder = store.open(number)
        try:
            value = summarise(executor, _SavedTurn(folder, store))
        except (HaltError, FileFormatError) as exc:
            where = exc.where or str(folder.paths / CONTEXT_MD)
            report.problems.append(Problem(where, f"no summary: {exc.message}", fix=exc.fix))
            watch(store.user, report.left, number, f"no summary: {exc.message}")
            continue
        folder.write_json(INDEX_SUMMARY_JSON, value)
        note_turns(store.layout, store.user, [number])
        report.written += 1
        watch(store.user, report.left, number, str(value["summary"]))
    report.seconds = time.monotonic() - started
    return report
